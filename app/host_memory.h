// SPDX-License-Identifier: GPL-3.0-or-later
// Whether a plan may offload to host memory, how much, and how fast the way there is.
#pragma once

#include <string>

#include "app/cli.h"

namespace hw::app {

struct HostMemoryWords {
    std::string offload, hostMemory, link;  // as they were given; empty: not at all
};

/// --offload, --host-memory and --link.
void addHostMemory(CLI::App& command, HostMemoryWords& words);

/// Says to `request` and `graph` what `words` ask of `planner`. Errors: Usage.
core::Status requestHostMemory(const HostMemoryWords& words, const std::string& planner,
                               core::TrainingGraph& graph, planners::PlanRequest& request);

/// "; 1.20 GB offloaded, 0.80 GB in host memory at most, 3.1 ms waited": empty without a copy.
std::string offloadedText(const planners::Outcome& outcome);

}  // namespace hw::app
