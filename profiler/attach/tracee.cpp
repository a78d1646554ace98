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
constexpr int kSyscallStop = SIGTRAP | 0x80;      // with PTRACE_O_TRACESYSGOOD
constexpr std::uint64_t kDirectionFlag = 1 << 10;  // of eflags; clear in a call
// What an interrupted system call holds in rax until it is started again (linux/errno.h).
constexpr long kRestartFirst = -516, kRestartLast = -512;

// linux/ptrace.h and linux/rseq.h, which not every C library shows.
constexpr auto kGetRseqConfiguration = static_cast<__ptrace_request>(0x420f);
struct RseqConfiguration {
    std::uint64_t address;
    std::uint32_t bytes, signature, flags, pad;
};
constexpr std::uint64_t kRseqSequenceAt = 8;  // address of the running sequence; 0: none
struct RestartableSequence {
    std::uint32_t version, flags;
    std::uint64_t begin, bytes, abort;
};

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

core::Result<Tracee> Tracee::stop(pid_t thread, const ReturnPath& path) {
    if (ptrace(PTRACE_SEIZE, thread, nullptr, PTRACE_O_TRACESYSGOOD) != 0)
        return notTraceable(thread, errno);
    Tracee tracee(thread, path);
    if (const core::Status stopped = tracee.waitForStop(); !stopped) return stopped.error();
    if (ptrace(PTRACE_GETREGS, thread, nullptr, &tracee.state_.registers) != 0)
        return notTraceable(thread, errno);
    return tracee;
}

Tracee::Tracee(Tracee&& other) noexcept
    : thread_(std::exchange(other.thread_, 0)),
      path_(other.path_),
      state_(std::move(other.state_)),
      frame_(std::move(other.frame_)),
      left_(other.left_),
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
            return failed(std::exchange(thread_, 0), "has ended");
        }
        if (got < 0 && errno != EINTR) return failed(std::exchange(thread_, 0), "has ended");
        if (Clock::now() > deadline) return failed(thread_, "did not answer in time");
    }
}

core::Status Tracee::waitForStop() {
    for (const auto deadline = Clock::now() + kStopLimit;;) {
        if (ptrace(PTRACE_INTERRUPT, thread_, nullptr, nullptr) != 0)
            return notTraceable(thread_, errno);
        const auto status = nextStop(deadline);
        if (!status) {
            if (thread_ == 0) return status.error();
            return Error{ErrorCode::Target,
                         named(thread_) + " cannot be stopped: it is inside of the kernel",
                         "it may wait for a disk or a network drive; try again later"};
        }
        since_ = Clock::now();
        if (*status >> 16 != 0) return {};
        // A signal came first, and such a stop takes the place of the one that was asked for.
        if (ptrace(PTRACE_CONT, thread_, nullptr, WSTOPSIG(*status)) != 0)
            return notTraceable(thread_, errno);
    }
}

/// A thread that is interrupted within a restartable sequence has to begin it again. The kernel
/// sees to that where it resumes the thread, which for now is in another place.
void Tracee::leaveRestartableSequence() {
    RseqConfiguration configuration{};
    if (ptrace(kGetRseqConfiguration, thread_, sizeof(configuration), &configuration) <= 0 ||
        configuration.address == 0)
        return;
    std::uint64_t at = 0;
    RestartableSequence sequence{};
    if (!read(configuration.address + kRseqSequenceAt, &at, sizeof(at)) || at == 0 ||
        !read(at, &sequence, sizeof(sequence)))
        return;
    if (state_.registers.rip - sequence.begin < sequence.bytes)
        state_.registers.rip = sequence.abort;
}

core::Status Tracee::prepareCalls() {
    if (frame_) return {};
    state_.vectors.resize(kVectorStateBytes);
    iovec vectors{state_.vectors.data(), state_.vectors.size()};
    if (ptrace(PTRACE_GETREGSET, thread_, NT_X86_XSTATE, &vectors) != 0 ||
        ptrace(PTRACE_GETSIGMASK, thread_, sizeof(state_.blocked), &state_.blocked) != 0)
        return notTraceable(thread_, errno);
    state_.vectors.resize(vectors.iov_len);
    leaveRestartableSequence();
    restartCall(state_.registers);
    const CallFrame frame(state_, path_);
    if (core::Status written = write(frame.address(), frame.bytes()); !written) return written;
    frame_ = frame;
    return {};
}

