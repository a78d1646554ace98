// SPDX-License-Identifier: MIT
#include "profiler/attach/attach.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <limits>
#include <sstream>
#include <thread>

#include "profiler/attach/claim.h"
#include "profiler/attach/inject.h"
#include "profiler/attach/preflight.h"
#include "profiler/attach/process.h"

namespace hw::profiler {
namespace {

using core::Error;
using core::ErrorCode;
using wire::Milestone;
using Clock = std::chrono::steady_clock;

constexpr auto kWakeAfter = std::chrono::milliseconds(300);
constexpr auto kLoadAfter = std::chrono::milliseconds(1200);
constexpr auto kLeaveLimit = std::chrono::seconds(20);  // for the hooks to be taken out
constexpr auto kDetachLimit = std::chrono::seconds(30);

bool hasEnded(pid_t pid) {
    const auto status = statusOf(pid);
    return !status || status->state == 'Z' || status->state == 'X';
}

std::string firstLine(const std::string& path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

/// "/usr/bin/python3 train.py" for the name of the session.
std::vector<std::string> wordsOf(pid_t pid) {
    std::istringstream words(commandOf(pid));
    std::vector<std::string> list;
    for (std::string word; words >> word;) list.push_back(word);
    if (list.empty()) list.push_back("process-" + std::to_string(pid));
    return list;
}

/// The way in that the state of the main thread asks for, each once.
core::Status nextWay(Injector& injector, Clock::duration waited, bool& woken, bool& loaded) {
    if (!woken && waited > kWakeAfter && injector.waitsForLock()) {
        woken = true;
        return injector.wake();
    }
    if (!loaded && waited > kLoadAfter && injector.sleeps()) {
        loaded = true;
        return injector.loadWhileAsleep();
    }
    return {};
}

Error ended(pid_t pid, const std::string& when) {
    return {ErrorCode::Target, named(pid) + " ended " + when,
            "check the program's own output; list training processes with 'highwater ps'"};
}

/// Gets the agent in and waits until it answers.
core::Status join(Server& server, Injector& injector, pid_t pid, const AttachOptions& options,
                  const Progress& progress) {
    const std::size_t before = server.admitted();
    if (const core::Status posted = injector.post(); !posted) return posted.error();
    const auto begin = Clock::now();
    bool woken = false, loaded = false, told = false;
    while (server.admitted() == before) {
        server.poll(5);
        if (const std::string line = firstLine(server.errorPath()); !line.empty())
            return Error{ErrorCode::Target, named(pid) + " could not load the agent: " + line,
                         "start it with 'highwater record -- …' instead"};
        if (server.admitted() > before) break;
        if (hasEnded(pid)) return ended(pid, "before it could be attached to");
        if (SignalFlag::raised(SIGINT) || SignalFlag::raised(SIGTERM))
            return Error{ErrorCode::Target,
                         "interrupted before " + named(pid) + " took the agent in", ""};
        const auto waited = Clock::now() - begin;
        if (const core::Status way = nextWay(injector, waited, woken, loaded); !way)
            return way.error();
        if (waited > options.patience) {
            std::ostringstream seconds;
            seconds << options.patience.count();
            return Error{ErrorCode::Target,
                         named(pid) + " has been inside of one operation for " + seconds.str() +
                             " s and could not take the agent in",
                         "try again, or start it with 'highwater record -- …' instead"};
        }
        if (!told && waited > std::chrono::seconds(2)) {
            told = true;
            progress("waiting for " + named(pid) + " to reach a safe point");
        }
    }
    return {};
}

std::vector<pid_t> allOf(const AttachOptions& options) {
    std::vector<pid_t> pids{options.pid};
    pids.insert(pids.end(), options.others.begin(), options.others.end());
    return pids;
}

bool allEnded(const AttachOptions& options) {
    const auto pids = allOf(options);
    return std::all_of(pids.begin(), pids.end(), hasEnded);
}

/// A process that ends closes its connections a little before it is gone.
bool endSoon(const AttachOptions& options) {
    constexpr std::chrono::seconds kLimit{1};
    for (const auto deadline = Clock::now() + kLimit; Clock::now() < deadline;) {
        if (allEnded(options)) return true;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
}

/// A process that can be attached to, claimed so that no other recorder does.
struct Target {
    pid_t pid;
    Entries entries;
    Claim claim;
};

core::Result<std::vector<Target>> claimAll(const AttachOptions& options, const std::string& agent) {
    std::vector<Target> targets;
    for (const pid_t pid : allOf(options)) {
        const auto entries = checkTarget(pid, agent);
        if (!entries) return entries.error();
        auto claim = Claim::take(pid);
        if (!claim) return claim.error();
        targets.push_back({pid, *entries, std::move(*claim)});
    }
    return targets;
}

/// Gets the agent into each process; the longest time that one was stopped.
core::Result<std::chrono::nanoseconds> joinAll(Server& server, const std::vector<Target>& targets,
                                               const std::string& agent,
                                               const AttachOptions& options,
                                               const Progress& progress) {
    std::chrono::nanoseconds longest{};
    for (const Target& target : targets) {
        Injector injector(target.pid, target.entries, agent, server.socketPath(),
                          server.errorPath());
        const core::Status joined = join(server, injector, target.pid, options, progress);
        if (!joined) return joined.error();
        longest = std::max(longest, injector.longestStop());
        progress("attached to " + named(target.pid));
    }
    return longest;
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
            return endSoon(options) ? "the process ended" : "the agent left the process";
    }
    return "";
}

/// Waits until nothing of ours runs in the process any more. False: it still might.
bool leave(Server& server, const AttachOptions& options) {
    server.hangUp();
    const auto deadline = Clock::now() + kLeaveLimit;
    while (server.connected() && !allEnded(options)) {
        server.poll(5);
        if (Clock::now() > deadline) return false;
    }
    return true;
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
    auto output = chooseOutput(options, wordsOf(options.pid));
    const auto targets = claimAll(options, *agent);
    if (!targets) return targets.error();
    if (!output) return output.error();
    summary.session = *output;
    wire::ConfigRecord config = configOf(options, frameworkOfProcess(options.pid), progress);
    config.flags = (config.flags | wire::kConfigRunning) & ~wire::kConfigNative;
    if (options.onOom) config.steps = 1;
    if (options.endless) config.steps = std::numeric_limits<std::int32_t>::max();
    const auto about = statusOf(options.pid);
    auto server =
        Server::open(summary.session, config, about ? std::optional(about->uid) : std::nullopt);
    if (!server) return server.error();

    const SignalFlag interrupt(SIGINT), terminate(SIGTERM), detached(SIGUSR1);
    (*server)->expect(targets->size());
    const auto stopped = joinAll(**server, *targets, *agent, options, progress);
    if (!stopped) return stopped.error();
    summary.stopped = *stopped;
    yieldToProgram();
    const std::string why = receive(**server, options, progress);
    const bool left = leave(**server, options);
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
