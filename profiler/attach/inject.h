// SPDX-License-Identifier: MIT
// Gets the agent into a running Python process.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>

#include "core/base/result.h"
#include "profiler/attach/preflight.h"
#include "profiler/attach/tracee.h"

namespace hw::profiler {

/// The ways in, mildest first. In each, only the main thread is stopped, for less than a
/// millisecond, and nothing of the process's own is taken: no lock, no memory of its heap. Where
/// the recorder is killed meanwhile, the process goes on as it was.
class Injector {
public:
    /// `errorFile`: where the process writes why the agent could not be started.
    Injector(pid_t pid, const Entries& entries, std::string agentPath, std::string socketPath,
             std::string errorFile);

    /// Asks the interpreter (Py_AddPendingCall) to load the agent at its next safe point.
    core::Status post();
    /// Whether the main thread waits for another (as in Thread.join), which no safe point ends.
    bool waitsForLock() const;
    /// Ends that wait as a signal would; Python looks for pending calls and waits on.
    core::Status wake();
    /// Whether the main thread sleeps in the kernel (time.sleep, select), out of its heap.
    bool sleeps() const;
    /// Loads the agent from there. The pending call finds it running when it comes to its turn.
    core::Status loadWhileAsleep();

    /// The longest time that the main thread was stopped.
    std::chrono::nanoseconds longestStop() const { return longestStop_; }

private:
    std::string startCommand(std::uint64_t scratch) const;
    void resume(Tracee& tracee);

    pid_t pid_;
    Entries entries_;
    std::string agentPath_, socketPath_, errorFile_;
    std::chrono::nanoseconds longestStop_{};
};

}  // namespace hw::profiler
