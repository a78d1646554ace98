// SPDX-License-Identifier: GPL-3.0-or-later
// All recorded steps of a rank at once, each as a short curve of its live bytes.
#pragma once

#include <vector>

#include "core/session/session.h"

namespace hw::viewer {

struct StepSummary {
    /// Lowest and highest live bytes between `begin` and the next piece (or the step's end).
    struct Piece {
        core::Nanoseconds begin;
        core::Bytes lowest, highest;
    };
    std::int64_t step = 0;
    core::Nanoseconds begin, end;  // since the first recorded step began
    core::Bytes peak;
    std::vector<Piece> pieces;
};

/// Those of the rank whose step `of` is, in their order, about `pieces` pieces in all; the highest
/// of each step is always among them. Empty where the session has no curve of its steps, or one
/// that cannot be read.
std::vector<StepSummary> loadOverview(const core::Session& session, std::int64_t of,
                                      std::int64_t pieces = 4000);

}  // namespace hw::viewer
