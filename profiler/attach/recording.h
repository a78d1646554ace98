// SPDX-License-Identifier: MIT
// What launching and attaching have in common.
#pragma once

#include <csignal>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "profiler/attach/native_capture.h"
#include "profiler/recorder/server.h"

namespace hw::profiler {

/// What to capture of a program, and where to.
struct CaptureOptions {
    std::string output;  // session file; empty: PROGRAM-YYYYmmdd-HHMMSS.hws in the current folder
    int steps = 3;
    int warmup = 0;         // steps let through before the first recorded one
    int every = 1;          // record every n-th step
    bool contents = false;  // store the bytes of floating constants too
    bool onOom = false;     // record only the step that runs out of memory
    wire::Stacks stacks = wire::Stacks::Full;
    bool gpu = false;       // without kernels, copies and driver memory, no recording
    std::string agentPath;  // empty: beside the executable, then ../lib
};

struct RecordSummary {
    std::string session;
    std::int64_t steps = 0;      // of all processes
    std::int64_t processes = 0;  // with a step
    std::int64_t ops = 0;        // of the last step
    std::int64_t dropped = 0;    // records that did not get into the session
    int exitStatus = 0;          // of a launched program; 128 + signal where one ended it
    std::vector<std::string> notes;
};

/// Told one line at a time, from the calling thread.
using Progress = std::function<void(const std::string&)>;

/// Errors: Usage (bad numbers).
core::Status checkCapture(const CaptureOptions& options);
/// The session to write for a program; an earlier session of that name gets another one, which
/// progress is told. Errors: BadInput (it is another file, is being written, or cannot be written).
core::Result<std::string> chooseOutput(const CaptureOptions& options,
                                       const std::vector<std::string>& command,
                                       const Progress& progress);
/// Errors: Internal (not installed).
core::Result<std::string> findAgent(const std::string& given);
/// `framework`: where the program has it, for the capture in C++; without it, or with
/// HIGHWATER_CAPTURE=python, ops are seen through Python, which takes longer. Progress is told why.
wire::ConfigRecord configOf(const CaptureOptions& options,
                            const core::Result<FrameworkFiles>& framework,
                            const Progress& progress);

/// For a program that is not known before it runs (torchrun, a wrapper): looks for the framework in
/// the process itself.
Server::FindNative findNative(const Progress& progress);

/// Records can wait (profiler/recorder/backlog.h): the program's own work goes first.
void yieldToProgram();

/// Polls without a record after a program's end, then it is over: what a grandchild that keeps the
/// socket open may hold it up.
inline constexpr int kDrainRounds = 40;

/// Takes records in and reports progress.
class Receiver {
public:
    Receiver(Server& server, const Progress& progress) : server_(server), progress_(progress) {}
    /// Waits a moment for records. False: nothing came.
    bool poll();

private:
    Server& server_;
    const Progress& progress_;
    std::int64_t steps_ = 0;
    bool capturing_ = false, saidCompiled_ = false;
};

/// Where the options ask for the GPU and CUPTI refuses: why.
std::optional<core::Error> gpuRefusal(const Server& server, const CaptureOptions& options);
/// "a forward with gradients, a backward; 12 ops captured": how far a program without a step came.
std::string whatWasSeen(const Server& server);
/// Figures and notes of a recording with at least one step.
void summarize(const Server& server, int stepsWanted, RecordSummary& summary);

/// While it exists, a signal sets a flag (or, without one, is passed over) instead of ending us.
class SignalFlag {
public:
    explicit SignalFlag(int signal);
    ~SignalFlag();
    SignalFlag(const SignalFlag&) = delete;
    SignalFlag& operator=(const SignalFlag&) = delete;
    /// One of these signals has arrived since the process started. Where whoever started it has
    /// SIGINT or SIGTERM ignored, they never do.
    static bool raised(int signal);

private:
    int signal_;
    void (*before_)(int);
};

}  // namespace hw::profiler
