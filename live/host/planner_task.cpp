// SPDX-License-Identifier: MIT
#include "live/host/planner_task.h"

#include <cstdio>
#include <fstream>

#include "live/compile/program_writer.h"

namespace hw::live {

using namespace hw::core;

Result<TracedStep> readTrace(const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    return readTracedStep(std::string{std::istreambuf_iterator<char>(in), {}});
}

Status writeWhole(const std::string& path, const std::string& text) {
    const std::string part = path + ".part";
    std::ofstream file(part, std::ios::binary);
    file << text;
    file.close();
    if (file && std::rename(part.c_str(), path.c_str()) == 0) return {};
    return Error{ErrorCode::Internal, "cannot write '" + path + "'", ""};
}

Status givePlan(const PlannerTask& asked, std::int64_t kind, profiler::wire::LiveMode mode,
                const TracedStep& step, const Plan& plan, const Json& found) {
    const auto program =
        liveProgram(step.graph, plan, step.tensors, profiler::wire::kBudgetActions);
    if (!program) return program.error();
    const std::string path = asked.folder + "/" + std::to_string(kind) + ".plan";
    if (Status done = writeWhole(path + ".json", found.dump()); !done) return done;
    std::string bytes(reinterpret_cast<const char*>(&kind), sizeof(kind));
    bytes += static_cast<char>(mode);
    return writeWhole(path, bytes + program->bytes);
}

}  // namespace hw::live
