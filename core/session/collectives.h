// SPDX-License-Identifier: MIT
// The collectives of a recorded step: what its rank exchanges with others.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/session/session.h"

namespace hw::core {

/// Those of one kind in one group.
struct CollectiveUse {
    std::string operation;  // "all-reduce", "all-gather", …; "wait" for what waits for one
    std::string group;      // the framework's name for it; empty where the op does not show it
    std::int64_t count = 0;
    Bytes bytes;  // of all of them together, see collectivesOf(); of waits 0
};

/// "all-reduce" for `c10d::allreduce_` and `_c10d_functional::all_reduce`; what has no usual name
/// is called as the op is.
std::string collectiveOperation(const std::string& op);

/// Between two ranks, not among all of a group.
bool isMessage(const std::string& op);

/// The framework's name for a collective's group, which functional ones have as their last
/// argument; empty: the op does not show it.
std::string groupIn(const nlohmann::json& positional);

/// Of one step, in the order in which each kind comes first. The bytes of a collective are those of
/// its largest buffer: of an all-gather what it gathers, of a reduce-scatter what it reduces.
/// Errors: BadInput (the session cannot be read).
Result<std::vector<CollectiveUse>> collectivesOf(const Session& session, const StepRow& step);

}  // namespace hw::core
