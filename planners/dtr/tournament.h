// SPDX-License-Identifier: MIT
// The lowest score of a large pool where scores are lines over the clock. In C++17, as frameworks
// ask for.
#pragma once

#include <cstdint>
#include <vector>

#include "planners/dtr/heuristics.h"

namespace hw::planners {

/// Heuristics by which a storage goes the more readily the higher its line stands: weight by the
/// time since a moment. A large pool is a kinetic tournament (Basch, Guibas and Hershberger, Data
/// Structures for Mobile Data, SODA 1997): blocks of 64 storages are the leaves of a binary tree,
/// each node knows the highest of its lines and the clock until which it is so. A choice plays
/// again what has run out or changed. It is what all scores one by one would choose; evaluations
/// count as if they had been taken, accesses do not.
class TournamentHeuristic : public EvictionHeuristic {
public:
    TournamentHeuristic(DtrState& state, const HeuristicOptions& options);

    void resize(std::size_t storages) override;
    void entered(core::StorageIndex s) override;
    void left(core::StorageIndex s) override;
    core::StorageIndex choose(const EvictionPool& pool) override;

protected:
    struct Line {
        double weight = 0;       // not negative
        std::int64_t since = 0;  // ns
    };
    /// While `s` is in the pool its line only sinks.
    virtual Line lineOf(core::StorageIndex s) const = 0;
    /// The clock of the lines, ns.
    virtual std::int64_t now() const { return state_.clock; }

private:
    struct Node {
        core::StorageIndex highest = core::kNone;
        std::int64_t until = 0;  // ns; before that it is
    };

    void expire(core::StorageIndex s);
    void play(std::size_t node);
    void playBlock(std::size_t node, std::uint64_t members);
    std::int64_t heldUntil(core::StorageIndex higher, core::StorageIndex lower) const;
    bool hasSunk(core::StorageIndex s);
    bool goesFirst(core::StorageIndex a, core::StorageIndex b);
    double height(core::StorageIndex s) const {
        return lines_[s].weight * static_cast<double>(now() - lines_[s].since);
    }

    const std::size_t largePool_;
    const bool kept_;                     // false: choose() need not be quick
    std::vector<std::uint64_t> members_;  // per block
    std::vector<Node> nodes_;             // the root at 1; leaves last, one per block
    std::vector<Line> lines_;             // per storage, when its block was last played
    std::vector<std::int64_t> order_;     // per storage: which entry into the pool was its last
    std::int64_t entries_ = 0;
};

}  // namespace hw::planners
