// SPDX-License-Identifier: MIT
// What the planner `monet` may choose from.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "core/memory/evaluate.h"
#include "core/memory/stage_model.h"
#include "core/plan/menu.h"

namespace hw::planners {

using ImplementationKinds = std::set<core::ImplementationKind>;

/// The option `use`: "algorithms", "output-activated", "intermediate" and "in-place", separated by
/// commas; all of them when empty; "none" alone. Errors: Usage.
core::Result<ImplementationKinds> parseKinds(std::string_view use);

core::Menu onlyKinds(const core::Menu& menu, const ImplementationKinds& kinds);

/// The best of every op at once, for lower bounds: the least time and workspace that an
/// implementation of it has, no read that one of them does without, no bytes for a form that one
/// of them makes, and no new bytes while an op runs that can take an input's storage.
///
/// Whatever is chosen, a plan under that choice keeps the constraints (1) to (6) of
/// cut_relaxation.h on this model at no more than its own time. Its reads are a superset of these,
/// so what must be covered, rebuilt or resident here must be so there; its times and workspaces are
/// no lower; a form that is made and kept takes room and time that are not counted here. Where an
/// output takes an input's storage, let the one of the two be resident whose version that storage
/// holds: it takes at least the output's bytes, and what the op overwrites cannot be read
/// afterwards.
struct BestCase {
    BestCase(const core::TrainingGraph& captured, const core::Menu& menu);
    BestCase(const BestCase&) = delete;
    BestCase& operator=(const BestCase&) = delete;

    core::TrainingGraph graph;
    core::StageModel model;
    core::Bytes floor;  // no plan keeps a budget below it, whatever is chosen
};

/// For every op with algorithms in the menu the fastest whose workspace fits whenever `schedule`
/// runs it, the captured one among them, else the one of the smallest workspace; `judged` is the
/// graph under `choice`. The runs of an op do not touch each other, and only its own action sees
/// its workspace: this is the best choice of algorithms for this schedule. Ops whose figures come
/// from an implementation of another kind are left alone.
core::ImplementationChoice fittingAlgorithms(const core::TrainingGraph& captured,
                                             const core::Menu& menu,
                                             const core::ImplementationChoice& choice,
                                             const core::TrainingGraph& judged,
                                             const core::Schedule& schedule, core::Bytes budget);

/// `choice` with the algorithm of least time or of least workspace of every op, where an
/// implementation of another kind has not set its figures.
enum class Preference { Time, Workspace };
core::ImplementationChoice withAlgorithms(const core::TrainingGraph& captured,
                                          const core::Menu& menu,
                                          const core::ImplementationChoice& choice,
                                          Preference preference);

}  // namespace hw::planners
