// SPDX-License-Identifier: MIT
#include "profiler/attach/tracee.h"

#include <elf.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <utility>

#include "profiler/attach/process.h"

namespace hw::profiler {
namespace {

using core::Error;
using core::ErrorCode;
using Clock = std::chrono::steady_clock;

constexpr auto kStopLimit = std::chrono::seconds(1);
constexpr long kLookNanoseconds = 20'000'000;     // how often a wait is interrupted to see the time
constexpr std::size_t kVectorStateBytes = 16384;  // AMX machines have 11,008
constexpr std::uint64_t kRedZone = 128;           // below the stack pointer, in use by the callee
constexpr std::uint64_t kReturnAddress = 1;       // nothing is mapped there: returning stops
// What an interrupted system call holds in rax until it is started again (linux/errno.h).
constexpr long kRestartFirst = -516, kRestartLast = -512;

Error failed(pid_t thread, const std::string& what) {
    return {ErrorCode::Target, named(thread) + " " + what, ""};
}

Error notTraceable(pid_t thread, int error) {
    if (error == ESRCH) return failed(thread, "has ended");
    return {ErrorCode::Target, named(thread) + " cannot be traced: " + std::strerror(error),
            "attach as root, or start it with 'highwater record -- …' instead"};
}

/// Interrupts this thread's system calls again and again, so that a wait for another process can
/// have an end: it has no limit of its own, and to ask again and again would make the stop longer
/// (a thread that yields may get its processor back after milliseconds).
class Interruptions {
public:
    Interruptions() {
        struct sigaction nothing {};
        nothing.sa_handler = [](int) {};
        sigaction(SIGRTMAX, &nothing, nullptr);  // without SA_RESTART
        sigevent event{};
        event.sigev_notify = SIGEV_THREAD_ID;
        event.sigev_signo = SIGRTMAX;
        event._sigev_un._tid = gettid();
        const itimerspec period{{0, kLookNanoseconds}, {0, kLookNanoseconds}};
        running_ = timer_create(CLOCK_MONOTONIC, &event, &timer_) == 0 &&
                   timer_settime(timer_, 0, &period, nullptr) == 0;
    }
    ~Interruptions() {
        if (running_) timer_delete(timer_);
    }
    Interruptions(const Interruptions&) = delete;
    Interruptions& operator=(const Interruptions&) = delete;
    bool running() const { return running_; }

private:
    timer_t timer_{};
    bool running_ = false;
};

}  // namespace

core::Result<Tracee> Tracee::stop(pid_t thread) {
    if (ptrace(PTRACE_SEIZE, thread, nullptr, nullptr) != 0) return notTraceable(thread, errno);
    Tracee tracee(thread);
    if (ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr) != 0) return notTraceable(thread, errno);
    if (const core::Status stopped = tracee.waitForStop(); !stopped) return stopped.error();
    if (const core::Status saved = tracee.saveState(); !saved) return saved.error();
    return tracee;
}

Tracee::Tracee(Tracee&& other) noexcept
    : thread_(std::exchange(other.thread_, 0)),
      saved_(other.saved_),
      vectorState_(std::move(other.vectorState_)),
      signals_(std::move(other.signals_)),
      stopped_(std::exchange(other.stopped_, false)),
      saves_(other.saves_),
      since_(other.since_) {}

Tracee::~Tracee() {
    resume();
}

core::Result<int> Tracee::nextStop(Clock::time_point deadline) {
    const Interruptions interruptions;
    const int options = __WALL | (interruptions.running() ? 0 : WNOHANG);
    for (;;) {
        int status = 0;
        const pid_t got = waitpid(thread_, &status, options);
        if (got == thread_) {
            if (WIFSTOPPED(status)) return status;
            stopped_ = false;
            return failed(std::exchange(thread_, 0), "has ended");
        }
        if (got < 0 && errno != EINTR) return failed(std::exchange(thread_, 0), "has ended");
        if (Clock::now() > deadline) return failed(thread_, "did not answer in time");
    }
}

core::Status Tracee::waitForStop() {
    const auto status = nextStop(Clock::now() + kStopLimit);
    if (!status) {
        if (thread_ == 0) return status.error();
        return Error{
            ErrorCode::Target,
            "process " + std::to_string(thread_) + " cannot be stopped: it is inside of the kernel",
            "it may wait for a disk or a network drive; try again later"};
    }
    stopped_ = true;
    since_ = Clock::now();
    if (*status >> 16 == 0) signals_.push_back(WSTOPSIG(*status));
    return {};
}

