// SPDX-License-Identifier: MIT
// Frees that gain nothing: a storage may stay as long as the program itself refers to it where the
// schedule's peak does not rise by that.
#pragma once

#include "core/graph/training_graph.h"
#include "core/plan/plan.h"

namespace hw::core {

/// What may be used of a schedule's peak where actions are moved: a little stays free, as now and
/// then a program lets go a little later.
constexpr Bytes withoutSpare(Bytes peak) {
    constexpr std::int64_t kSpare = 1000;  // one part in so many
    return Bytes(peak.count() - peak.count() / kSpare);
}

/// The valid `schedule` with frees moved to where the program lets go of their storages, smallest
/// storages first, as many as leave its peak as it is, with a little to spare elsewhere. What is
/// made again afterwards goes where the schedule says. The time does not change.
Schedule deferFrees(const TrainingGraph& graph, const Schedule& schedule);

}  // namespace hw::core
