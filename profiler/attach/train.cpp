// SPDX-License-Identifier: MIT
#include "profiler/attach/train.h"

#include <sys/wait.h>

#include <cstring>
#include <fstream>

#include "core/base/file.h"
#include "profiler/attach/launch.h"

namespace hw::profiler {
namespace {

using core::Error;
using core::ErrorCode;

/// What a grandchild that keeps the socket open may hold up the end.
constexpr int kDrainRounds = 40;
constexpr int kPollMilliseconds = 100;

/// The program is not started where its framework is known and has no runtime.
core::Result<wire::ConfigRecord> configure(const TrainOptions& options, const std::string& programs,
                                           const Progress& progress) {
    wire::ConfigRecord record;
    record.flags = wire::kConfigLive;
    record.cap = options.cap ? options.cap->count() : 0;
    std::strncpy(record.livePrograms, programs.c_str(), sizeof(record.livePrograms) - 1);
    const auto framework = frameworkOfPython(options.command.front());
    if (!framework) {
        record.flags |= wire::kConfigNative;
        return record;
    }
    const auto library = nativeCapture(*framework, progress);
    if (!library)
        return Error{ErrorCode::Target,
                     "no runtime for the torch of '" + options.command.front() +
                         "': " + library.error().what,
                     "a plan needs one: install a C++ compiler (g++)"};
    std::strncpy(record.nativeCapture, library->c_str(), sizeof(record.nativeCapture) - 1);
    return record;
}

core::Status writePrograms(const TrainOptions& options, const std::string& path) {
    for (std::size_t i = 0; i < options.programs.size(); ++i) {
        std::ofstream file(path + "." + std::to_string(i), std::ios::binary);
        file << options.programs[i].bytes;
        if (!file.flush())
            return Error{ErrorCode::Internal, "the plan could not be handed over: " + path,
                         "check that the folder for temporary files has room"};
    }
    return {};
}

}  // namespace

core::Result<TrainSummary> train(const TrainOptions& options, const Progress& progress) {
    if (options.command.empty())
        return Error{ErrorCode::Usage, "no program to train",
                     "highwater train SESSION PLAN -- PROGRAM ARGS…"};
    const core::ScratchFolder scratch;
    const std::string programs = (scratch.path() / "program").string();
    if (core::Status written = writePrograms(options, programs); !written) return written.error();
    auto agent = findAgent(options.agentPath);
    if (!agent) return agent.error();
    auto config = configure(options, programs, progress);
    if (!config) return config.error();
    auto server = Server::open("", *config);
    if (!server) return server.error();
    (*server)->findNativeWith(findNative(progress));

    const SignalFlag ignored(SIGINT);
    auto child =
        launch({options.command, *agent, (*server)->socketPath(), options.childStdoutToStderr});
    if (!child) return child.error();
    yieldToProgram();
    progress("started '" + options.command.front() + "', process " + std::to_string(child->pid()));
    std::optional<int> status;
    for (int drained = 0; !status || ((*server)->connected() && drained < kDrainRounds);) {
        const bool received = (*server)->poll(kPollMilliseconds);
        if (!status) status = child->poll();
        if (status && !received) ++drained;
    }

    TrainSummary summary;
    summary.exitStatus = WIFSIGNALED(*status) ? 128 + WTERMSIG(*status) : WEXITSTATUS(*status);
    if (const Assembler* recorded = (*server)->recorded()) {
        summary.steps = recorded->liveSteps();
        summary.divergences = recorded->divergences();
    }
    summary.notes = (*server)->notes();
    for (const std::string& fault : (*server)->faults())
        summary.notes.push_back("no plan was carried out: " + fault);
    static_cast<void>((*server)->finish());
    return summary;
}

}  // namespace hw::profiler