core::Status Tracee::saveState() {
    vectorState_.resize(kVectorStateBytes);
    iovec vector{vectorState_.data(), vectorState_.size()};
    if (ptrace(PTRACE_GETREGS, thread_, nullptr, &saved_) != 0 ||
        ptrace(PTRACE_GETREGSET, thread_, NT_X86_XSTATE, &vector) != 0)
        return notTraceable(thread_, errno);
    vectorState_.resize(vector.iov_len);
    saves_ = true;
    return {};
}

core::Result<std::uint64_t> Tracee::call(std::uint64_t function,
                                         std::initializer_list<std::uint64_t> arguments,
                                         std::chrono::milliseconds limit) {
    user_regs_struct registers = saved_;
    unsigned long long* const slots[] = {&registers.rdi, &registers.rsi, &registers.rdx,
                                         &registers.rcx, &registers.r8,  &registers.r9};
    std::size_t used = 0;
    for (const std::uint64_t argument : arguments) *slots[used++] = argument;
    // As after a call instruction: the return address on a stack that was aligned before.
    registers.rsp = ((saved_.rsp - kRedZone) & ~0xfull) - 8;
    registers.rip = function;
    registers.rax = 0;
    registers.orig_rax = ~0ull;  // no system call to start again
    if (ptrace(PTRACE_POKEDATA, thread_, registers.rsp, kReturnAddress) != 0 ||
        ptrace(PTRACE_SETREGS, thread_, nullptr, &registers) != 0)
        return notTraceable(thread_, errno);
    const auto deadline = Clock::now() + limit;
    for (;;) {
        if (ptrace(PTRACE_CONT, thread_, nullptr, nullptr) != 0)
            return notTraceable(thread_, errno);
        const auto status = nextStop(deadline);
        if (!status) {
            if (thread_ == 0) return status.error();
            ptrace(PTRACE_INTERRUPT, thread_, nullptr, nullptr);
            const auto again = nextStop(Clock::now() + kStopLimit);
            return again ? status.error() : again.error();
        }
        const int signal = WSTOPSIG(*status);
        if (*status >> 16 != 0) continue;  // the stop that was asked for, late
        if (ptrace(PTRACE_GETREGS, thread_, nullptr, &registers) != 0)
            return notTraceable(thread_, errno);
        if (signal == SIGSEGV && registers.rip == kReturnAddress) return registers.rax;
        if (signal == SIGSEGV || signal == SIGBUS || signal == SIGILL)
            return failed(thread_, "could not carry out a call");
        signals_.push_back(signal);
    }
}

core::Status Tracee::write(std::uint64_t address, const std::string& bytes) const {
    const iovec local{const_cast<char*>(bytes.data()), bytes.size()};
    const iovec remote{reinterpret_cast<void*>(address), bytes.size()};
    if (process_vm_writev(thread_, &local, 1, &remote, 1, 0) != static_cast<ssize_t>(bytes.size()))
        return failed(thread_, std::string("cannot be written to: ") + std::strerror(errno));
    return {};
}

bool Tracee::inInterruptedCall() const {
    const auto result = static_cast<long>(saved_.rax);
    return static_cast<long>(saved_.orig_rax) >= 0 && result >= kRestartFirst &&
           result <= kRestartLast;
}

void Tracee::endInterruptedCall() {
    saved_.rax = static_cast<unsigned long long>(-EINTR);
    saved_.orig_rax = ~0ull;
}

std::chrono::nanoseconds Tracee::resume() {
    if (thread_ == 0) return {};
    const pid_t thread = std::exchange(thread_, 0);
    if (stopped_ && saves_) {
        iovec vector{vectorState_.data(), vectorState_.size()};
        ptrace(PTRACE_SETREGSET, thread, NT_X86_XSTATE, &vector);
        ptrace(PTRACE_SETREGS, thread, nullptr, &saved_);
    }
    // One signal goes with the release, the others by themselves.
    const int first = signals_.empty() ? 0 : signals_.front();
    for (std::size_t i = 1; i < signals_.size(); ++i) syscall(SYS_tkill, thread, signals_[i]);
    ptrace(PTRACE_DETACH, thread, nullptr, first);
    stopped_ = false;
    return Clock::now() - since_;
}

}  // namespace hw::profiler
