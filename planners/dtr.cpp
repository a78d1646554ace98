// SPDX-License-Identifier: MIT
#include "planners/dtr.h"

#include "planners/dtr_runtime.h"

namespace hw::planners {

Proposal Dtr::plan(const core::TrainingGraph& graph, const PlanRequest& request,
                   const Progress& progress) const {
    DtrSettings settings;
    settings.heuristic = heuristic_;
    if (const auto dealloc = request.options.find("dealloc"); dealloc != request.options.end()) {
        if (dealloc->second != "eager" && dealloc->second != "banish")
            return {PlanStatus::Infeasible,
                    "dealloc is eager or banish, not '" + dealloc->second + "'",
                    {},
                    {},
                    {}};
        settings.banish = dealloc->second == "banish";
    }
    return DtrRuntime(graph, request, progress, settings).run();
}

}  // namespace hw::planners
