// SPDX-License-Identifier: MIT
// Where a curve of memory falls low between two rises: there one pass of a step, forward and
// backward, ends and the next begins.
#pragma once

#include <cstddef>
#include <vector>

#include "core/base/units.h"

namespace hw::core {

/// Splits places 0..n-1 between peaks above `level` where memory falls, from the lower of the two
/// peaks, at least half of the way down to where it is lowest of all. Returns the first place of
/// every part but the first.
///
/// @param heights by place: highest bytes there
/// @param lows by place: bytes when it is left
std::vector<std::size_t> splitAtValleys(const std::vector<Bytes>& heights,
                                        const std::vector<Bytes>& lows, Bytes level);

/// Half of the way from the lowest to the highest bytes: peaks above it are passes of a step.
Bytes halfHeight(const std::vector<Bytes>& heights, const std::vector<Bytes>& lows);

}  // namespace hw::core
