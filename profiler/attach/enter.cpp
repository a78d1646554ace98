// SPDX-License-Identifier: MIT
#include "profiler/attach/enter.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <sstream>
#include <string_view>
#include <thread>

#include "core/base/file.h"
#include "profiler/attach/inject.h"
#include "profiler/attach/process.h"

namespace hw::profiler {
namespace {

using core::Error;
using core::ErrorCode;
using Clock = std::chrono::steady_clock;

constexpr auto kWakeAfter = std::chrono::milliseconds(300);
constexpr auto kLoadAfter = std::chrono::milliseconds(1200);
constexpr auto kLeaveLimit = std::chrono::seconds(20);  // for the hooks to be taken out

bool hasEnded(pid_t pid) {
    const auto status = statusOf(pid);
    return !status || status->state == 'Z' || status->state == 'X';
}

std::string firstLine(const std::string& path) {
    const int file = core::openOrdinaryFile(path);  // the folder may be another user's
    if (file < 0) return {};
    char text[512];
    const ssize_t size = std::max<ssize_t>(0, read(file, text, sizeof(text)));
    close(file);
    const std::string_view line(text, static_cast<std::size_t>(size));
    return std::string(line.substr(0, line.find('\n')));
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
core::Status join(Server& server, Injector& injector, pid_t pid,
                  std::chrono::duration<double> patience, const Progress& progress) {
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
        if (waited > patience) {
            std::ostringstream seconds;
            seconds << patience.count();
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

bool allEnded(const std::vector<pid_t>& pids) {
    return std::all_of(pids.begin(), pids.end(), hasEnded);
}

}  // namespace

bool endSoon(const std::vector<pid_t>& pids) {
    constexpr std::chrono::seconds kLimit{1};
    for (const auto deadline = Clock::now() + kLimit; Clock::now() < deadline;) {
        if (allEnded(pids)) return true;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
}

core::Result<std::vector<Target>> claimAll(const std::vector<pid_t>& pids,
                                           const std::string& agent) {
    std::vector<Target> targets;
    for (const pid_t pid : pids) {
        const auto entries = checkTarget(pid, agent);
        if (!entries) return entries.error();
        auto claim = Claim::take(pid);
        if (!claim) return claim.error();
        targets.push_back({pid, *entries, std::move(*claim)});
    }
    return targets;
}

core::Result<std::chrono::nanoseconds> enterAll(Server& server, const std::vector<Target>& targets,
                                                const std::string& agent,
                                                std::chrono::duration<double> patience,
                                                const Progress& progress) {
    std::chrono::nanoseconds longest{};
    for (const Target& target : targets) {
        Injector injector(target.pid, target.entries, agent, server.socketPath(),
                          server.errorPath());
        const core::Status joined = join(server, injector, target.pid, patience, progress);
        if (!joined) return joined.error();
        longest = std::max(longest, injector.longestStop());
        progress("attached to " + named(target.pid));
    }
    return longest;
}

bool leave(Server& server, const std::vector<pid_t>& pids) {
    server.hangUp();
    const auto deadline = Clock::now() + kLeaveLimit;
    while (server.connected()) {
        const bool ended = allEnded(pids);
        server.poll(5);  // also for what a process has said at its end
        if (ended) break;
        if (Clock::now() > deadline) return false;
    }
    return true;
}

}  // namespace hw::profiler
