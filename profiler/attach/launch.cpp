// SPDX-License-Identifier: MIT
#include "profiler/attach/launch.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "core/base/spawn.h"
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
    core::Spawn program{options.command, childEnvironment(options)};
    program.keepsSignals = true;
    if (options.stdoutToStderr) program.output = STDERR_FILENO;
    const core::Spawned spawned = core::spawn(program);
    if (spawned.error != 0) return cannotStart(options.command.front(), spawned.error);
    return Child(spawned.pid);
}

std::optional<int> Child::poll() {
    if (status_) return status_;
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) == pid_) status_ = status;
    return status_;
}

int Child::wait() {
    if (status_) return *status_;
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    status_ = status;
    return status;
}

int exitStatusOf(int waitStatus) {
    return WIFSIGNALED(waitStatus) ? 128 + WTERMSIG(waitStatus) : WEXITSTATUS(waitStatus);
}

std::string describeExit(int waitStatus) {
    if (WIFSIGNALED(waitStatus))
        return "was ended by signal " + std::to_string(WTERMSIG(waitStatus)) + " (" +
               strsignal(WTERMSIG(waitStatus)) + ")";
    return "exited with status " + std::to_string(WEXITSTATUS(waitStatus));
}

}  // namespace hw::profiler
