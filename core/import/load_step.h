// SPDX-License-Identifier: MIT
// A session or a foreign trace, opened for one of its steps.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/result.h"
#include "core/graph/training_graph.h"
#include "core/memory/evaluate.h"
#include "core/session/session.h"

namespace hw::core {

struct StepGraph {
    TrainingGraph graph;
    Evaluation baseline;
};
/// The last complete step of an open session or `step`; `path`: what errors call the session.
/// Errors: BadInput (no such step, or one whose captured order does not replay).
Result<StepGraph> graphOfStep(const Session& session, const std::string& path,
                              std::optional<std::int64_t> step,
                              std::optional<CostSet> costs = std::nullopt);

struct LoadedStep : StepGraph {
    Session session;
};
/// A session or importable file, and the graph of its last complete step or of `step`. Errors: as
/// openAny() and graphOfStep().
Result<LoadedStep> loadStep(const std::string& path, std::optional<std::int64_t> step,
                            std::optional<CostSet> costs = std::nullopt);

}  // namespace hw::core
