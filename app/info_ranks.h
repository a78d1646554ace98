// SPDX-License-Identifier: GPL-3.0-or-later
// What `info` says of the ranks of a session.
#pragma once

#include <optional>

#include "app/cli.h"

namespace hw::app {

/// One each process, by rank: its machine, its steps, the highest peak of its allocator.
Json ranksJson(const core::Session& session);
/// Nothing where there is one process only.
void printRanks(const core::Session& session);
/// `info --ranks`: the last step of each rank, see core/ranks/step_time.h. The exit code.
int printRankTimes(const core::Session& session, std::optional<core::CostSet> costs,
                   const Common& common);

/// What the step's rank exchanges with others, by operation and group.
Json collectivesJson(const core::Session& session, std::int64_t step);
void printCollectives(const core::Session& session, std::int64_t step);

}  // namespace hw::app
