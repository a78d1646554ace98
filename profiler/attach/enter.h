// SPDX-License-Identifier: MIT
// Into processes that run already, and out again.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "profiler/attach/claim.h"
#include "profiler/attach/preflight.h"
#include "profiler/attach/recording.h"

namespace hw::profiler {

/// A process that can be attached to, claimed so that no other recorder does.
struct Target {
    pid_t pid;
    Entries entries;
    Claim claim;
};

/// Errors: Target (checkTarget(), or somebody else is in one of them).
core::Result<std::vector<Target>> claimAll(const std::vector<pid_t>& pids,
                                           const std::string& agent);
/// Gets the agent into each process; the longest time that one was stopped. Errors: Target (no safe
/// moment within `patience`, an interrupt, the process ended).
core::Result<std::chrono::nanoseconds> enterAll(Server& server, const std::vector<Target>& targets,
                                                const std::string& agent,
                                                std::chrono::duration<double> patience,
                                                const Progress& progress);
/// Waits until nothing of ours runs in the processes any more. False: it still might.
bool leave(Server& server, const std::vector<pid_t>& pids);
/// All have ended: one that ends closes its connections a little before it is gone.
bool endSoon(const std::vector<pid_t>& pids);

}  // namespace hw::profiler
