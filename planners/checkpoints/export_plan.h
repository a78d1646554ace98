// SPDX-License-Identifier: MIT
// A plan as a file of another tool.
#pragma once

#include <string>

#include "core/export/checkpoint_plan.h"

namespace hw::planners {

/// See torchPolicy(); the checkpoints are those of chooseCheckpoints().
core::Result<core::TorchPolicy> exportPolicy(const core::TrainingGraph& graph,
                                             const core::Plan& plan);

/// See layerListCsv(), likewise.
std::string exportLayers(const core::TrainingGraph& graph, const core::Plan& plan);

}  // namespace hw::planners
