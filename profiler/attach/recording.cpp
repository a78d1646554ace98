// SPDX-License-Identifier: MIT
#include "profiler/attach/recording.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>

#include "core/base/file.h"
#include "core/session/session.h"

namespace hw::profiler {
namespace {

namespace fs = std::filesystem;
using core::Error;
using core::ErrorCode;
using wire::Milestone;

constexpr int kPollMilliseconds = 50;
constexpr int kNiceness = 10;

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

volatile std::sig_atomic_t gRaised[NSIG];

void note(int signal) {
    gRaised[signal] = 1;
}

/// A session that is there already, and that no process writes, goes aside: run.hws to run.1.hws.
bool moveAside(const fs::path& session, const Progress& progress) {
    std::error_code error;
    if (fs::exists(session.string() + "-wal", error) || !core::Session::open(session.string()))
        return false;
    fs::path aside;
    for (int number = 1; aside.empty() || fs::exists(aside, error); ++number)
        aside = session.parent_path() / (session.stem().string() + "." + std::to_string(number) +
                                         session.extension().string());
    fs::rename(session, aside, error);
    if (error) return false;
    progress("'" + session.string() + "' was there already; it is '" + aside.string() + "' now");
    return true;
}

}  // namespace

core::Status checkCapture(const CaptureOptions& options) {
    if (options.onOom && (options.every != 1 || options.warmup != 0))
        return Error{ErrorCode::Usage, "--on-oom watches every step from the first on",
                     "leave --warmup and --every out"};
    if (options.steps < 1 || options.warmup < 0 || options.every < 1)
        return Error{ErrorCode::Usage, "--steps and --every start at 1, --warmup at 0", ""};
    return {};
}

core::Result<std::string> chooseOutput(const CaptureOptions& options,
                                       const std::vector<std::string>& command,
                                       const Progress& progress) {
    std::string output = options.output.empty() ? defaultOutput(command) : options.output;
    std::error_code error;
    if (fs::exists(output, error) && !moveAside(output, progress))
        return core::badInput("'" + output + "' exists already",
                              "choose another file with -o, or remove it first");
    const fs::path folder = fs::absolute(output, error).parent_path();
    if (!fs::is_directory(folder, error) || access(folder.c_str(), W_OK) != 0)
        return core::badInput(
            "cannot write '" + output + "': no such folder, or no right to write in it",
            "choose another place with -o");
    return output;
}

core::Result<std::string> findAgent(const std::string& given) {
    std::error_code error;
    const std::string name = "libhighwater_agent.so";
    std::vector<fs::path> places;
    if (!given.empty()) {
        places.emplace_back(given);
    } else {
        const fs::path folder = core::programFolder();
        places = {folder / name, folder / ".." / "lib" / name,
                  folder / ".." / "lib" / "highwater" / name};
    }
    for (const auto& place : places)
        if (fs::exists(place, error)) return fs::canonical(place, error).string();
    return Error{
        ErrorCode::Internal, "the agent " + name + " is missing",
        "it belongs beside the executable or into ../lib; build the target highwater_agent"};
}

namespace {
std::uint32_t stackFlags(wire::Stacks stacks) {
    return stacks == wire::Stacks::Full   ? wire::kConfigFullStacks
           : stacks == wire::Stacks::Line ? wire::kConfigLineStacks
                                          : 0;
}
}  // namespace

wire::ConfigRecord configOf(const CaptureOptions& options,
                            const core::Result<FrameworkFiles>& framework,
                            const Progress& progress) {
    wire::ConfigRecord record{
        options.steps, options.warmup, options.every,
        (options.contents ? wire::kConfigContents : 0) | (options.onOom ? wire::kConfigOnOom : 0) |
            (options.gpu ? wire::kConfigGpu : 0) | stackFlags(options.stacks)};
    const char* way = std::getenv("HIGHWATER_CAPTURE");
    if (way != nullptr && std::string(way) == "python") return record;
    if (options.onOom) return record;
    if (!framework) {
        record.flags |= wire::kConfigNative;
        return record;
    }
    const auto library = nativeCapture(*framework, progress);
    if (!library)
        progress("ops are seen through Python, which takes longer: " + library.error().what);
    else if (library->size() < sizeof(record.nativeCapture))
        std::strcpy(record.nativeCapture, library->c_str());
    return record;
}

Server::FindNative findNative(const Progress& progress) {
    return [progress](pid_t pid) -> std::string {
        const auto files = frameworkOfProcess(pid);
        const auto library =
            files ? nativeCapture(*files, progress) : core::Result<std::string>(files.error());
        if (library) return *library;
        progress("ops are seen through Python, which takes longer: " + library.error().what);
        return "";
    };
}

void yieldToProgram() {
    setpriority(PRIO_PROCESS, 0, kNiceness);
}

bool Receiver::poll() {
    const bool received = server_.poll(kPollMilliseconds);
    if (!capturing_ && server_.saw(Milestone::Capture)) {
        capturing_ = true;
        progress_("capturing");
    }
    if (!saidCompiled_ && server_.recorded() != nullptr &&
        !server_.recorded()->compiledCode().empty()) {
        saidCompiled_ = true;
        progress_("note: " + server_.recorded()->compiledCode());
    }
    if (server_.steps() > steps_) {
        steps_ = server_.steps();
        progress_("step " + std::to_string(steps_ - 1) + ": " +
                  std::to_string(server_.recorded()->opsOfLastStep()) + " ops");
    }
    return received;
}

std::optional<core::Error> gpuRefusal(const Server& server, const CaptureOptions& options) {
    const wire::RefusalRecord* refusal = options.gpu ? server.refusal() : nullptr;
    if (refusal == nullptr) return std::nullopt;
    return Error{ErrorCode::Target, refusal->what, refusal->hint};
}

std::string whatWasSeen(const Server& server) {
    std::string seen;
    if (server.saw(Milestone::Forward)) seen += "a forward with gradients";
    if (server.saw(Milestone::Backward))
        seen += (seen.empty() ? "" : ", ") + std::string("a backward");
    if (server.saw(Milestone::Optimizer))
        seen += (seen.empty() ? "" : ", ") + std::string("an optimizer step");
    const Assembler* recorded = server.recorded();
    const std::int64_t ops = recorded == nullptr ? 0 : recorded->opsSeen();
    return (seen.empty() ? "no training" : seen) + ", " + std::to_string(ops) + " ops captured";
}

void summarize(const Server& server, int stepsWanted, RecordSummary& summary) {
    const Assembler& recorded = *server.recorded();
    summary.steps = server.steps();
    summary.dropped = server.dropped();
    summary.ops = recorded.opsOfLastStep();
    summary.notes = server.notes();
    if (const wire::RefusalRecord* refusal = server.refusal())
        summary.notes.push_back("kernels, copies and driver memory are missing: " + refusal->what);
    for (const auto& fault : server.faults()) summary.notes.push_back("the shim gave up: " + fault);
    summary.processes = static_cast<std::int64_t>(server.recordedProcesses().size());
    stepsWanted *= static_cast<int>(std::max<std::int64_t>(1, summary.processes));
    if (summary.steps < stepsWanted)
        summary.notes.push_back("the recording ended after " + std::to_string(summary.steps) +
                                " of " + std::to_string(stepsWanted) + " steps");
}

SignalFlag::SignalFlag(int signal) : signal_(signal), before_(std::signal(signal, &note)) {
    const bool ends = signal == SIGINT || signal == SIGTERM;
    if (ends && before_ == SIG_IGN) std::signal(signal, SIG_IGN);
}

SignalFlag::~SignalFlag() {
    std::signal(signal_, before_);
}

bool SignalFlag::raised(int signal) {
    return gRaised[signal] != 0;
}

}  // namespace hw::profiler
