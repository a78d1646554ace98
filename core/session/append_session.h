// SPDX-License-Identifier: MIT
// All that a session holds goes into another one, behind what is there.
#pragma once

#include <cstdint>
#include <map>

#include "core/session/common_rows.h"
#include "core/session/session_writer.h"

namespace hw::core {

/// Where a session's rows go.
struct Placement {
    std::int64_t processes = 0;                  // how many there are before its own
    std::map<std::int64_t, std::int64_t> steps;  // of its own, by their ids: what these become
    std::int64_t clockOffsetNs = 0;              // to add to its times
    std::int64_t clockErrorNs = 0;               // how sure that is
};

/// Ids and seqs move into the blocks of their processes (kIdsOfProcess); layers and call stacks are
/// those of `common` where they are there already. Left out, with a gap that says so: memory events
/// of devices, whose ordinals count on one machine only. Errors: BadInput (either cannot be read or
/// written).
Status appendSession(const Session& from, const Placement& placement, CommonRows& common,
                     SessionWriter& to);

}  // namespace hw::core
