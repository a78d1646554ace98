// SPDX-License-Identifier: MIT
#include "live/host/train.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <utility>

#include "core/base/file.h"
#include "profiler/attach/claim.h"
#include "profiler/attach/enter.h"
#include "profiler/attach/launch.h"

namespace hw::live {

using namespace hw::profiler;
namespace {

using core::Error;
using core::ErrorCode;

/// Plans that come while the program starts: its first step waits as long as a file is there.
class Awaited {
public:
    Awaited(OtherKinds* others, const std::string& programs)
        : others_(others), programs_(programs), file_(programs + wire::kLiveAwaited) {
        if (others_ != nullptr) std::ofstream(file_, std::ios::binary).flush();
    }
    core::Status poll() {
        if (others_ == nullptr || !others_->poll()) return {};
        const core::Status written =
            writePrograms(std::exchange(others_, nullptr)->programs(), programs_, 1);
        end();
        return written;
    }
    /// The program waits no longer.
    void end() {
        std::error_code ignored;
        std::filesystem::remove(file_, ignored);
    }

private:
    OtherKinds* others_;
    std::string programs_, file_;
};

/// The program's wait status; none where the plan was taken out of it.
std::optional<int> followUntilExit(Server& server, Child& child, StepTeller& teller,
                                   PlannerPool& planners, Awaited& awaited,
                                   const Progress& progress) {
    Claims claims;
    std::optional<int> status;
    for (int drained = 0; !status || (server.connected() && drained < kDrainRounds);) {
        const bool received = server.poll(kLivePollMilliseconds);
        teller.tellNew();
        planners.poll();
        if (const core::Status written = awaited.poll(); !written) progress(written.error().what);
        claims.take(server.recordedProcesses());
        if (!status && SignalFlag::raised(SIGUSR1)) return std::nullopt;
        if (!status) status = child.poll();
        if (status && !received) ++drained;
    }
    return status;
}

}  // namespace

core::Result<LiveSummary> train(const TrainOptions& options, const Progress& progress) {
    if (options.command.empty())
        return Error{ErrorCode::Usage, "no program to train",
                     "highwater train SESSION PLAN -- PROGRAM ARGS…"};
    const core::ScratchFolder scratch;
    const std::string programs = (scratch.path() / "program").string();
    if (core::Status done = writePrograms(options.programs, programs); !done) return done.error();
    Awaited awaited(options.others, programs);
    const std::string folder = std::filesystem::current_path().string();
    writeKeptOps(options.command, folder, programs);
    auto agent = findAgent(options.agentPath);
    if (!agent) return agent.error();
    const auto framework = frameworkOfPython(options.command.front());
    auto config = liveConfig(framework ? std::optional(*framework) : std::nullopt, options.limits,
                             programs, progress);
    if (!config) return config.error();
    if (options.curves) config->flags |= wire::kConfigCurves;
    auto server = Server::open("", *config);
    if (!server) return server.error();
    (*server)->findNativeWith(findNative(progress));

    const SignalFlag ignored(SIGINT), released(SIGUSR1);
    auto child =
        launch({options.command, *agent, (*server)->socketPath(), options.childStdoutToStderr});
    if (!child) return child.error();
    (*server)->startedProgram(child->pid());
    const auto claim = Claim::take(child->pid());  // without it, only releasing does not work
    yieldToProgram();
    progress("started '" + options.command.front() + "', process " + std::to_string(child->pid()));
    StepTeller teller(**server, options.onStep, progress);
    PlannerPool plans(programs, options.limits.planners, progress);
    const std::optional<int> status =
        followUntilExit(**server, *child, teller, plans, awaited, progress);
    awaited.end();
    const bool left = status || leave(**server, {child->pid()});
    teller.tellNew();

    LiveSummary summary = liveSummary(**server);
    rememberMismatches(options.command, folder, summary);
    summary.found = plans.found();
    if (status)
        summary.exitStatus = exitStatusOf(*status);
    else
        summary.running = *child;
    if (!left)
        summary.notes.push_back(
            "the program is still in a step of the plan, and leaves it "
            "at its end");
    static_cast<void>((*server)->finish());
    return summary;
}

}  // namespace hw::live
