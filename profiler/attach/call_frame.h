// SPDX-License-Identifier: MIT
// What lies on a thread's stack while it carries out a call for us: it makes the thread what it was
// before, by itself. The recorder may be killed at any moment.
#pragma once

#include <sys/user.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hw::profiler {

/// Code of the process that a call returns through. Each piece is entered by a return.
struct ReturnPath {
    std::uint64_t store = 0;    // mov %rax,(%rbx); pop %rbx; ret
    std::uint64_t pause = 0;    // getppid(), where a recorder that still lives takes over
    std::uint64_t restore = 0;  // mov $SYS_rt_sigreturn,%rax; syscall
};

/// How the pieces look, as machine code.
inline constexpr std::string_view kStoreCode{"\x48\x89\x03\x5b\xc3", 5};
inline constexpr std::string_view kRestoreCode{"\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05", 9};

/// Of a stopped thread.
struct ThreadState {
    user_regs_struct registers{};
    std::vector<std::byte> vectors;  // NT_X86_XSTATE
    std::uint64_t blocked = 0;       // signals
};

/// A system call that was interrupted, and that the kernel would start again, is started again by
/// the thread's own next instruction.
void restartCall(user_regs_struct& registers);

/// The call's return addresses, and behind them a signal frame of the kernel's layout: the thread
/// returns from the call as from a signal handler.
class CallFrame {
public:
    /// `state`: what the thread becomes.
    CallFrame(const ThreadState& state, const ReturnPath& path);

    /// Where the bytes belong; the stack pointer of the called function.
    std::uint64_t address() const { return address_; }
    const std::string& bytes() const { return bytes_; }
    /// Where the result is stored. The called function must keep this address in rbx.
    std::uint64_t result() const { return address_ + sizeof(std::uint64_t); }
    /// The stack pointer while the thread is in getppid().
    std::uint64_t pauseStack() const { return address_ + 3 * sizeof(std::uint64_t); }

private:
    std::uint64_t address_;
    std::string bytes_;
};

}  // namespace hw::profiler
