// SPDX-License-Identifier: MIT
#include "profiler/attach/rights.h"

#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <string>

#include "profiler/attach/process.h"

namespace hw::profiler {
namespace {

constexpr std::uint64_t kPtraceCapability = 1ull << 19;  // CAP_SYS_PTRACE
constexpr const char* kGrant =
    "give the container the capability SYS_PTRACE (docker run --cap-add SYS_PTRACE; in Kubernetes "
    "securityContext.capabilities.add), or ";

/// A child is the one process that may be traced everywhere, except where system calls are
/// filtered.
bool tracesItsChild() {
    const pid_t self = getpid(), child = fork();
    if (child < 0) return true;  // it cannot be told
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != self) _exit(0);  // killed before that
        for (;;) pause();
    }
    const bool works = ptrace(PTRACE_SEIZE, child, nullptr, nullptr) == 0;
    kill(child, SIGKILL);
    while (waitpid(child, nullptr, __WALL) < 0 && errno == EINTR) {
    }
    return works;
}

}  // namespace

core::Error refuse(const std::string& what, const std::string& hint) {
    return {core::ErrorCode::Target, what, hint};
}

bool mayTraceAnything() {
    const auto self = statusOf(getpid());
    return self && (self->capabilities & kPtraceCapability) != 0;
}

core::Status mayAttach(bool descends) {
    static const bool works = tracesItsChild();
    if (!works)
        return refuse(
            "this system lets no process be attached to: the system call ptrace is filtered",
            std::string(kGrant) + kLaunchInstead);
    const bool any = mayTraceAnything();
    const int scope = any ? std::min(ptraceScope(), 3) : ptraceScope();
    // Root without the capability is root of a container.
    const std::string become = geteuid() == 0 ? kGrant : "attach as root, or ";
    if (scope == 3)
        return refuse("this system forbids attaching to any process (ptrace_scope is 3)",
                      kLaunchInstead);
    if (scope == 2 && !any)
        return refuse("this system lets only root attach to processes (ptrace_scope is 2)",
                      become + kLaunchInstead);
    if (scope == 1 && !any && !descends)
        return refuse(
            "this system lets a process be attached to by its parents only (ptrace_scope is 1)",
            (geteuid() == 0 ? become : "attach as root, set kernel.yama.ptrace_scope to 0, or ") +
                kLaunchInstead);
    return {};
}

}  // namespace hw::profiler
