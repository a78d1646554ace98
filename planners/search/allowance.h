// SPDX-License-Identifier: MIT
// How much a piece of a search may do.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>

namespace hw::planners {

/// So many moves, or so many seconds from now, or whichever ends first.
struct Allowance {
    std::int64_t moves = INT64_MAX;
    double seconds = INFINITY;
    std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();

    /// 1 and more when all is spent.
    double spent(std::int64_t done) const {
        return std::max(
            static_cast<double>(done) / static_cast<double>(std::max<std::int64_t>(1, moves)),
            passed() / std::max(1e-3, seconds));
    }
    double passed() const {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    }
    /// What is left after `done` moves, but at most `most` of them.
    Allowance rest(std::int64_t done, std::int64_t most) const {
        return {std::min(most, moves - done), seconds - passed()};
    }
    /// One of `parts` equal ones.
    Allowance part(int parts) const { return {moves / parts, seconds / parts}; }
};

}  // namespace hw::planners
