// SPDX-License-Identifier: MIT
// The implementations of ops that a session holds, measured by `highwater run --implementations`.
#pragma once

#include <vector>

#include "core/memory/signature.h"
#include "core/plan/implementations.h"
#include "core/session/session_writer.h"

namespace hw::core {

/// The implementations that the session holds of the ops of `graph`; empty when it holds none.
/// Errors: BadInput when they cannot be read, hold negative figures or do not fit the graph.
Result<Menu> loadMenu(const Session& session, const TrainingGraph& graph);

/// What `of` allocates when `op` runs as implementation `name`: `op` itself, or the gradient op
/// that changes with it.
struct ImplementationSignature {
    OpIndex op = kNone;
    std::string name;
    OpIndex of = kNone;
    OpSignature signature;
};

/// Replaces what the session holds for the step of `graph`. In a transaction of the
/// session's. Algorithms must state time and workspace. Errors: those of the session.
Status storeMenu(SessionWriter& session, const TrainingGraph& graph, const Menu& menu,
                 const std::vector<ImplementationSignature>& signatures);

/// Those of the captured `graph` (loadSignatures()) with the ones under `menu`'s entries, all of
/// which are chosen, in their places; empty when one of them is not known. Errors: BadInput when
/// the session cannot be read or contradicts itself.
Result<Signatures> loadSignaturesUnder(const Session& session, const TrainingGraph& graph,
                                       const Menu& chosen);

}  // namespace hw::core
