// SPDX-License-Identifier: MIT
#include "executor/host/run_sizes.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "core/base/file.h"
#include "core/base/spawn.h"
#include "core/plan/plan.h"

namespace hw::executor {
namespace {

using core::Error;
using core::ErrorCode;
using core::Result;

/// Writes the plan of one step; an empty path where no choice of layers fits.
Result<std::string> planStep(const core::Session& session, SizeRun& size,
                             planners::InputAwarePlanner& planner, core::Bytes budget,
                             const std::filesystem::path& folder) {
    const auto graph = core::loadGraph(session, size.step);
    if (!graph) return graph.error();
    size.plan = planners::planSize(*graph, size.size, planner);
    if (!size.plan.dropped) return std::string();
    const auto plan = planners::writtenPlan(size.plan, *graph, budget);
    if (!plan) return plan.error();
    size.overhead = plan->overhead;
    for (const int layer : *size.plan.dropped)
        size.dropped.push_back(planner.estimator().layers()[static_cast<std::size_t>(layer)]);
    const std::string path = (folder / (std::to_string(size.step) + ".plan.json")).string();
    if (const core::Status written = core::writePlanFile(*plan, path); !written)
        return written.error();
    return path;
}

/// What a command prints, and its exit status; its errors go where ours go.
Result<std::pair<std::string, int>> outputOf(const std::vector<std::string>& command) {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0)
        return Error{ErrorCode::Internal, "cannot make a pipe", "close other programs"};
    core::Spawn program{command, {}};
    program.output = ends[1];
    const core::Spawned child = core::spawn(program);
    close(ends[1]);
    std::string text;
    std::array<char, 65536> part{};
    for (ssize_t got = 0; child.error == 0 && (got = read(ends[0], part.data(), part.size())) > 0;)
        text.append(part.data(), static_cast<std::size_t>(got));
    close(ends[0]);
    const int status = child.error == 0 ? core::waitFor(child.pid) : -1;
    if (status < 0 || !WIFEXITED(status))
        return Error{ErrorCode::Internal, command.front() + " did not end by itself",
                     "run one of the steps with `highwater run --step`"};
    return std::pair(std::move(text), WEXITSTATUS(status));
}

core::Status runStep(const SizesRequest& request, SizeRun& size, const std::string& plan) {
    std::vector<std::string> command{request.executor,          request.file, plan, "--step",
                                     std::to_string(size.step), "--json"};
    command.insert(command.end(), request.options.begin(), request.options.end());
    const auto ran = outputOf(command);
    if (!ran) return ran.error();
    size.run = nlohmann::json::parse(ran->first, nullptr, false);
    if (size.run.is_object()) return {};
    const int code = ran->second == 0 ? static_cast<int>(ErrorCode::Internal) : ran->second;
    return Error{static_cast<ErrorCode>(code),
                 "step " + std::to_string(size.step) + " could not be run",
                 "the lines before this one say why"};
}

}  // namespace

Result<SizesRun> runEverySize(const core::Session& session,
                              const std::vector<planners::ProfiledStep>& recorded,
                              const SizesRequest& request) {
    auto estimator = planners::fitSizes(recorded);
    if (!estimator) return estimator.error();
    planners::InputAwarePlanner planner(std::move(*estimator), request.budget);
    const core::ScratchFolder scratch;
    if (scratch.path().empty())
        return Error{ErrorCode::Internal, "cannot make a folder for plans", "check TMPDIR"};

    SizesRun run;
    for (const planners::ProfiledStep& one : planners::firstOfEachSize(recorded)) {
        SizeRun size;
        size.step = one.step;
        size.size = one.profile.size;
        size.peak = one.profile.peak;
        const auto plan = planStep(session, size, planner, request.budget, scratch.path());
        if (!plan) return plan.error();
        if (!plan->empty())
            if (const core::Status ran = runStep(request, size, *plan); !ran) return ran.error();
        run.sizes.push_back(std::move(size));
    }
    std::sort(run.sizes.begin(), run.sizes.end(),
              [](const SizeRun& a, const SizeRun& b) { return a.size < b.size; });
    run.plans = planner.cache().misses() -
                std::count_if(run.sizes.begin(), run.sizes.end(),
                              [](const SizeRun& size) { return !size.plan.dropped; });
    return run;
}

}  // namespace hw::executor
