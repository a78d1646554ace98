// SPDX-License-Identifier: MIT
// The graph that a choice of implementations makes.
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/graph/training_graph.h"
#include "core/plan/menu.h"
#include "core/plan/plan.h"

namespace hw::core {

/// What alone makes `one` impossible on the graph ("would overwrite a constant"); empty when
/// nothing does. Its ops and storages must be the graph's.
std::string implementationFault(const TrainingGraph& graph, const Implementation& one);

/// The graph under a choice: `graph` with the times, workspaces, reads and writes of the chosen
/// implementations. Ops, tensors and storages keep their indices; the storages that
/// intermediate-activated ones make come behind the graph's, in the order of their ops, and each is
/// the last output of its op. An output that takes an input's storage leaves its own behind, of no
/// bytes and unused.
///
/// Errors: BadInput when the menu has no such entry, or when what was chosen cannot go together:
/// two that set the figures of one op, an op that would read what another has overwritten.
Result<TrainingGraph> applyImplementations(const TrainingGraph& graph, const Menu& menu,
                                           const ImplementationChoice& choice);

/// The entries that `plan` chose: those of `menu`, else those that the plan carries (Plan::chosen).
/// Errors: as checkMenu(). What neither has is left out.
Result<Menu> chosenEntries(const Plan& plan, const TrainingGraph& graph, const Menu& menu);

/// The graph that the judge needs for `plan`: what it chose is looked up in `menu`, then in
/// the plan, and copies to host memory go by the plan's link. Errors: as requireSameGraph() and
/// applyImplementations().
Result<TrainingGraph> graphUnder(const Plan& plan, const TrainingGraph& graph, const Menu& menu);

}  // namespace hw::core