core::Result<std::uint64_t> Tracee::call(std::uint64_t function,
                                         std::initializer_list<std::uint64_t> arguments,
                                         std::chrono::milliseconds limit) {
    if (const core::Status prepared = prepareCalls(); !prepared) return prepared.error();
    user_regs_struct registers = state_.registers;
    unsigned long long* const slots[] = {&registers.rdi, &registers.rsi, &registers.rdx,
                                         &registers.rcx, &registers.r8,  &registers.r9};
    std::size_t used = 0;
    for (const std::uint64_t argument : arguments) *slots[used++] = argument;
    registers.rsp = frame_->address();
    registers.rbx = frame_->result();
    registers.rip = function;
    registers.rax = 0;
    registers.eflags &= ~kDirectionFlag;
    if (ptrace(PTRACE_SETREGS, thread_, nullptr, &registers) != 0)
        return notTraceable(thread_, errno);
    left_ = Left::Alone;  // from now on it restores itself
    if (const core::Status paused = waitForPause(limit); !paused) return paused.error();
    left_ = Left::All;
    std::uint64_t result = 0;
    if (!read(frame_->result(), &result, sizeof(result)))
        return failed(thread_, "cannot be read from");
    return result;
}

/// Until the call has returned, and getppid() has, too.
core::Status Tracee::waitForPause(std::chrono::milliseconds limit) {
    const auto deadline = Clock::now() + limit;
    for (int signal = 0, seen = 0; seen < 2;) {  // the begin of getppid()'s system call, its end
        if (ptrace(PTRACE_SYSCALL, thread_, nullptr, signal) != 0)
            return notTraceable(thread_, errno);
        const auto status = nextStop(deadline);
        if (!status) {
            if (thread_ == 0) return status.error();
            ptrace(PTRACE_INTERRUPT, thread_, nullptr, nullptr);
            const auto stopped = nextStop(Clock::now() + kStopLimit);
            return stopped ? status.error() : stopped.error();
        }
        const bool signalled = *status >> 16 == 0;  // else it was asked to stop before
        signal = signalled ? WSTOPSIG(*status) : 0;
        if (signal == kSyscallStop) {
            signal = 0;
            user_regs_struct registers;
            if (ptrace(PTRACE_GETREGS, thread_, nullptr, &registers) != 0)
                return notTraceable(thread_, errno);
            seen += registers.orig_rax == SYS_getppid && registers.rsp == frame_->pauseStack();
        } else if (isCrash(signal)) {
            left_ = Left::All;
            return failed(thread_, "could not carry out a call");
        }
    }
    return {};
}

/// Whether the thread's own instruction has raised the signal.
bool Tracee::isCrash(int signal) const {
    siginfo_t about{};
    return (signal == SIGSEGV || signal == SIGBUS || signal == SIGILL || signal == SIGFPE) &&
           ptrace(PTRACE_GETSIGINFO, thread_, nullptr, &about) == 0 && about.si_code > 0;
}

bool Tracee::read(std::uint64_t address, void* to, std::size_t bytes) const {
    const iovec local{to, bytes};
    const iovec remote{reinterpret_cast<void*>(address), bytes};
    return process_vm_readv(thread_, &local, 1, &remote, 1, 0) == static_cast<ssize_t>(bytes);
}

core::Status Tracee::write(std::uint64_t address, const std::string& bytes) const {
    const iovec local{const_cast<char*>(bytes.data()), bytes.size()};
    const iovec remote{reinterpret_cast<void*>(address), bytes.size()};
    if (process_vm_writev(thread_, &local, 1, &remote, 1, 0) != static_cast<ssize_t>(bytes.size()))
        return failed(thread_, std::string("cannot be written to: ") + std::strerror(errno));
    return {};
}

bool Tracee::inInterruptedCall() const {
    const auto result = static_cast<long>(state_.registers.rax);
    return static_cast<long>(state_.registers.orig_rax) >= 0 && result >= kRestartFirst &&
           result <= kRestartLast;
}

void Tracee::endInterruptedCall() {
    state_.registers.rax = static_cast<unsigned long long>(-EINTR);
    state_.registers.orig_rax = ~0ull;
    left_ = Left::Registers;
}

std::chrono::nanoseconds Tracee::resume() {
    if (thread_ == 0) return {};
    const pid_t thread = std::exchange(thread_, 0);
    // The registers come last: until they are set, the thread would restore all by itself.
    iovec vectors{state_.vectors.data(), state_.vectors.size()};
    if (left_ == Left::All) ptrace(PTRACE_SETREGSET, thread, NT_X86_XSTATE, &vectors);
    if (left_ != Left::Alone) ptrace(PTRACE_SETREGS, thread, nullptr, &state_.registers);
    ptrace(PTRACE_DETACH, thread, nullptr, 0);
    return Clock::now() - since_;
}

}  // namespace hw::profiler
