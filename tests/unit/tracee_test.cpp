// SPDX-License-Identifier: MIT
// Calls in another process, whose tracer may be killed at any of its calls of ptrace().
#include "profiler/attach/tracee.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <ctime>

#include "profiler/attach/elf_symbols.h"
#include "profiler/attach/process.h"

namespace {
int gPtraceCalls = 0;
int gKilledAt = 0;  // 0: never
}  // namespace

/// In place of the C library's.
extern "C" long ptrace(int request, ...) {
    va_list rest;
    va_start(rest, request);
    const auto thread = va_arg(rest, pid_t);
    void* const address = va_arg(rest, void*);
    void* const data = va_arg(rest, void*);
    va_end(rest);
    const long result = syscall(SYS_ptrace, request, thread, address, data);
    if (++gPtraceCalls == gKilledAt) raise(SIGKILL);
    return result;
}

namespace hw::profiler {
namespace {

constexpr auto kCallLimit = std::chrono::seconds(10);

/// Of any process that was forked from this one.
ReturnPath returnPath() {
    ReturnPath path;
    const auto files = mappedFiles(getpid());
    for (const MappedFile& file : *files) {
        if (path.store == 0)
            path.store = codeAddress(file.path, file.start, kStoreCode).value_or(0);
        if (path.restore == 0)
            path.restore = codeAddress(file.path, file.start, kRestoreCode).value_or(0);
    }
    path.pause = reinterpret_cast<std::uint64_t>(dlsym(RTLD_DEFAULT, "getppid"));
    return path;
}

std::uint64_t sum(std::uint64_t a, std::uint64_t b) {
    volatile double scratch[8];  // uses registers of all kinds
    for (int i = 0; i < 8; ++i) scratch[i] = static_cast<double>(a) * i;
    return a + b + static_cast<std::uint64_t>(scratch[0]);
}

std::uint64_t spoilRegisters() {
    asm volatile("pcmpeqd %%xmm0, %%xmm0\n pcmpeqd %%xmm7, %%xmm7\n std\n cld" ::: "xmm0", "xmm7");
    return static_cast<std::uint64_t>(-1);
}

std::uint64_t addressOf(std::uint64_t (*function)()) {
    return reinterpret_cast<std::uint64_t>(function);
}
std::uint64_t addressOfSum() {
    return reinterpret_cast<std::uint64_t>(&sum);
}

/// Keeps its state in registers.
std::pair<std::uint64_t, double> compute() {
    std::uint64_t state = 1;
    double x = 0.5, y = 0.25;
    for (int i = 0; i < 20000; ++i) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        x = x * 3.7 * (1 - x);
        y += x * 1e-3;
    }
    return {state, x + y};
}

volatile sig_atomic_t gEnd = 0;

/// A process that checks itself until it is told to end; 0: all was as it should be.
class Worker {
public:
    explicit Worker(int (*work)()) {
        pid_ = fork();
        if (pid_ != 0) return;
        prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
        struct sigaction end {};  // without SA_RESTART
        end.sa_handler = [](int) { gEnd = 1; };
        sigaction(SIGTERM, &end, nullptr);
        _exit(work());
    }
    ~Worker() {
        if (pid_ > 0) kill(pid_, SIGKILL);
        if (pid_ > 0) waitpid(pid_, nullptr, 0);
    }
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;
    pid_t pid() const { return pid_; }
    int end() {
        int status = -1;
        for (; waitpid(pid_, &status, WNOHANG) == 0; usleep(1000))
            kill(pid_, SIGTERM);  // it may be about to wait
        pid_ = 0;
        return status;
    }

private:
    pid_t pid_;
};

int computeUntilEnd() {
    const auto expected = compute();
    while (gEnd == 0)
        if (compute() != expected) return 1;
    return 0;
}

int sleepUntilEnd() {
    while (gEnd == 0) {
        const timespec time{0, 300'000'000};
        if (nanosleep(&time, nullptr) != 0 && gEnd == 0) return 1;
    }
    return 0;
}

int readUntilEnd() {
    int ends[2];
    if (pipe(ends) != 0) return 1;
    char byte = 0;
    while (gEnd == 0)
        if (read(ends[0], &byte, 1) >= 0 || gEnd == 0) return 1;
    return 0;
}

TEST(Tracee, CallsAndLeavesTheThreadAsItWas) {
    const ReturnPath through = returnPath();
    ASSERT_TRUE(through.store != 0 && through.pause != 0 && through.restore != 0);
    for (const auto work : {computeUntilEnd, sleepUntilEnd, readUntilEnd}) {
        Worker target(work);
        usleep(50000);
        for (int i = 0; i < 40; ++i) {
            auto tracee = Tracee::stop(target.pid(), through);
            ASSERT_TRUE(tracee) << tracee.error().what;
            const auto first = tracee->call(addressOfSum(), {40, 2}, kCallLimit);
            ASSERT_TRUE(first) << first.error().what;
            EXPECT_EQ(*first, 42u);
            const auto second = tracee->call(addressOf(&spoilRegisters), {}, kCallLimit);
            ASSERT_TRUE(second);
            EXPECT_EQ(*second, ~0ull);
        }
        EXPECT_EQ(target.end(), 0);
    }
}

TEST(Tracee, SignalsArriveDuringCalls) {
    Worker target(computeUntilEnd);
    usleep(50000);
    auto tracee = Tracee::stop(target.pid(), returnPath());
    ASSERT_TRUE(tracee);
    kill(target.pid(), SIGTERM);
    ASSERT_TRUE(tracee->call(addressOfSum(), {1, 1}, kCallLimit));
    tracee->resume();
    int status = -1;
    EXPECT_EQ(waitpid(target.pid(), &status, 0), target.pid());
    EXPECT_EQ(status, 0);
}

TEST(Tracee, ACallThatCrashesIsTakenBack) {
    Worker target(computeUntilEnd);
    usleep(50000);
    {
        auto tracee = Tracee::stop(target.pid(), returnPath());
        ASSERT_TRUE(tracee);
        EXPECT_FALSE(tracee->call(8, {}, kCallLimit));
    }
    usleep(50000);
    EXPECT_EQ(target.end(), 0);
}

TEST(Tracee, ACallThatTakesTooLongEndsByItself) {
    Worker target(computeUntilEnd);
    usleep(50000);
    {
        auto tracee = Tracee::stop(target.pid(), returnPath());
        ASSERT_TRUE(tracee);
        const auto function = reinterpret_cast<std::uint64_t>(&usleep);
        EXPECT_FALSE(tracee->call(function, {200000}, std::chrono::milliseconds(20)));
    }
    EXPECT_EQ(target.end(), 0);
}

/// Stops the target, calls twice, resumes it; killed at the n-th call of ptrace(). Whether it was.
bool traceAndDie(pid_t target, const ReturnPath& through, int n) {
    const pid_t tracer = fork();
    if (tracer == 0) {
        gPtraceCalls = 0;
        gKilledAt = n;
        auto tracee = Tracee::stop(target, through);
        if (!tracee) _exit(1);
        for (int i = 0; i < 2; ++i)
            if (!tracee->call(addressOfSum(), {1, 1}, kCallLimit)) _exit(1);
        tracee->resume();
        _exit(0);
    }
    int status = -1;
    waitpid(tracer, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
    return WIFSIGNALED(status);
}

TEST(Tracee, TheThreadOutlivesItsTracer) {
    const ReturnPath through = returnPath();
    for (const auto work : {computeUntilEnd, readUntilEnd}) {  // a sleep ends as by a signal
        Worker target(work);
        usleep(50000);
        int n = 1;
        for (; traceAndDie(target.pid(), through, n); ++n) usleep(2000);
        EXPECT_GT(n, 15);
        EXPECT_EQ(target.end(), 0);
    }
}

}  // namespace
}  // namespace hw::profiler
