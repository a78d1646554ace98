// SPDX-License-Identifier: MIT
#include "profiler/attach/launch.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "profiler/wire/format.h"

extern char** environ;

namespace hw::profiler {
namespace {

std::vector<std::string> childEnvironment(const LaunchOptions& options) {
    std::vector<std::string> variables;
    std::string preloadBefore;
    const std::string preload = "LD_PRELOAD=", injection = "CUDA_INJECTION64_PATH=";
    bool injected = false;  // by another tool, which goes first
    for (char** variable = environ; *variable != nullptr; ++variable) {
        const std::string text = *variable;
        if (text.starts_with(preload))
            preloadBefore = text.substr(preload.size());
        else
            variables.push_back(text);
        injected |= text.starts_with(injection) && text != injection;
    }
    const auto library =
        std::filesystem::path(options.agentPath).parent_path() / "libhighwater_cupti.so";
    std::error_code ignored;
    if (!injected && std::filesystem::exists(library, ignored))
        variables.push_back(injection + library.string());
    variables.push_back(preload + options.agentPath +
                        (preloadBefore.empty() ? "" : ":" + preloadBefore));
    variables.push_back(std::string(wire::kPreloadVariable) + "=" + preloadBefore);
    variables.push_back(std::string(wire::kSocketVariable) + "=" + options.socketPath);
    return variables;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
    std::vector<char*> result;
    for (auto& text : texts) result.push_back(text.data());
    result.push_back(nullptr);
    return result;
}

core::Error cannotStart(const std::string& program, int error) {
    const std::string why = error == ENOENT   ? "no such program"
                            : error == EACCES ? "it is not executable"
                                              : std::strerror(error);
    return {core::ErrorCode::Target, "cannot start '" + program + "': " + why,
            error == ENOENT
                ? "check the name and PATH; a script needs its interpreter in front, as in "
                  "'highwater record -- python3 train.py'"
                : ""};
}

}  // namespace

core::Result<Child> launch(const LaunchOptions& options) {
    std::vector<std::string> arguments = options.command;
    std::vector<std::string> variables = childEnvironment(options);
    const std::vector<char*> argv = pointers(arguments);
    const std::vector<char*> envp = pointers(variables);
    int report[2];
    if (pipe2(report, O_CLOEXEC) != 0)
        return core::Error{core::ErrorCode::Internal,
                           std::string("cannot start a program: ") + std::strerror(errno), ""};
    const pid_t pid = fork();
    if (pid < 0) {
        const int error = errno;
        close(report[0]);
        close(report[1]);
        return core::Error{core::ErrorCode::Internal,
                           std::string("cannot start a program: ") + std::strerror(error), ""};
    }
    if (pid == 0) {
        if (options.stdoutToStderr) dup2(STDERR_FILENO, STDOUT_FILENO);
        execvpe(argv[0], argv.data(), envp.data());
        const int error = errno;
        [[maybe_unused]] const ssize_t told = write(report[1], &error, sizeof(error));
        _exit(127);
    }
    close(report[1]);
    int error = 0;
    const ssize_t got = read(report[0], &error, sizeof(error));
    close(report[0]);
    if (got == static_cast<ssize_t>(sizeof(error))) {
        waitpid(pid, nullptr, 0);
        return cannotStart(options.command.front(), error);
    }
    return Child(pid);
}

std::optional<int> Child::poll() {
    if (status_) return status_;
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) == pid_) status_ = status;
    return status_;
}

std::string describeExit(int waitStatus) {
    if (WIFSIGNALED(waitStatus))
        return "was ended by signal " + std::to_string(WTERMSIG(waitStatus)) + " (" +
               strsignal(WTERMSIG(waitStatus)) + ")";
    return "exited with status " + std::to_string(WEXITSTATUS(waitStatus));
}

}  // namespace hw::profiler
