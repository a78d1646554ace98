// SPDX-License-Identifier: MIT
#include "profiler/attach/attach.h"

#include <chrono>
#include <csignal>
#include <limits>
#include <sstream>
#include <thread>

#include "profiler/attach/enter.h"
#include "profiler/attach/process.h"
#include "profiler/attach/sight.h"

namespace hw::profiler {
namespace {

using core::Error;
using core::ErrorCode;
using wire::Milestone;
using Clock = std::chrono::steady_clock;

constexpr auto kDetachLimit = std::chrono::seconds(30);

/// "/usr/bin/python3 train.py" for the name of the session.
std::vector<std::string> wordsOf(pid_t pid) {
    std::istringstream words(commandOf(pid));
    std::vector<std::string> list;
    for (std::string word; words >> word;) list.push_back(word);
    if (list.empty()) list.push_back("process-" + std::to_string(pid));
    return list;
}

std::vector<pid_t> allOf(const AttachOptions& options) {
    std::vector<pid_t> pids{options.pid};
    pids.insert(pids.end(), options.others.begin(), options.others.end());
    return pids;
}

/// Takes records in until there is a reason to end, which it returns; empty: all steps are there.
std::string receive(Server& server, const AttachOptions& options, const Progress& progress) {
    Receiver receiver(server, progress);
    const auto begin = Clock::now();
    while (!server.done()) {
        receiver.poll();
        if (server.failed()) return "nothing more could be recorded";
        if (SignalFlag::raised(SIGINT) || SignalFlag::raised(SIGTERM))
            return "the recording was interrupted";
        if (SignalFlag::raised(SIGUSR1)) return "the recording was ended by 'highwater detach'";
        if (gpuRefusal(server, options)) return "CUPTI refuses";
        if (options.duration && Clock::now() - begin > *options.duration) return "the time is over";
        if (!server.connected())
            return endSoon(allOf(options)) ? "the process ended" : "the agent left the process";
    }
    return "";
}

Error noStep(const Server& server, const AttachOptions& options, const std::string& why) {
    std::string what = "no step of " + named(options.pid) +
                       " was recorded: " + (why.empty() ? "it completed none" : why) +
                       "; seen: " + whatWasSeen(server);
    const Assembler* recorded = server.recorded();
    if (recorded != nullptr && !recorded->faults().empty())
        what += "; the shim gave up: " + recorded->faults().front();
    if (options.onOom && server.saw(Milestone::Capture))
        return {ErrorCode::Target, named(options.pid) + " did not run out of memory: " + why, ""};
    return {ErrorCode::Target, what,
            "the first recorded step begins after the Optimizer.step under way: give it more time"};
}

core::Status checkOptions(const AttachOptions& options) {
    if (options.duration && options.duration->count() <= 0)
        return Error{ErrorCode::Usage, "--duration must be above 0 seconds", ""};
    return checkCapture(options);
}

}  // namespace

core::Result<AttachSummary> attach(const AttachOptions& options, const Progress& progress) {
    if (core::Status status = checkOptions(options); !status) return status.error();
    auto agent = findAgent(options.agentPath);
    if (!agent) return agent.error();
    AttachSummary summary;
    const auto targets = claimAll(allOf(options), *agent);
    if (!targets) return targets.error();
    const auto folder = folderSeenBy(allOf(options));
    if (!folder) return folder.error();
    auto output = chooseOutput(options, wordsOf(options.pid), progress);
    if (!output) return output.error();
    summary.session = *output;
    wire::ConfigRecord config = configOf(options, frameworkOfProcess(options.pid), progress);
    config.flags = (config.flags | wire::kConfigRunning) & ~wire::kConfigNative;
    if (options.onOom) config.steps = 1;
    if (options.endless) config.steps = std::numeric_limits<std::int32_t>::max();
    const auto about = statusOf(options.pid);
    auto server = Server::open(summary.session, config,
                               about ? std::optional(about->uid) : std::nullopt, folder->string());
    if (!server) return server.error();

    const SignalFlag interrupt(SIGINT), terminate(SIGTERM), detached(SIGUSR1);
    (*server)->expect(targets->size());
    const auto stopped = enterAll(**server, *targets, *agent, options.patience, progress);
    if (!stopped) return stopped.error();
    summary.stopped = *stopped;
    yieldToProgram();
    const std::string why = receive(**server, options, progress);
    const bool left = leave(**server, allOf(options));
    const core::Status written = (*server)->finish();
    if (const auto refused = gpuRefusal(**server, options)) return *refused;
    if (!written) return written.error();
    if ((*server)->steps() == 0) return noStep(**server, options, why);
    summarize(**server, options.endless ? 0 : options.onOom ? 1 : options.steps, summary);
    if (!why.empty()) summary.notes.push_back(why);
    if (!left)
        summary.notes.push_back(named(options.pid) +
                                " has not left its last operation yet; what is left of the "
                                "recording goes when it does");
    return summary;
}

core::Status detach(pid_t pid) {
    const auto holder = Claim::holder(pid);
    if (!holder)
        return Error{ErrorCode::Target, named(pid) + " is not being recorded",
                     "list training processes with 'highwater ps'"};
    if (*holder == 0)
        return Error{ErrorCode::Target,
                     named(pid) + " is recorded by a process that cannot be seen from here",
                     "run 'highwater detach' where the recording was started: in another "
                     "container, or on the machine itself"};
    if (kill(*holder, SIGUSR1) != 0)
        return Error{ErrorCode::Target, "cannot reach its recorder, " + named(*holder), ""};
    const auto deadline = Clock::now() + kDetachLimit;
    while (Claim::holder(pid)) {
        if (Clock::now() > deadline)
            return Error{ErrorCode::Target, "its recorder, " + named(*holder) + ", does not end",
                         "end it with 'kill " + std::to_string(*holder) + "'"};
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return {};
}

}  // namespace hw::profiler
