// SPDX-License-Identifier: MIT
// How much a search may do.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>

namespace hw::planners {

/// So many moves of annealing, or so many seconds from `begin`, or whichever ends first. Without
/// seconds the search is deterministic.
struct WorkBudget {
    static constexpr std::int64_t kAnyMoves = std::numeric_limits<std::int64_t>::max();

    std::int64_t moves = kAnyMoves;
    double seconds = INFINITY;
    std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();

    bool countsMoves() const { return moves != kAnyMoves; }
    double passed() const {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    }
    double secondsLeft() const { return seconds - passed(); }
    /// The share that `done` moves and the time since `begin` have used; all of it from 1 on.
    double spent(std::int64_t done) const {
        return std::max(
            static_cast<double>(done) / static_cast<double>(std::max<std::int64_t>(1, moves)),
            passed() / std::max(1e-3, seconds));
    }
    /// What is left after `done` moves, but at most `most` of them.
    WorkBudget rest(std::int64_t done, std::int64_t most) const {
        return {std::min(most, moves - done), secondsLeft()};
    }
    /// One of `parts` equal ones, from now.
    WorkBudget part(int parts) const { return {moves / parts, seconds / parts}; }
};

}  // namespace hw::planners
