// SPDX-License-Identifier: MIT
#include "planners/search/highwater.h"

#include "planners/search/whole_search.h"
#include "planners/search/windowed_search.h"

namespace hw::planners {

using namespace hw::core;

namespace {

constexpr std::size_t kSearchedWhole = 2000;  // ops: fewer leave a search nothing to gain

}  // namespace

PlannerInfo HighwaterPlanner::info() {
    return {.name = "highwater",
            .description = "ours: near-optimal within seconds, with a proven lower bound",
            .options = {"search=full|first"},
            .family = PlannerFamily::Own,
            .provesInfeasible = true,
            .warmStarts = true,
            .preselected = true,
            .make = [] { return std::make_unique<HighwaterPlanner>(); }};
}

Proposal HighwaterPlanner::plan(const TrainingGraph& graph, const PlanRequest& request,
                                const Progress& progress) const {
    if (graph.ops.size() > kSearchedWhole && request.budget >= graph.floorBytes())
        if (const StepWindows windows(graph, request.budget); windows.several())
            return searchWindows(graph, windows, request, progress);
    return searchWhole(graph, request, progress);
}

}  // namespace hw::planners
