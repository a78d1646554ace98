// SPDX-License-Identifier: MIT
#include "planners/checkpoints/export_plan.h"

#include "planners/checkpoints/choose_checkpoints.h"

namespace hw::planners {

core::Result<core::TorchPolicy> exportPolicy(const core::TrainingGraph& graph,
                                             const core::Plan& plan) {
    return core::torchPolicy(graph, plan, chooseCheckpoints(graph, plan.schedule));
}

std::string exportLayers(const core::TrainingGraph& graph, const core::Plan& plan) {
    return core::layerListCsv(graph, plan, chooseCheckpoints(graph, plan.schedule));
}

}  // namespace hw::planners
