// SPDX-License-Identifier: MIT
#include "profiler/attach/record.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <ctime>
#include <filesystem>

#include "profiler/attach/launch.h"
#include "profiler/recorder/server.h"

namespace hw::profiler {
namespace {

namespace fs = std::filesystem;
using core::Error;
using core::ErrorCode;
using wire::Milestone;

constexpr int kPollMilliseconds = 50;
/// What a grandchild that keeps the socket open may hold up the end.
constexpr int kDrainRounds = 40;

std::string defaultOutput(const std::vector<std::string>& command) {
    std::string name = fs::path(command.front()).filename().string();
    // "python3 train.py" is better named by its script.
    if (name.starts_with("python"))
        for (std::size_t i = 1; i < command.size(); ++i)
            if (command[i].ends_with(".py")) {
                name = fs::path(command[i]).stem().string();
                break;
            }
    const std::time_t now = std::time(nullptr);
    std::tm local{};
    localtime_r(&now, &local);
    char stamp[32];
    std::strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &local);
    return name + "-" + stamp + ".hws";
}

core::Status checkOptions(const RecordOptions& options) {
    if (options.command.empty())
        return Error{ErrorCode::Usage, "no program to record", "highwater record -- PROGRAM ARGS…"};
    if (options.steps < 1 || options.warmup < 0 || options.every < 1)
        return Error{ErrorCode::Usage, "--steps and --every start at 1, --warmup at 0", ""};
    return {};
}

core::Status checkOutput(const std::string& output) {
    std::error_code error;
    if (fs::exists(output, error))
        return core::badInput("'" + output + "' exists already",
                              "choose another file with -o, or remove it first");
    const fs::path folder = fs::absolute(output, error).parent_path();
    if (!fs::is_directory(folder, error) || access(folder.c_str(), W_OK) != 0)
        return core::badInput(
            "cannot write '" + output + "': no such folder, or no right to write in it",
            "choose another place with -o");
    return {};
}

core::Result<std::string> findAgent(const std::string& given) {
    std::error_code error;
    const std::string name = "libhighwater_agent.so";
    std::vector<fs::path> places;
    if (!given.empty()) {
        places.emplace_back(given);
    } else {
        const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
        places = {folder / name, folder / ".." / "lib" / name,
                  folder / ".." / "lib" / "highwater" / name};
    }
    for (const auto& place : places)
        if (fs::exists(place, error)) return fs::canonical(place, error).string();
    return Error{
        ErrorCode::Internal, "the agent " + name + " is missing",
        "it belongs beside the executable or into ../lib; build the target highwater_agent"};
}

/// Why there is no step, from how far the program came.
Error noStep(const Server& server, const RecordOptions& options, int status) {
    const std::string program = "'" + options.command.front() + "'";
    const std::string ended = " (it " + describeExit(status) + ")";
    if (!server.everConnected())
        return {ErrorCode::Target,
                program + " ended without starting Python" + ended + ": it is not Python",
                "record a Python program: highwater record -- python3 train.py"};
    if (!server.saw(Milestone::Torch))
        return {ErrorCode::Target,
                program + " is Python but was never seen to import torch" + ended,
                server.saw(Milestone::Shim)
                    ? "Highwater records PyTorch training; check the program's own output"
                    : "it ended before it could be watched; check the program's own output"};
    std::string seen;
    if (server.saw(Milestone::Forward)) seen += "a forward with gradients";
    if (server.saw(Milestone::Backward))
        seen += (seen.empty() ? "" : ", ") + std::string("a backward");
    if (server.saw(Milestone::Optimizer))
        seen += (seen.empty() ? "" : ", ") + std::string("an optimizer step");
    const Assembler* recorded = server.recorded();
    const std::int64_t ops = recorded == nullptr ? 0 : recorded->opsSeen();
    std::string what = program + " imported torch but completed no step to record" + ended +
                       "; seen: " + (seen.empty() ? "no training" : seen) + ", " +
                       std::to_string(ops) + " ops captured";
    if (recorded != nullptr && !recorded->faults().empty()) what += "; the shim gave up";
    return {ErrorCode::Target, what,
            server.saw(Milestone::Optimizer)
                ? "record fewer warm-up steps (--warmup), or let the program train longer"
                : "a step ends with an Optimizer.step; check the program's own output"};
}

int exitCode(int status) {
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/// Takes records in until the program has ended; its wait status.
int receiveUntilExit(Server& server, Child& child,
                     const std::function<void(const std::string&)>& progress) {
    std::int64_t steps = 0;
    bool capturing = false;
    std::optional<int> status;
    for (int drained = 0; !status || (server.connected() && drained < kDrainRounds);) {
        const bool received = server.poll(kPollMilliseconds);
        if (!status) status = child.poll();
        if (status && !received) ++drained;
        if (!capturing && server.saw(Milestone::Capture)) {
            capturing = true;
            progress("capturing");
        }
        if (server.steps() > steps) {
            steps = server.steps();
            progress("step " + std::to_string(steps - 1) + ": " +
                     std::to_string(server.recorded()->opsOfLastStep()) + " ops");
        }
    }
    return *status;
}

/// While the program runs, an interrupt is for it; highwater ends when the program does.
class IgnoreInterrupt {
public:
    IgnoreInterrupt() : before_(std::signal(SIGINT, [](int) {})) {}
    ~IgnoreInterrupt() { std::signal(SIGINT, before_); }
    IgnoreInterrupt(const IgnoreInterrupt&) = delete;
    IgnoreInterrupt& operator=(const IgnoreInterrupt&) = delete;

private:
    void (*before_)(int);
};

}  // namespace

core::Result<RecordSummary> record(const RecordOptions& options,
                                   const std::function<void(const std::string&)>& progress) {
    if (core::Status status = checkOptions(options); !status) return status.error();
    RecordSummary summary;
    summary.session = options.output.empty() ? defaultOutput(options.command) : options.output;
    if (core::Status status = checkOutput(summary.session); !status) return status.error();
    auto agent = findAgent(options.agentPath);
    if (!agent) return agent.error();
    wire::ConfigRecord config{options.steps, options.warmup, options.every,
                              options.contents ? wire::kConfigContents : 0};
    auto server = Server::open(summary.session, config);
    if (!server) return server.error();

    const IgnoreInterrupt ignore;
    auto child =
        launch({options.command, *agent, (*server)->socketPath(), options.childStdoutToStderr});
    if (!child) return child.error();
    progress("started '" + options.command.front() + "', process " + std::to_string(child->pid()));
    const int status = receiveUntilExit(**server, *child, progress);
    const core::Status written = (*server)->finish();

    summary.exitStatus = exitCode(status);
    summary.steps = (*server)->steps();
    summary.dropped = (*server)->dropped();
    summary.notes = (*server)->notes();
    if (summary.steps == 0 && !written) return written.error();
    if (summary.steps == 0) return noStep(**server, options, status);
    const Assembler& recorded = *(*server)->recorded();
    summary.ops = recorded.opsOfLastStep();
    for (const auto& fault : recorded.faults())
        summary.notes.push_back("the shim gave up: " + fault);
    if (summary.steps < options.steps)
        summary.notes.push_back("the program ended after " + std::to_string(summary.steps) +
                                " of " + std::to_string(options.steps) + " steps");
    if (status != 0) summary.notes.push_back("the program " + describeExit(status));
    return summary;
}

}  // namespace hw::profiler
