// SPDX-License-Identifier: GPL-3.0-or-later
#include <exception>
#include <string_view>

#include "app/cli.h"
#include "app/window_apart.h"
#include "core/base/spawn.h"

int main(int argc, char** argv) {
    using namespace hw::app;
    hw::core::rememberSignals();
#ifndef HIGHWATER_WITH_VIEWER
    becomeWindow(argc, argv);
#endif
    if (argc == 1) return openWindow();

    CLI::App app{"Highwater: see a training run's memory, plan it down, run the plan.",
                 "highwater"};
    app.set_version_flag("--version", "highwater " HIGHWATER_VERSION);
    app.require_subcommand(1);
    Common common;
    for (int i = 1; i < argc; ++i)
        if (std::string_view(argv[i]) == "--") {
            common.program.assign(argv + i + 1, argv + argc);
            argc = i;
        }
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
        return fail({hw::core::ErrorCode::Usage, error.what(),
                     "see 'highwater " + (chosen.empty() ? "" : chosen.front()->get_name() + " ") +
                         "--help'"});
    } catch (const std::exception& error) {
        return fail({hw::core::ErrorCode::Internal, error.what(),
                     "this is a fault of Highwater: please report it"});
    }
}
