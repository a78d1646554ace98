// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <cstdio>
#include <exception>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/arguments.h"
#include "app/cli.h"
#include "app/examples.h"
#include "app/window_apart.h"
#include "core/base/error_json.h"
#include "core/base/printable.h"
#include "core/base/spawn.h"

namespace hw::app {
namespace {

void addCommands(CLI::App& app, Common& common) {
    addRecord(app, common);
    addAttach(app, common);
    addDetach(app, common);
    addList(app, common);
    addJoin(app, common);
    addImport(app, common);
    addInfo(app, common);
    addPlan(app, common);
    addSweep(app, common);
    addFit(app, common);
    addCheck(app, common);
    addLayout(app, common);
    addRun(app, common);
    addPlanRegion(app, common);
    addPlanSizes(app, common);
    addPlanStep(app, common);
    addReplayDtr(app, common);
    addTrain(app, common);
    addApply(app, common);
    addRelease(app, common);
    addExport(app, common);
    addDiff(app, common);
    addCategorize(app, common);
    addView(app, common);
    addShot(app, common);
    addReport(app, common);
    addDoctor(app, common);
    addCompletion(app, common);
    addManual(app, common);
    addExamples(app);
}

int failToParse(const CLI::App& app, const CLI::ParseError& error,
                const std::vector<std::string>& arguments) {
    const auto chosen = app.get_subcommands();
    if (chosen.empty() && !arguments.empty() && !arguments.front().starts_with('-'))
        return fail({core::ErrorCode::Usage, "there is no command '" + arguments.front() + "'",
                     hintFor(app, arguments.front())});
    const int kind = error.get_exit_code();
    if (!chosen.empty() && (kind == static_cast<int>(CLI::ExitCodes::ExtrasError) ||
                            kind == static_cast<int>(CLI::ExitCodes::RequiredError)))
        if (const auto unknown = notKnown(*chosen.front(), arguments)) return fail(*unknown);
    return fail(inOurWords(
        error, "highwater " + (chosen.empty() ? "" : chosen.front()->get_name() + " ") + "--help"));
}

int runCommandLine(int argc, char** argv) {
    CLI::App app{"Highwater: see a training run's memory, plan it down, run the plan.",
                 "highwater"};
    app.set_version_flag("--version", "highwater " HIGHWATER_VERSION);
    app.require_subcommand(1);
    Common common;
    addCommands(app, common);
    std::vector<std::string> arguments(argv + 1, argv + argc);
    askForHelp(app, arguments);
    common.program = takeProgram(app, arguments);
    std::optional<core::PrintableOnly> output;
    std::optional<core::PrintableStdout> file;
    if (std::ranges::find(arguments, "--json") != arguments.end()) {
        answerInJson();  // before the rest is parsed: a usage error is told as JSON, too
    } else {
        output.emplace(std::cout);  // JSON escapes what no terminal should see
        file.emplace();
    }
    try {
        app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
        return common.exitCode;
    } catch (const CLI::Success& done) {  // --help, --version
        return app.exit(done);
    } catch (const CLI::ParseError& error) {
        return failToParse(app, error, arguments);
    } catch (const std::exception& error) {
        return fail({core::ErrorCode::Internal, error.what(),
                     "this is a fault of Highwater: please report it"});
    }
}

}  // namespace
}  // namespace hw::app

int main(int argc, char** argv) {
    using namespace hw::app;
    hw::core::rememberSignals();
    std::vector<char*> words(argv, argv + argc);
    static char view[] = "view";
    if (argc > 1 && namesFile(argv[1])) words.insert(words.begin() + 1, view);
    words.push_back(nullptr);
    argc = static_cast<int>(words.size()) - 1;
    argv = words.data();
#ifndef HIGHWATER_WITH_VIEWER
    becomeWindow(argc, argv);
#endif
    if (argc == 1) return openWindow();
    const hw::core::PrintableOnly errors(std::cerr);
    const int code = runCommandLine(argc, argv);
    writeAnswer();
    if (code == 0 && (!std::cout.flush() || std::fflush(stdout) != 0 || std::ferror(stdout) != 0))
        return hw::core::printError({hw::core::ErrorCode::Internal,
                                     "standard output could not be written",
                                     "check that there is room where it goes"});
    return code;
}
