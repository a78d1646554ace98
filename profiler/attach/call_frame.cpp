// SPDX-License-Identifier: MIT
#include "profiler/attach/call_frame.h"

#include <cpuid.h>
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include <algorithm>
#include <cstring>

namespace hw::profiler {
namespace {

constexpr std::uint64_t kRedZone = 128;  // below the stack pointer, in use by the function there
constexpr std::uint64_t kReturnAddresses = 4 * sizeof(std::uint64_t);
constexpr std::size_t kVectorAlignment = 64;
// The XSAVE area: 512 bytes of x87 and SSE state, then a header that begins with the components
// that are in use, then the others.
constexpr std::size_t kLegacyBytes = 512, kHeaderBytes = 64, kSoftwareBytesAt = 464;
constexpr std::uint64_t kLegacyComponents = 3;
// Flags of a frame in uc_flags (asm/ucontext.h): it has an XSAVE area, and a stack segment.
constexpr unsigned long kFrameFlags = 1 | 2 | 4;
// What an interrupted system call holds in rax until it is started again (linux/errno.h).
constexpr long kRestart = -512, kRestartNoInterrupt = -513, kRestartNoHandler = -514;
constexpr long kRestartBlock = -516;
constexpr std::uint64_t kSyscallBytes = 2;  // of the instruction

/// Bytes of an XSAVE area with these components.
std::size_t areaBytes(std::uint64_t components) {
    std::size_t bytes = kLegacyBytes + kHeaderBytes;
    for (unsigned component = 2; component < 63; ++component) {
        unsigned size = 0, offset = 0, flags = 0, reserved = 0;
        if ((components >> component & 1) != 0 &&
            __get_cpuid_count(0xD, component, &size, &offset, &flags, &reserved) != 0)
            bytes = std::max<std::size_t>(bytes, offset + size);
    }
    return bytes;
}

/// The state as the kernel stores it in a signal frame.
std::string vectorArea(const std::vector<std::byte>& vectors) {
    std::uint64_t components = 0;
    if (vectors.size() >= kLegacyBytes + sizeof(components))
        std::memcpy(&components, vectors.data() + kLegacyBytes, sizeof(components));
    const std::size_t bytes = std::min(areaBytes(components), vectors.size());
    std::string area(reinterpret_cast<const char*>(vectors.data()), bytes);
    _fpx_sw_bytes about{};
    about.magic1 = FP_XSTATE_MAGIC1;
    about.extended_size = static_cast<std::uint32_t>(bytes + FP_XSTATE_MAGIC2_SIZE);
    about.xstate_bv = components | kLegacyComponents;
    about.xstate_size = static_cast<std::uint32_t>(bytes);
    std::memcpy(area.data() + kSoftwareBytesAt, &about, sizeof(about));
    const std::uint32_t end = FP_XSTATE_MAGIC2;
    area.append(reinterpret_cast<const char*>(&end), sizeof(end));
    return area;
}

ucontext_t contextOf(const ThreadState& state, std::uint64_t vectorsAt) {
    const user_regs_struct& from = state.registers;
    const std::pair<int, std::uint64_t> registers[] = {{REG_R8, from.r8},
                                                       {REG_R9, from.r9},
                                                       {REG_R10, from.r10},
                                                       {REG_R11, from.r11},
                                                       {REG_R12, from.r12},
                                                       {REG_R13, from.r13},
                                                       {REG_R14, from.r14},
                                                       {REG_R15, from.r15},
                                                       {REG_RDI, from.rdi},
                                                       {REG_RSI, from.rsi},
                                                       {REG_RBP, from.rbp},
                                                       {REG_RBX, from.rbx},
                                                       {REG_RDX, from.rdx},
                                                       {REG_RAX, from.rax},
                                                       {REG_RCX, from.rcx},
                                                       {REG_RSP, from.rsp},
                                                       {REG_RIP, from.rip},
                                                       {REG_EFL, from.eflags},
                                                       {REG_CSGSFS, from.cs | from.ss << 48}};
    ucontext_t context{};  // an alternate stack of no bytes: the thread keeps its own
    context.uc_flags = kFrameFlags;
    for (const auto& [which, value] : registers)
        context.uc_mcontext.gregs[which] = static_cast<greg_t>(value);
    context.uc_mcontext.fpregs = reinterpret_cast<fpregset_t>(vectorsAt);
    std::memcpy(&context.uc_sigmask, &state.blocked, sizeof(state.blocked));
    return context;
}

}  // namespace

void restartCall(user_regs_struct& registers) {
    if (static_cast<long>(registers.orig_rax) < 0) return;
    const auto result = static_cast<long>(registers.rax);
    const bool again =
        result == kRestart || result == kRestartNoInterrupt || result == kRestartNoHandler;
    if (again || result == kRestartBlock) {
        registers.rax = again ? registers.orig_rax : SYS_restart_syscall;
        registers.rip -= kSyscallBytes;
    }
    registers.orig_rax = ~0ull;
}

CallFrame::CallFrame(const ThreadState& state, const ReturnPath& path) {
    const std::string vectors = vectorArea(state.vectors);
    const std::uint64_t top = state.registers.rsp - kRedZone;
    const std::uint64_t vectorsAt = (top - vectors.size()) & ~(kVectorAlignment - 1);
    // As after a call instruction: the stack was aligned before it.
    address_ = ((vectorsAt - sizeof(ucontext_t) - kReturnAddresses) & ~0xfull) - 8;
    const std::uint64_t returns[] = {path.store, 0, path.pause, path.restore};  // 0: the result
    const ucontext_t context = contextOf(state, vectorsAt);
    bytes_.assign(reinterpret_cast<const char*>(returns), sizeof(returns));
    bytes_.append(reinterpret_cast<const char*>(&context), sizeof(context));
    bytes_.resize(vectorsAt - address_);
    bytes_ += vectors;
}

}  // namespace hw::profiler
