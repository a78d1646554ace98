// SPDX-License-Identifier: MIT
#include "live/host/apply.h"

#include <unistd.h>

#include "core/base/file.h"
#include "profiler/attach/attach.h"
#include "profiler/attach/enter.h"
#include "profiler/attach/process.h"
#include "profiler/attach/sight.h"

namespace hw::live {

using namespace hw::profiler;
namespace {

using core::Error;
using core::ErrorCode;

/// What acts in a process can do there whatever its user can.
core::Status requireOwn(pid_t pid) {
    const auto status = statusOf(pid);
    if (!status || status->uid == getuid()) return {};
    return Error{ErrorCode::Target, named(pid) + " belongs to another user",
                 "a plan is applied by the user whose training it is"};
}

/// Until there is a reason to leave.
void follow(Server& server, StepTeller& teller, PlannerPool& plans, const std::string& acting,
            const std::string& target, const Progress& progress) {
    bool ready = false;
    while (server.connected() && server.faults().empty()) {
        server.poll(kLivePollMilliseconds);
        teller.tellNew();
        plans.poll();
        if (!ready && server.saw(wire::Milestone::Torch)) {
            ready = true;
            progress(acting + " acts in " + target + " from its next step on");
        }
        if (SignalFlag::raised(SIGINT) || SignalFlag::raised(SIGTERM) ||
            SignalFlag::raised(SIGUSR1))
            return;
    }
}

}  // namespace

core::Result<LiveSummary> apply(const ApplyOptions& options, const Progress& progress) {
    const auto agent = findAgent(options.agentPath);
    if (!agent) return agent.error();
    const std::vector<pid_t> pids{options.pid};
    const auto targets = claimAll(pids, *agent);
    if (!targets) return targets.error();
    if (core::Status own = requireOwn(options.pid); !own) return own.error();
    const auto folder = folderSeenBy(pids);
    if (!folder) return folder.error();
    const core::ScratchFolder scratch(*folder);
    const std::string programs = (scratch.path() / "program").string();
    if (core::Status done = writePrograms(options.programs, programs); !done) return done.error();
    const auto framework = frameworkOfProcess(options.pid);
    if (!framework) return framework.error();
    auto config = liveConfig(*framework, options.limits, programs, progress);
    if (!config) return config.error();
    config->flags |= wire::kConfigRunning | (options.curves ? wire::kConfigCurves : 0);
    const auto server = Server::open("", *config, {}, folder->string());
    if (!server) return server.error();

    const SignalFlag interrupt(SIGINT), terminate(SIGTERM), released(SIGUSR1);
    const auto stopped = enterAll(**server, *targets, *agent, options.patience, progress);
    if (!stopped) return stopped.error();
    yieldToProgram();
    StepTeller teller(**server, options.onStep, progress);
    PlannerPool plans(programs, options.limits.planners, progress);
    const std::string acting = !options.programs.empty() ? "the plan"
                               : options.limits.onOom    ? "the rescue"
                                                         : "the budget";
    follow(**server, teller, plans, acting, named(options.pid), progress);
    progress(named(options.pid) + " leaves " + acting + " at the end of its step");
    const bool left = leave(**server, pids);
    teller.tellNew();
    LiveSummary summary = liveSummary(**server);
    summary.found = plans.found();
    const auto faults = (*server)->faults();
    static_cast<void>((*server)->finish());
    if (!faults.empty() && summary.processes.front().steps.empty())
        return Error{ErrorCode::Target,
                     "no plan acts in " + named(options.pid) + ": " + faults.front(),
                     "it goes on as before"};
    if (!left)
        summary.notes.push_back(named(options.pid) + " is still in a step of " + acting.substr(4) +
                                ", and leaves it at its end");
    return summary;
}

core::Status release(pid_t pid) {
    if (!Claim::holder(pid))
        return Error{ErrorCode::Target, "no plan acts in " + named(pid),
                     "list training processes with 'highwater ps'"};
    return detach(pid);
}

}  // namespace hw::live
