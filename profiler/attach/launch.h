// SPDX-License-Identifier: MIT
// Starts a program with the agent preloaded.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"

namespace hw::profiler {

struct LaunchOptions {
    std::vector<std::string> command;
    std::string agentPath;
    std::string socketPath;
    bool stdoutToStderr = false;
};

/// A started program. Signals that end `highwater` from the terminal reach it by itself: it stays
/// in the same process group.
class Child {
public:
    explicit Child(pid_t pid) : pid_(pid) {}
    pid_t pid() const { return pid_; }
    /// The wait status once the program has ended; nothing while it runs. Does not block.
    std::optional<int> poll();
    /// Waits until the program has ended; its wait status.
    int wait();

private:
    pid_t pid_;
    std::optional<int> status_;
};

/// Errors: Target when the program cannot be started (no such program, not executable).
core::Result<Child> launch(const LaunchOptions& options);

/// As a shell has it: 128 + signal where one ended the program.
int exitStatusOf(int waitStatus);
/// "exited with status 3", "was ended by signal 9 (Killed)".
std::string describeExit(int waitStatus);

}  // namespace hw::profiler
