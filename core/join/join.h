// SPDX-License-Identifier: MIT
// One session from those of several machines that ran one training.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/join/clock.h"
#include "core/session/session_writer.h"

namespace hw::core {

/// `meta` key of a joined session: the files it was made of, one a line.
inline constexpr char kJoinedFrom[] = "joined_from";

struct JoinedSession {
    std::string path;
    std::vector<std::string> hosts;
    std::vector<int> ranks;
    ClockOffset clock;  // to the clock of the first
};
struct JoinSummary {
    std::vector<JoinedSession> sessions;  // by their lowest ranks
    std::int64_t steps = 0, layers = 0;
    std::string run;             // empty: not told
    std::int64_t worldSize = 0;  // ranks
};

/// Writes what the sessions hold into `to`: processes, ops and storages of each rank as recorded,
/// layers with the same path once, steps in the order in which they ended, all times on the clock
/// of the session with the lowest rank. Errors: Usage (a single session), BadInput (one that cannot
/// be read or was not recorded; different versions of the framework; different runs; a rank that is
/// there twice, or missing).
Result<JoinSummary> joinSessions(const std::vector<std::string>& paths, SessionWriter& to);

}  // namespace hw::core
