// SPDX-License-Identifier: GPL-3.0-or-later
#include <fstream>
#include <iostream>
#include <sstream>

#include "app/cli.h"
#include "core/session/category_rules.h"

namespace hw::app {
namespace {

using namespace hw::core;

struct Arguments {
    std::string file, rules;
    bool show = false, reset = false;
};

int run(const Arguments& arguments, const Common& common) {
    auto session =
        Session::open(arguments.file, arguments.show ? Session::Mode::Read : Session::Mode::Write);
    if (!session) return fail(session.error());
    std::string text = "[]";
    if (!arguments.rules.empty()) {
        std::ifstream file(arguments.rules);
        if (!file)
            return fail(badInput("there is no file '" + arguments.rules + "'", "check the path"));
        std::ostringstream content;
        content << file.rdbuf();
        text = content.str();
    } else if (!arguments.reset) {
        const auto stored = storedCategoryRules(*session);
        if (!stored) return fail(stored.error());
        if (!stored->empty()) text = *stored;
    }
    const auto rules = parseCategoryRules(text);
    if (!rules) return fail(rules.error());
    if (arguments.show) {
        std::cout << text << (text.ends_with('\n') ? "" : "\n");
        return 0;
    }
    const auto changes = applyCategoryRules(*session, *rules, text);
    if (!changes) return fail(changes.error());
    if (common.json) {
        Json list = Json::array();
        for (const auto& [what, change] : *changes)
            list.push_back(
                {{"change", what}, {"storages", change.storages}, {"bytes", change.bytes.count()}});
        printJson({{"session", arguments.file}, {"rules", rules->size()}, {"changes", list}});
        return 0;
    }
    for (const auto& [what, change] : *changes)
        std::cout << what << ": " << change.storages << " storages, " << humanBytes(change.bytes)
                  << '\n';
    if (changes->empty()) std::cout << "nothing changes\n";
    return 0;
}

}  // namespace

void addCategorize(CLI::App& app, Common& common) {
    auto* command = addCommand(app, common, "categorize",
                               "Sort a session's storages into categories by your own rules");
    command->footer(
        "RULES is a JSON array; the first rule that fits a storage decides:\n"
        "  [{\"set\": \"input\", \"op\": \"aten::embedding\", \"layer\": \"encoder.*\"}]\n"
        "fields: category, layer, op, phase, device (patterns), min_bytes, max_bytes");
    auto arguments = std::make_shared<Arguments>();
    command->add_option("SESSION", arguments->file, "The session")->required();
    auto* rules = command->add_option("--rules", arguments->rules,
                                      "The rules file (default: the rules that the session keeps)");
    auto* show = command->add_flag("--show", arguments->show, "Print the rules, change nothing");
    command->add_flag("--reset", arguments->reset, "Back to the categories as recorded")
        ->excludes(rules)
        ->excludes(show);
    command->callback([arguments, &common] { common.exitCode = run(*arguments, common); });
}

}  // namespace hw::app
