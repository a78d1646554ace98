// SPDX-License-Identifier: MIT
#include "executor/replay/run_apart.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace hw::executor {
namespace {

using core::Error;
using core::ErrorCode;

void writeAll(int file, const std::string& text) {
    for (std::size_t done = 0; done < text.size();) {
        const ssize_t wrote = write(file, text.data() + done, text.size() - done);
        if (wrote < 0 && errno != EINTR) return;
        if (wrote > 0) done += static_cast<std::size_t>(wrote);
    }
}

std::string readAll(int file) {
    std::string text;
    std::array<char, 65536> part{};
    for (;;) {
        const ssize_t got = read(file, part.data(), part.size());
        if (got == 0 || (got < 0 && errno != EINTR)) return text;
        if (got > 0) text.append(part.data(), static_cast<std::size_t>(got));
    }
}

int statusOf(pid_t child) {
    int status = 0;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) return -1;
    return status;
}

Error endedBy(int signal) {
    if (signal == SIGKILL)
        return {ErrorCode::Internal, "the run was killed, as the system does when memory runs out",
                "close other programs, or run a smaller step"};
    return {
        ErrorCode::BadInput,
        std::string("the run ended with ") + strsignal(signal) + " in an op of the session",
        "a session that was damaged or made by hand may name ops that cannot run: record it again"};
}

}  // namespace

core::Result<Outcome> runApart(const RunRequest& request,
                               const std::function<void(const std::string&)>& progress) {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0)
        return Error{ErrorCode::Internal, "cannot make a pipe", "close other programs"};
    const pid_t child = fork();
    if (child < 0)
        return Error{ErrorCode::Internal, "cannot start a process", "close other programs"};
    if (child == 0) {
        close(ends[0]);
        writeAll(ends[1], writeOutcome(runStep(request, progress)));
        _exit(0);  // what libraries do when a program ends is for their own process
    }
    close(ends[1]);
    const std::string text = readAll(ends[0]);
    close(ends[0]);
    const int status = statusOf(child);
    if (status >= 0 && WIFSIGNALED(status)) return endedBy(WTERMSIG(status));
    return readOutcome(text);
}

}  // namespace hw::executor
