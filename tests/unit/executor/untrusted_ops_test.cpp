// SPDX-License-Identifier: MIT
// A session names the ops that are run, so they run without rights, and not all of them.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <thread>

#include "executor/replay/allowed_ops.h"
#include "executor/replay/outcome.h"
#include "executor/replay/sandbox.h"

namespace hw::executor {
namespace {

TEST(AllowedOps, AreTheFrameworksOwnThatOpenNoFile) {
    EXPECT_TRUE(requireAllowed("aten::mm", {"self", "mat2"}));
    EXPECT_TRUE(requireAllowed("aten::_reshape_alias", {"self", "size", "stride"}));
    EXPECT_TRUE(requireAllowed("profiler::_record_function_exit", {"handle"}));
    for (const char* op : {"torchvision::nms", "c10d::allreduce_", "mm", "aten", "prim::Print"})
        EXPECT_FALSE(requireAllowed(op, {"self"})) << op;
    EXPECT_FALSE(requireAllowed("aten::from_file", {"filename", "shared", "size"}));
    EXPECT_FALSE(requireAllowed("aten::one_of_a_later_release", {"self", "output_path"}));
    EXPECT_FALSE(requireAllowed("aten::_sparse_coo_tensor_unsafe", {"indices", "values"}));
}

/// Whether it is refused in a process that has entered the sandbox; 2 where none can be entered.
int inSandbox(Device device, const std::function<bool()>& attempt) {
    const pid_t child = fork();
    if (child == 0) {
        if (!enterSandbox(device).empty()) _exit(2);
        _exit(attempt() ? 1 : 0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

TEST(Sandbox, TakesTheRightsToDoHarm) {
    if (!sandboxAvailable()) GTEST_SKIP() << "this kernel has no seccomp";
    const std::string path = testing::TempDir() + "sandbox-" + std::to_string(getpid());
    const auto opened = [](int file) { return file >= 0; };
    const std::pair<const char*, std::function<bool()>> attempts[] = {
        {"write", [&] { return opened(open(path.c_str(), O_WRONLY | O_CREAT, 0600)); }},
        {"append", [&] { return opened(open("/dev/null", O_RDONLY | O_APPEND)); }},
        {"truncate", [&] { return truncate(__FILE__, 0) == 0; }},
        {"temporary", [&] { return opened(open("/tmp", O_TMPFILE | O_RDWR, 0600)); }},
        {"remove", [&] { return unlink(path.c_str()) == 0 || errno != EPERM; }},
        {"rename", [&] { return rename(path.c_str(), "x") == 0 || errno != EPERM; }},
        {"folder", [&] { return mkdir(path.c_str(), 0700) == 0; }},
        {"network", [&] { return opened(socket(AF_INET, SOCK_STREAM, 0)); }},
        {"local", [&] { return opened(socket(AF_UNIX, SOCK_STREAM, 0)); }},
        {"process", [&] { return fork() >= 0; }},
        {"program", [&] { return execl("/bin/true", "true", nullptr) == 0 || errno != EPERM; }},
        {"signal", [&] { return kill(getppid(), 0) == 0; }},
        {"thread", [&] { return syscall(SYS_tgkill, getppid(), getppid(), 0) == 0; }},
        {"limit",
         [&] {
             const rlimit none{1, 1};
             return prlimit(getppid(), RLIMIT_NOFILE, &none, nullptr) == 0;
         }},
        {"shared memory", [&] { return shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600) >= 0; }},
        {"processors",
         [&] {
             cpu_set_t all{};
             CPU_SET(0, &all);
             return sched_setaffinity(getppid(), sizeof(all), &all) == 0;
         }},
        {"signal of a file",
         [&] { return fcntl(STDIN_FILENO, F_SETOWN, getppid()) == 0 || errno != EPERM; }},
        {"typing", [&] { return ioctl(STDIN_FILENO, TIOCSTI, "x") == 0 || errno != EPERM; }}};
    for (const auto& [name, attempt] : attempts)
        EXPECT_EQ(inSandbox(Device::Cpu, attempt), 0) << name;
    EXPECT_NE(access(path.c_str(), F_OK), 0);
}

TEST(Sandbox, LetsAProcessEndItself) {
    if (!sandboxAvailable()) GTEST_SKIP() << "this kernel has no seccomp";
    EXPECT_EQ(inSandbox(Device::Cpu, []() -> bool { abort(); }), 100 + SIGABRT);
}

TEST(Sandbox, LeavesWhatComputingTakes) {
    if (!sandboxAvailable()) GTEST_SKIP() << "this kernel has no seccomp";
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    EXPECT_EQ(inSandbox(Device::Cpu,
                        [&] {
                            int threads = 0;
                            std::thread([&] { ++threads; }).join();
                            const int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
                            char byte = 0;
                            const bool told = write(ends[1], "y", 1) == 1;
                            return threads == 1 && file >= 0 && read(file, &byte, 1) == 1 && told;
                        }),
              1);
    // A GPU's driver opens devices as it needs them.
    EXPECT_EQ(inSandbox(Device::Cuda, [] { return open("/dev/null", O_RDWR) >= 0; }), 1);
    EXPECT_EQ(inSandbox(Device::Cuda, [] { return socket(AF_INET, SOCK_STREAM, 0) >= 0; }), 0);
}

TEST(Outcome, ComesThroughAPipeAsItIs) {
    Outcome outcome;
    outcome.json = "{\"planner\":\"x\"}";
    outcome.text = "planner           x\n";
    outcome.difference = core::Error{core::ErrorCode::Verification, "2 differ", "look"};
    outcome.run.step = 3;
    outcome.run.device = "cpu";
    outcome.run.predictedPeak = core::Bytes(10);
    outcome.run.measuredPeak = core::Bytes(11);
    outcome.run.arenaBytes = 12;
    outcome.run.time = core::Nanoseconds(13);
    outcome.run.baselineTime = core::Nanoseconds(14);
    outcome.run.compared = 15, outcome.run.different = 2, outcome.run.nonfinite = 1;
    outcome.recomputedOps = 4;
    outcome.recordedHere = true;
    core::OpSignature signature;
    signature.events = 2;
    signature.allocations.push_back({core::Bytes(64), 0, 0, std::nullopt, nullptr});
    signature.allocations.push_back({core::Bytes(8), std::nullopt, 1, 2, nullptr});
    outcome.profile = {{signature}, {core::Bytes(8)}, {core::Nanoseconds(5)}};
    outcome.menu = "{}";
    outcome.signatures.push_back({7, "fft", 9, signature});
    const std::string text = writeOutcome(outcome);
    const auto read = readOutcome(text);
    ASSERT_TRUE(read) << read.error().what;
    EXPECT_EQ(writeOutcome(*read), text);
    EXPECT_EQ(read->run.arenaBytes, 12);
    ASSERT_EQ(read->profile.signatures.size(), 1U);
    EXPECT_EQ(read->profile.signatures[0].allocations[1].endEvent, 2);
    EXPECT_EQ(read->signatures[0].of, 9);
}

TEST(Outcome, AnErrorComesAsOneAndNonsenseIsInternal) {
    const auto error = readOutcome(
        writeOutcome(core::Error{core::ErrorCode::BadInput, "no such op", "record again"}));
    ASSERT_FALSE(error);
    EXPECT_EQ(error.error().code, core::ErrorCode::BadInput);
    EXPECT_EQ(error.error().what, "no such op");
    for (const char* text : {"", "{", "[]", "{\"json\":1}"}) {
        const auto nonsense = readOutcome(text);
        ASSERT_FALSE(nonsense) << text;
        EXPECT_EQ(nonsense.error().code, core::ErrorCode::Internal);
    }
}

}  // namespace
}  // namespace hw::executor
