// SPDX-License-Identifier: MIT
#pragma once

#include "core/plan/implementations.h"
#include "core/session/session.h"

namespace hw::core {

/// The implementations that the session holds of the ops of `graph`, all of them algorithms; empty
/// when it holds none. Errors: BadInput when the table cannot be read or holds negative figures.
Result<Menu> loadMenu(Session& session, const TrainingGraph& graph);

}  // namespace hw::core
