// SPDX-License-Identifier: MIT
#include "executor/replay/command.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <optional>

#include "core/base/error_json.h"
#include "core/base/printable.h"
#include "executor/replay/run_apart.h"
#include "executor/replay/run_store.h"

namespace {

using Json = nlohmann::ordered_json;

/// Adds the error to what is printed as JSON, if that is wanted.
int fail(const hw::core::Error& error, bool json, Json answer = Json::object()) {
    if (json) {
        answer["error"] = hw::core::errorJson(error);
        std::cout << answer.dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl;
    }
    return hw::core::printError(error);
}

int usage(const std::string& what, bool json) {
    return fail({hw::core::ErrorCode::Usage, what, "see 'highwater-exec --help'"}, json);
}

}  // namespace

namespace hw::executor {

int runCommand(int argc, char** argv) {
    CLI::App app(
        "Runs a recorded training step with real kernels, under a plan, and compares every result. "
        "The session keeps what was measured, and the plan.");
    const core::PrintableOnly errors(std::cerr);
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
    app.add_option("--library", request.libraries,
                   "Load this library of an extension first: its ops may run, too")
        ->allow_extra_args(false);
    app.add_flag("--remeasure", request.remeasure,
                 "Replace the measured times and workspaces of an earlier run");
    app.add_flag("--json", json, "Print one JSON object on stdout and nothing else there");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() == 0) return app.exit(error);
        return usage(error.what(), json);
    }
    if (!implementations.empty()) {
        if (!request.plan.empty())
            return usage("--implementations measures the captured order and takes no plan", json);
        request.implementations = implementations == "all" ? Offered::All : Offered::Exact;
    }
    if (device == "cuda") request.device = Device::Cuda;
    std::optional<core::PrintableOnly> output;
    if (!json) output.emplace(std::cout);

    const bool terminal = isatty(STDERR_FILENO) != 0;
    auto outcome = runApart(request, [&](const std::string& stage) {
        if (terminal) std::fprintf(stderr, "\r\x1b[K%s …", stage.c_str());
    });
    if (terminal) std::fputs("\r\x1b[K", stderr);
    if (!outcome) return fail(outcome.error(), json);
    keepOutcome(request, *outcome);
    const auto& wrong = outcome->difference;
    if (wrong && json) return fail(*wrong, json, Json::parse(outcome->json, nullptr, false));
    std::cout << (json ? outcome->json + "\n" : outcome->text);
    if (!std::cout.flush())
        return fail({hw::core::ErrorCode::Internal, "standard output could not be written",
                     "check that there is room where it goes"},
                    false);
    return wrong ? fail(*wrong, json) : 0;
}

}  // namespace hw::executor
