// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace hw::planners {

/// compute / (size * staleness), as DTR's simulator divides: the product exactly (it exceeds 2^53),
/// then one rounding to the nearest double, ties to even. Infinite where the product is not
/// positive. Ties between scores decide evictions, so the last bit matters.
/// @param compute ns, may be negative (a class that shrank)  @param size bytes  @param staleness ns
double dtrScore(std::int64_t compute, std::int64_t size, std::int64_t staleness);

}  // namespace hw::planners
