// SPDX-License-Identifier: MIT
#include "planners/dtr/dtr.h"

#include "planners/dtr/runtime.h"
#include "planners/schedule/free_early.h"

namespace hw::planners {
namespace {

bool has(const PlanRequest& request, const char* option, const char* value) {
    const auto given = request.options.find(option);
    return given != request.options.end() && given->second == value;
}

}  // namespace

Proposal Dtr::plan(const core::TrainingGraph& graph, const PlanRequest& request,
                   const Progress& progress) const {
    DtrSettings settings;
    settings.heuristic = heuristic_;
    settings.banish = has(request, "dealloc", "banish");
    DtrRuntime runtime(graph, request, progress, settings);
    Proposal proposal = runtime.run();
    if (proposal.status == PlanStatus::Ok && !has(request, "frees", "late"))
        proposal.schedule = freeEarly(graph, std::move(proposal.schedule), runtime.peakAction());
    return proposal;
}

}  // namespace hw::planners
