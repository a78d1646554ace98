// SPDX-License-Identifier: MIT
#include "core/base/spawn.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

extern char** environ;

namespace hw::core {
namespace {

std::vector<char*> pointers(const std::vector<std::string>& texts) {
    std::vector<char*> result;
    result.reserve(texts.size() + 1);
    for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
    result.push_back(nullptr);
    return result;
}

struct Signals {
    bool known = false;
    sigset_t ignored{}, blocked{};
};
Signals gStarted;

/// In the child: what was caught is at its default already once it has become another program.
void restoreSignals() {
    for (int number = 1; number < NSIG; ++number)
        if (sigismember(&gStarted.ignored, number) == 1) signal(number, SIG_IGN);
    sigprocmask(SIG_SETMASK, &gStarted.blocked, nullptr);
}

/// In the child of a process that may have other threads: nothing here may allocate.
[[noreturn]] void become(const Spawn& program, char* const* arguments, char* const* variables,
                         int report) {
    const int streams[] = {program.input, program.output, program.errors};
    for (int stream = 0; stream < 3; ++stream)
        if (streams[stream] >= 0) dup2(streams[stream], stream);
    if (!program.folder.empty() && chdir(program.folder.c_str()) != 0) _exit(127);
    if (program.keepsSignals && gStarted.known) restoreSignals();
    execvpe(arguments[0], arguments, variables);
    const int error = errno;
    [[maybe_unused]] const ssize_t told = write(report, &error, sizeof(error));
    _exit(127);
}

}  // namespace

void rememberSignals() {
    sigemptyset(&gStarted.ignored);
    for (int number = 1; number < NSIG; ++number) {
        struct sigaction now {};
        if (sigaction(number, nullptr, &now) == 0 && now.sa_handler == SIG_IGN)
            sigaddset(&gStarted.ignored, number);
    }
    sigprocmask(SIG_SETMASK, nullptr, &gStarted.blocked);
    gStarted.known = true;
    if (sigismember(&gStarted.ignored, SIGCHLD) == 1) signal(SIGCHLD, SIG_DFL);
}

Spawned spawn(const Spawn& program) {
    const std::vector<char*> arguments = pointers(program.command);
    const std::vector<char*> variables = pointers(program.environment);
    int report[2];  // closed by a successful exec
    if (pipe2(report, O_CLOEXEC) != 0) return {-1, errno};
    const pid_t pid = fork();
    if (pid == 0)
        become(program, arguments.data(), program.environment.empty() ? environ : variables.data(),
               report[1]);
    int error = pid < 0 ? errno : 0;
    close(report[1]);
    while (pid > 0 && read(report[0], &error, sizeof(error)) < 0 && errno == EINTR) {
    }
    close(report[0]);
    if (error == 0) return {pid, 0};
    if (pid > 0) waitFor(pid);
    return {-1, error};
}

int waitFor(pid_t child) {
    int status = 0;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) return -1;
    return status;
}

bool succeeded(int waitStatus) {
    return waitStatus >= 0 && WIFEXITED(waitStatus) && WEXITSTATUS(waitStatus) == 0;
}

}  // namespace hw::core
