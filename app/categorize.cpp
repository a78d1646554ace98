// SPDX-License-Identifier: GPL-3.0-or-later
#include <iostream>

#include "app/cli.h"
#include "core/base/file.h"
#include "core/session/category_rules.h"

namespace hw::app {
namespace {

using namespace hw::core;

struct CategorizeArguments {
    std::string file, rules;
    bool show = false, reset = false;
};

// Of the file, or those that the session keeps.
Result<std::string> rulesOf(const CategorizeArguments& arguments) {
    const auto session = Session::open(arguments.file);
    if (!session) return session.error();
    if (!arguments.rules.empty()) return readTextFile(arguments.rules, "list of rules");
    if (arguments.reset) return std::string("[]");
    auto stored = storedCategoryRules(*session);
    return stored && stored->empty() ? std::string("[]") : stored;
}

int run(const CategorizeArguments& arguments, const Common& common) {
    const auto text = rulesOf(arguments);
    if (!text) return fail(text.error());
    const auto rules = parseCategoryRules(*text);
    if (!rules) return fail(rules.error());
    if (arguments.show) {
        std::cout << *text << (text->ends_with('\n') ? "" : "\n");
        return 0;
    }
    auto session = SessionWriter::open(arguments.file);
    if (!session) return fail(session.error());
    const auto changes = applyCategoryRules(*session, *rules, *text);
    if (!changes) return fail(changes.error());
    if (common.json) {
        Json list = Json::array();
        for (const auto& [what, change] : *changes)
            list.push_back(
                {{"change", what}, {"storages", change.storages}, {"bytes", change.bytes.count()}});
        answerWith({{"session", arguments.file}, {"rules", rules->size()}, {"changes", list}});
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
                               "Sort a session's storages into categories by your own rules, "
                               "which the session keeps");
    command->footer(
        "RULES is a JSON array; the first rule that fits a storage decides:\n"
        "  [{\"set\": \"input\", \"op\": \"aten::embedding\", \"layer\": \"encoder.*\"}]\n"
        "fields: category, layer, op, phase, device (patterns), min_bytes, max_bytes");
    auto arguments = std::make_shared<CategorizeArguments>();
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
