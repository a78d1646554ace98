// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/platform_check.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <QFileInfo>
#include <QGuiApplication>
#include <array>
#include <chrono>
#include <csignal>
#include <regex>

#include "viewer/needed_packages.h"

namespace hw::viewer {
namespace {

using core::Error;
using core::ErrorCode;
using Clock = std::chrono::steady_clock;

constexpr auto kPatience = std::chrono::seconds(10);  // a display over a slow line takes seconds

/// A local X display (":0", ":0.0") has a socket; of a remote one only its server could tell.
bool hasDisplay() {
    if (qEnvironmentVariableIsSet("QT_QPA_PLATFORM") ||
        !qEnvironmentVariableIsEmpty("WAYLAND_DISPLAY"))
        return true;
    const QString display = qEnvironmentVariable("DISPLAY");
    if (!display.startsWith(QLatin1Char(':'))) return !display.isEmpty();
    const QString number = display.mid(1).section(QLatin1Char('.'), 0, 0);
    return QFileInfo::exists(QStringLiteral("/tmp/.X11-unix/X") + number);
}

[[noreturn]] void tryIt(int output) {
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    const rlimit none{0, 0};
    setrlimit(RLIMIT_CORE, &none);
    qputenv("QT_DEBUG_PLUGINS", "1");  // names the library that is missing
    int argc = 1;
    char name[] = "highwater";
    char* argv[] = {name, nullptr};
    const QGuiApplication application(argc, argv);
    _exit(0);
}

/// All that comes until the other end is closed, or patience does.
bool readAll(int input, std::string& text) {
    const auto end = Clock::now() + kPatience;
    for (std::array<char, 4096> part;;) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
        pollfd waiting{input, POLLIN, 0};
        if (left.count() <= 0 || poll(&waiting, 1, static_cast<int>(left.count())) <= 0)
            return false;
        const ssize_t size = read(input, part.data(), part.size());
        if (size <= 0) return true;
        text.append(part.data(), static_cast<std::size_t>(size));
    }
}

}  // namespace

Error platformError(const std::string& said, const std::string& display) {
    static const std::regex missing(R"((lib[\w.+-]+\.so[\w.]*): cannot open shared object)");
    if (std::smatch found; std::regex_search(said, found, missing))
        return {ErrorCode::Target, "the window needs " + found[1].str(), kInstallNeeded};
    if (said.find("could not connect to display") != std::string::npos || said.empty())
        return {ErrorCode::Target, "the display '" + display + "' does not answer",
                "check DISPLAY and who may use it (xauth), or draw into a file with `highwater "
                "shot`"};
    const auto at = said.find("Could not ");
    return {ErrorCode::Target,
            "Qt can open no window here" + (at == std::string::npos
                                                ? std::string()
                                                : ": " + said.substr(at, said.find('\n', at) - at)),
            "check QT_QPA_PLATFORM and QT_PLUGIN_PATH, or draw into a file with `highwater shot`"};
}

core::Status checkPlatform() {
    if (!hasDisplay())
        return Error{ErrorCode::Usage, "there is no display to open the window on",
                     "set DISPLAY, or draw into a file with `highwater shot`"};
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return {};
    const pid_t child = fork();
    if (child == 0) tryIt(ends[1]);
    close(ends[1]);
    std::string said;
    const bool ended = child < 0 || readAll(ends[0], said);
    close(ends[0]);
    if (child < 0) return {};
    if (!ended) kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
    return platformError(ended ? said : std::string(),
                         qEnvironmentVariable("DISPLAY").toStdString());
}

}  // namespace hw::viewer
