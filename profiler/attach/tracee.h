// SPDX-License-Identifier: MIT
// One stopped thread of another process, and calls made on its behalf.
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "core/base/result.h"

namespace hw::profiler {

/// Stops a thread with ptrace and lets it go on, unchanged, when destroyed. Signals that arrive
/// meanwhile are handed on. Only 64-bit x86.
class Tracee {
public:
    /// Errors: Target when it cannot be traced, has ended, or does not stop within a second.
    static core::Result<Tracee> stop(pid_t thread);
    Tracee(Tracee&& other) noexcept;
    Tracee& operator=(Tracee&&) = delete;
    ~Tracee();

    /// Calls a function of the process with up to six integers. Errors: Target when the thread ends
    /// or the call takes longer than `limit`; it is then abandoned.
    core::Result<std::uint64_t> call(std::uint64_t function,
                                     std::initializer_list<std::uint64_t> arguments,
                                     std::chrono::milliseconds limit);
    core::Status write(std::uint64_t address, const std::string& bytes) const;

    /// Whether it was stopped in a system call that will be started again.
    bool inInterruptedCall() const;
    /// That call then ends with EINTR instead.
    void endInterruptedCall();

    /// Lets the thread go on; how long it stood still.
    std::chrono::nanoseconds resume();

private:
    explicit Tracee(pid_t thread) : thread_(thread) {}
    core::Status waitForStop();
    core::Status saveState();
    core::Result<int> nextStop(std::chrono::steady_clock::time_point deadline);

    pid_t thread_;
    user_regs_struct saved_{};
    std::vector<std::byte> vectorState_;  // NT_X86_XSTATE: calls use these registers freely
    std::vector<int> signals_;            // to be handed on
    bool stopped_ = false;
    bool saves_ = false;  // saved_ and vectorState_ hold its state
    std::chrono::steady_clock::time_point since_;
};

}  // namespace hw::profiler
