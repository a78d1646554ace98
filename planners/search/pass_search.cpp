// SPDX-License-Identifier: MIT
#include "planners/search/pass_search.h"

#include <algorithm>

#include "core/graph/captured_order.h"
#include "core/memory/evaluate.h"
#include "planners/program/linear_program.h"
#include "planners/search/large_search.h"
#include "planners/search/search_request.h"
#include "planners/search/whole_search.h"

namespace hw::planners {

using namespace hw::core;

bool isLarge(const TrainingGraph& graph) {
    // A search keeps up to a hundred matrices, and goes through one at each of its first plans.
    constexpr double kLargestMatrix = 128e6;  // bytes
    const auto items = std::count_if(
        graph.storages.begin(), graph.storages.end(),
        [](const Storage& storage) { return !storage.isConstant() && !storage.readers.empty(); });
    return static_cast<double>(items) * static_cast<double>(graph.ops.size()) / 8 > kLargestMatrix;
}

Proposal searchPass(const TrainingGraph& graph, const PlanRequest& request,
                    const Progress& progress) {
    Proposal proposal;
    if (const Bytes floor = graph.floorBytes(); request.budget < floor) {
        proposal.reason =
            "one op with its inputs, outputs, workspace and the constants still "
            "needed takes " +
            humanBytes(floor) + ", whatever is recomputed";
        return proposal;
    }
    Schedule all = baselineSchedule(graph);
    if (const Evaluation kept = evaluate(graph, all); kept.valid && kept.peak <= request.budget) {
        proposal.status = PlanStatus::Ok;
        proposal.schedule = std::move(all);
        if (haveSolver() && !firstPlanOnly(request)) proposal.lowerBound = graph.totalTime();
        return proposal;
    }
    return isLarge(graph) ? searchLarge(graph, request, progress)
                          : searchWhole(graph, request, progress);
}

}  // namespace hw::planners
