// SPDX-License-Identifier: MIT
#include "profiler/attach/record.h"

#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <optional>

#include "profiler/attach/claim.h"
#include "profiler/attach/launch.h"

namespace hw::profiler {
namespace {

using core::Error;
using core::ErrorCode;
using wire::Milestone;

/// What went wrong in the program's own process, if the shim said so.
std::string faultOf(const Server& server) {
    const Assembler* recorded = server.recorded();
    return recorded == nullptr || recorded->faults().empty()
               ? std::string()
               : "; the shim gave up: " + recorded->faults().front();
}

/// Why there is no step, from how far the program came.
Error noStep(const Server& server, const RecordOptions& options, int status) {
    const std::string program = "'" + options.command.front() + "'";
    const std::string ended = " (it " + describeExit(status) + ")";
    const std::string name = std::filesystem::path(options.command.front()).filename().string();
    const bool python = name.starts_with("python") || name == "torchrun";
    if (WIFSIGNALED(status) && !options.onOom)
        return {ErrorCode::Target,
                program + " " + describeExit(status) + " before it completed a step to record" +
                    faultOf(server),
                "see whether it ends so without Highwater, too"};
    if (!server.everConnected() && python)
        return {ErrorCode::Target,
                program + " ended before anything of it could be recorded" + ended,
                "check the program's own output"};
    if (!server.everConnected())
        return {ErrorCode::Target,
                program + " ended without starting Python" + ended + ": it is not Python",
                "record a Python program: highwater record -- python3 train.py"};
    if (!server.saw(Milestone::Torch))
        return {ErrorCode::Target,
                program + " is Python but was never seen to import torch" + ended + faultOf(server),
                server.saw(Milestone::Shim)
                    ? "Highwater records PyTorch training; check the program's own output"
                    : "it ended before it could be watched; check the program's own output"};
    if (options.onOom && server.saw(Milestone::Capture))
        return {
            ErrorCode::Target, program + " did not run out of memory" + ended,
            WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL
                ? "the kernel's out-of-memory killer gives no warning: set a limit with 'ulimit "
                  "-v', so that the allocation fails instead"
                : ""};
    return {ErrorCode::Target,
            program + " imported torch but completed no step to record" + ended +
                "; seen: " + whatWasSeen(server) + faultOf(server),
            server.saw(Milestone::Optimizer)
                ? "record fewer warm-up steps (--warmup), or let the program train longer"
                : "a step ends with an Optimizer.step or, where there is no optimizer, after a "
                  "backward pass; check the program's own output"};
}

/// Takes records in until the program has ended; its wait status. The program goes on after the
/// recording has been ended from outside.
int receiveUntilExit(Server& server, Child& child, const RecordOptions& options,
                     const Progress& progress) {
    // Where both write to one pipe, how far the recording is would come between a program's words.
    const bool apart = !options.childStdoutToStderr || isatty(STDERR_FILENO) != 0;
    const Progress steps = apart ? progress : [](const std::string&) {};
    Receiver receiver(server, steps);
    std::optional<int> status;
    Claims claims;
    bool detached = false, yields = false;
    for (int drained = 0; !status || (server.connected() && drained < kDrainRounds);) {
        const bool received = receiver.poll();
        if (!yields && server.everConnected()) {  // not before: it waits for our answer
            yields = true;
            yieldToProgram();
        }
        if (!status) status = child.poll();
        if (status && !received) ++drained;
        claims.take(server.recordedProcesses());
        const auto refused = gpuRefusal(server, options);
        if (!detached && (refused || SignalFlag::raised(SIGUSR1) || server.failed())) {
            detached = true;
            server.hangUp();
            progress(refused ? refused->what + "; the program goes on"
                             : "the recording was ended; the program goes on");
        }
    }
    return *status;
}

}  // namespace

core::Result<RecordSummary> record(const RecordOptions& options, const Progress& progress) {
    if (options.command.empty())
        return Error{ErrorCode::Usage, "no program to record", "highwater record -- PROGRAM ARGS…"};
    if (core::Status status = checkCapture(options); !status) return status.error();
    RecordSummary summary;
    auto output = chooseOutput(options, options.command, progress);
    if (!output) return output.error();
    summary.session = *output;
    auto agent = findAgent(options.agentPath);
    if (!agent) return agent.error();
    auto server = Server::open(
        summary.session, configOf(options, frameworkOfPython(options.command.front()), progress));
    if (!server) return server.error();
    (*server)->findNativeWith(findNative(progress));

    // While the program runs, an interrupt is for it; highwater ends when the program does.
    const SignalFlag ignored(SIGINT), detach(SIGUSR1);
    auto child =
        launch({options.command, *agent, (*server)->socketPath(), options.childStdoutToStderr});
    if (!child) return child.error();
    (*server)->startedProgram(child->pid());
    const auto claim = Claim::take(child->pid());  // without it, only detaching does not work
    progress("started '" + options.command.front() + "', process " + std::to_string(child->pid()));
    const int status = receiveUntilExit(**server, *child, options, progress);
    summary.exitStatus = exitStatusOf(status);
    const core::Status noted = (*server)->noteExit(child->pid(), summary.exitStatus);
    core::Status written = (*server)->finish();
    if (written && !noted) written = noted;

    if (const auto refused = gpuRefusal(**server, options)) return *refused;
    if (!written) return written.error();
    if ((*server)->steps() == 0) return noStep(**server, options, status);
    summarize(**server, options.onOom ? 1 : options.steps, summary);
    if (status != 0) summary.notes.push_back("the program " + describeExit(status));
    return summary;
}

}  // namespace hw::profiler
