// SPDX-License-Identifier: GPL-3.0-or-later
// What `info` says of the ranks of a session.
#pragma once

#include "app/cli.h"

namespace hw::app {

/// One each process, by rank: its machine, its steps, the highest peak of its allocator.
Json ranksJson(const core::Session& session);
/// Nothing where there is one process only.
void printRanks(const core::Session& session);

/// What the step's rank exchanges with others, by operation and group.
Json collectivesJson(const core::Session& session, std::int64_t step);
void printCollectives(const core::Session& session, std::int64_t step);

}  // namespace hw::app
