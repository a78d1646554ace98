// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <cstdio>
#include <exception>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/cli.h"
#include "app/window_apart.h"
#include "core/base/error_json.h"
#include "core/base/printable.h"
#include "core/base/spawn.h"

namespace hw::app {
namespace {

/// Takes what follows "--" off the arguments: the program to be started.
std::vector<std::string> takeProgram(int& argc, char** argv) {
    for (int i = 1; i < argc; ++i)
        if (std::string_view(argv[i]) == "--") {
            std::vector<std::string> program(argv + i + 1, argv + argc);
            argc = i;
            return program;
        }
    return {};
}

bool wantsJson(int argc, char** argv) {
    char** const program = std::find(argv + 1, argv + argc, std::string_view("--"));
    return std::find(argv + 1, program, std::string_view("--json")) != program;
}

int runCommandLine(int argc, char** argv) {
    CLI::App app{"Highwater: see a training run's memory, plan it down, run the plan.",
                 "highwater"};
    app.set_version_flag("--version", "highwater " HIGHWATER_VERSION);
    app.require_subcommand(1);
    Common common;
    common.program = takeProgram(argc, argv);
    // Known before the rest is parsed: a usage error is told as JSON, too.
    if (wantsJson(argc, argv)) answerInJson();
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
    try {
        app.parse(argc, argv);
        return common.exitCode;
    } catch (const CLI::Success& done) {  // --help, --version
        return app.exit(done);
    } catch (const CLI::ParseError& error) {
        const auto chosen = app.get_subcommands();
        return fail({core::ErrorCode::Usage, error.what(),
                     "see 'highwater " + (chosen.empty() ? "" : chosen.front()->get_name() + " ") +
                         "--help'"});
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
#ifndef HIGHWATER_WITH_VIEWER
    becomeWindow(argc, argv);
#endif
    if (argc == 1) return openWindow();
    const hw::core::PrintableOnly errors(std::cerr);
    std::optional<hw::core::PrintableOnly> output;
    std::optional<hw::core::PrintableStdout> file;
    if (!wantsJson(argc, argv)) {  // JSON escapes them
        output.emplace(std::cout);
        file.emplace();
    }
    const int code = runCommandLine(argc, argv);
    writeAnswer();
    file.reset();
    if (code == 0 && (!std::cout.flush() || std::fflush(stdout) != 0 || std::ferror(stdout) != 0))
        return hw::core::printError({hw::core::ErrorCode::Internal,
                                     "standard output could not be written",
                                     "check that there is room where it goes"});
    return code;
}
