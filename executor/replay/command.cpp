// SPDX-License-Identifier: MIT
#include "executor/replay/command.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "executor/replay/pipeline.h"

namespace {

int fail(const hw::core::Error& error) {
    std::cerr << "highwater: error: " << error.what << '\n';
    if (!error.hint.empty()) std::cerr << "hint: " << error.hint << '\n';
    return static_cast<int>(error.code);
}

int usage(const std::string& what) {
    return fail({hw::core::ErrorCode::Usage, what, "see 'highwater-exec --help'"});
}

}  // namespace

namespace hw::executor {

int runCommand(int argc, char** argv) {
    CLI::App app(
        "Runs a recorded training step with real kernels, under a plan, and compares every result. "
        "The session keeps what was measured, and the plan.");
    RunRequest request;
    std::string device = "cpu";
    bool json = false;
    app.add_option("SESSION", request.session, "A recorded session")->required();
    app.add_option("PLAN", request.plan, "The plan (default: none, the captured order)");
    app.add_option("--step", request.step, "The step (default: the last complete one)");
    app.add_option("--steps", request.steps,
                   "Train so many steps in a row, with and without the plan, and compare them")
        ->check(CLI::Range(1, 1'000'000));
    app.add_option("--repeat", request.repeat, "Passes that are timed (default: 3)")
        ->check(CLI::Range(1, 1000));
    app.add_option("--device", device, "Where to run: cpu (the default) or cuda")
        ->check(CLI::IsMember({"cpu", "cuda"}));
    std::string implementations;
    app.add_option("--implementations", implementations,
                   "Measure other implementations of ops, as a menu for the planner monet: exact "
                   "(those with the same results to the bit) or all")
        ->check(CLI::IsMember({"exact", "all"}));
    app.add_flag("--remeasure", request.remeasure,
                 "Replace the measured times and workspaces of an earlier run");
    app.add_flag("--json", json, "Print one JSON object on stdout and nothing else there");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() == 0) return app.exit(error);
        return usage(error.what());
    }
    if (!implementations.empty()) {
        if (!request.plan.empty())
            return usage("--implementations measures the captured order and takes no plan");
        request.implementations = implementations == "all" ? Offered::All : Offered::Exact;
    }
    if (device == "cuda") request.device = Device::Cuda;

    const bool terminal = isatty(STDERR_FILENO) != 0;
    const auto report = runStep(request, [&](const std::string& stage) {
        if (terminal) std::cerr << "\r\x1b[K" << stage << " …" << std::flush;
    });
    if (terminal) std::cerr << "\r\x1b[K";
    if (!report) return fail(report.error());
    std::cout << (json ? toJson(*report) + "\n" : toText(*report)) << std::flush;
    if (report->same()) return 0;
    if (report->figures.different == 0)
        return fail({hw::core::ErrorCode::Verification,
                     "the steps in a row differ from the unplanned ones",
                     "the losses and final states that differ are counted in the output"});
    return fail({hw::core::ErrorCode::Verification,
                 std::to_string(report->figures.different) + " of " +
                     std::to_string(report->figures.compared) +
                     " results differ from the unplanned run",
                 "the first difference is named in the output"});
}

}  // namespace hw::executor
