// SPDX-License-Identifier: MIT
#include "planners/search/highwater.h"

#include <algorithm>

#include "planners/search/host_memory_search.h"
#include "planners/search/pass_search.h"
#include "planners/search/search_request.h"
#include "planners/search/windowed_search.h"

namespace hw::planners {

using namespace hw::core;

namespace {

constexpr std::size_t kSearchedWhole = 2000;  // ops: fewer leave a search nothing to gain

Proposal recompute(const TrainingGraph& graph, const PlanRequest& request,
                   const Progress& progress) {
    if (graph.ops.size() <= kSearchedWhole || request.budget < graph.floorBytes())
        return searchPass(graph, request, progress);
    const WorkBudget time = timeOf(request);
    const StepWindows windows(graph, request.budget);
    PlanRequest rest = request;
    if (isTimed(request)) rest.timeLimitSeconds = std::max(0.05, time.secondsLeft());
    return windows.several() ? searchWindows(graph, windows, rest, progress)
                             : searchPass(graph, rest, progress);
}

bool keepsAll(const TrainingGraph& graph, Bytes budget) {
    return evaluate(graph, baselineSchedule(graph)).peak <= budget;
}

}  // namespace

PlannerInfo HighwaterPlanner::info() {
    return {.name = "highwater",
            .description = "ours: near-optimal within seconds, with a proven lower bound",
            .options = {"search=full|first"},
            .family = PlannerFamily::Own,
            .provesInfeasible = true,
            .warmStarts = true,
            .offloads = true,
            .preselected = true,
            .make = [] { return std::make_unique<HighwaterPlanner>(); }};
}

Proposal HighwaterPlanner::plan(const TrainingGraph& graph, const PlanRequest& request,
                                const Progress& progress) const {
    if (!request.hostMemory || keepsAll(graph, request.budget))
        return recompute(graph, request, progress);
    return searchWithHostMemory(graph, request, progress, [&](const PlanRequest& without) {
        return recompute(graph, without, progress);
    });
}

}  // namespace hw::planners
