// SPDX-License-Identifier: MIT
// Plans a region that torch.compile is about to cut into a forward and a backward, while the
// program waits: `train` starts this for it. Not for people.
#include <fstream>
#include <utility>

#include "live/host/planner_task.h"
#include "live/wire/live_program.h"
#include "planners/partition/partition.h"

namespace hw::live {
namespace {

using namespace hw::core;

constexpr double kRegionSeconds = 6;  // of searching; compiling takes longer

}  // namespace

Status planRegion(const PlannerTask& asked) {
    std::ifstream in(asked.trace, std::ios::binary);
    auto traced = readTracedRegion(std::string{std::istreambuf_iterator<char>(in), {}});
    if (!traced) return traced.error();
    const Bytes beside = traced->step.untouched, budget = Bytes(asked.budget) - beside;
    const planners::JointRegion region{std::move(traced->step.graph), traced->backward,
                                       std::move(traced->fusible), std::move(traced->kept)};
    const auto planned =
        planners::planPartition(region, {budget, kRegionSeconds, traced->mostKept});
    if (!planned) return planned.error();
    const auto compilers = planners::partitionFigures(region, region.kept, budget);
    const Json answer{{"kept", planned->kept},
                      {"own", planned->compilers},
                      {"within", planned->within},
                      {"peak_bytes", (planned->figures.peak + beside).count()},
                      {"own_peak_bytes", (compilers->peak + beside).count()},
                      {"kept_bytes", planned->figures.kept.count()},
                      {"own_kept_bytes", compilers->kept.count()},
                      {"extra", ratio(planned->figures.time, compilers->time) - 1}};
    return writeWhole(asked.folder + "/" + std::to_string(asked.kind) + profiler::wire::kLiveAnswer,
                      answer.dump());
}

}  // namespace hw::live
