// SPDX-License-Identifier: MIT
// What a rank's step exchanges with others, one by one: where it comes to each, and where it needs
// what that brings.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/session/session.h"

namespace hw::core {

struct Exchange {
    enum class Kind { Send, Receive, Meeting };  // a meeting: all ranks of its group come to it

    std::int64_t op = 0;  // id
    Kind kind = Kind::Meeting;
    std::string group;     // of a meeting: the framework's name for it; empty: the op shows none
    int peer = -1;         // of a message: the other's rank in the group; -1: any
    std::int64_t tag = 0;  // of a message
    std::int64_t beginNs = 0;
    std::optional<std::int64_t> use;  // id of the first op that works on what it brings
    std::int64_t useBeginNs = 0;
};

/// Those of one step, in its order. Errors: BadInput (the session cannot be read).
Result<std::vector<Exchange>> exchangesOf(const Session& session, const StepRow& step);

}  // namespace hw::core
