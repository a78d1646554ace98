// SPDX-License-Identifier: MIT
// One stopped thread of another process, and calls made on its behalf.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>

#include "core/base/result.h"
#include "profiler/attach/call_frame.h"

namespace hw::profiler {

/// Stops a thread with ptrace and resumes it, unchanged, when destroyed. Signals that arrive
/// meanwhile reach it. If the recorder is killed, at whatever moment, the thread goes on unchanged,
/// too: a call that it carries out then ends by itself (CallFrame). Only 64-bit x86.
class Tracee {
public:
    /// Errors: Target when it cannot be traced, has ended, or does not stop within a second.
    static core::Result<Tracee> stop(pid_t thread, const ReturnPath& path);
    Tracee(Tracee&& other) noexcept;
    Tracee& operator=(Tracee&&) = delete;
    ~Tracee();

    /// Calls a function of the process with up to six integers. Errors: Target when the thread ends
    /// or the call takes longer than `limit`; it then ends by itself, and there is no other call.
    core::Result<std::uint64_t> call(std::uint64_t function,
                                     std::initializer_list<std::uint64_t> arguments,
                                     std::chrono::milliseconds limit);
    core::Status write(std::uint64_t address, const std::string& bytes) const;

    /// Whether it was stopped in a system call that will be started again.
    bool inInterruptedCall() const;
    /// That call then ends with EINTR instead.
    void endInterruptedCall();

    /// Resumes the thread; how long it stood still.
    std::chrono::nanoseconds resume();

private:
    /// What is to be done before it is resumed.
    enum class Left {
        Alone,      // nothing: it is as it was stopped, or restores itself
        Registers,  // they have changed
        All,        // it has carried out a call
    };

    Tracee(pid_t thread, const ReturnPath& path) : thread_(thread), path_(path) {}
    core::Status waitForStop();
    core::Status prepareCalls();
    void leaveRestartableSequence();
    core::Status waitForPause(std::chrono::milliseconds limit);
    bool isCrash(int signal) const;
    core::Result<int> nextStop(std::chrono::steady_clock::time_point deadline);
    bool read(std::uint64_t address, void* to, std::size_t bytes) const;

    pid_t thread_;
    ReturnPath path_;
    ThreadState state_;               // which it goes on with
    std::optional<CallFrame> frame_;  // on its stack
    Left left_ = Left::Alone;
    std::chrono::steady_clock::time_point since_;
};

}  // namespace hw::profiler
