// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/traced_plan.h"

#include <sys/resource.h>

#include <cstdio>
#include <fstream>

#include "profiler/recorder/live_program.h"

namespace hw::app {

using namespace hw::core;

void addTracedStep(CLI::App& command, TracedStep& step) {
    command.add_option("--budget", step.budget)->required();
    command.add_option("TRACE", step.trace)->required();
    command.add_option("KIND", step.kind)->required();
    command.add_option("FOLDER", step.folder)->required();
}

void yieldToAll() {
    constexpr int kLowestPriority = 19;
    setpriority(PRIO_PROCESS, 0, kLowestPriority);
}

Result<profiler::StepTrace> readTrace(const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    return profiler::readStepTrace(std::string{std::istreambuf_iterator<char>(in), {}});
}

Status writeWhole(const std::string& path, const std::string& text) {
    const std::string part = path + ".part";
    std::ofstream file(part, std::ios::binary);
    file << text;
    file.close();
    if (file && std::rename(part.c_str(), path.c_str()) == 0) return {};
    return Error{ErrorCode::Internal, "cannot write '" + path + "'", ""};
}

Status givePlan(const TracedStep& asked, std::int64_t kind, profiler::wire::LiveMode mode,
                const profiler::StepTrace& step, const Plan& plan, const Json& found) {
    const auto program = profiler::liveProgram(step.graph, plan, step.tensors);
    if (!program) return program.error();
    const std::string path = asked.folder + "/" + std::to_string(kind) + ".plan";
    if (Status done = writeWhole(path + ".json", found.dump()); !done) return done;
    std::string bytes(reinterpret_cast<const char*>(&kind), sizeof(kind));
    bytes += static_cast<char>(mode);
    return writeWhole(path, bytes + program->bytes);
}

}  // namespace hw::app
