// SPDX-License-Identifier: MIT
// Exhaustive search for a packing within a capacity.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "core/memory/packing_problem.h"

namespace hw::core {

enum class SearchResult : std::uint8_t { Found, Impossible, OutOfWork };

/// Depth-first search over packings in which every block rests on the floor or on another block,
/// built from the lowest offset upwards. The idea of searching such "canonical" packings only, with
/// bounds on each section, is that of MiniMalloc (Moffitt, "MiniMalloc: A Lightweight Memory
/// Allocator for Hardware-Accelerated Machine Learning", ASPLOS 2023). Here the search branches in
/// two: the block with the lowest possible offset lies there, or it lies higher, and then it rests
/// on a block that is not placed yet, which raises its lowest offset for the whole branch. What
/// remains falls apart into parts that share no section, and each part is searched on its own. A
/// node is cut by the earliest completion of each section: blocks sorted by lowest offset, stacked
/// without regard to other sections.
///
/// Blocks with equal lowest offsets are tried by priority. Every restart (growing by the sequence
/// of Luby, Sinclair and Zuckerman, 1993) takes another: fixed orders first, then how often a block
/// took part in a contradiction, as in constraint solvers' weighted degrees, with some noise.
class CanonicalSearch {
public:
    explicit CanonicalSearch(const PackingProblem& problem);

    /// Looks for offsets (units) with an arena of at most `capacity` bytes. Impossible is proven.
    /// A further run at the same capacity goes on with the next restart.
    SearchResult run(std::int64_t capacity, WorkMeter& meter, std::vector<std::int64_t>& offsets);

private:
    struct Entry {
        std::int64_t lowest;  // offset, units
        std::int32_t item;
        std::int32_t part;
    };
    using Frame = std::vector<Entry>;  // not placed yet, by lowest offset

    SearchResult restart(std::int64_t number, std::int64_t work);
    void setPriorities(std::int64_t number);
    SearchResult solve(std::size_t depth);
    SearchResult placeFirst(std::size_t depth);
    std::int32_t splitIntoParts(Frame& frame);
    bool refuted(const Frame& frame);
    bool raiseFirst(Frame& frame) const;
    void sortByLowest(Frame& frame) const;

    const PackingProblem& problem_;
    const std::vector<PackingItem>& items_;
    std::vector<std::int64_t> sectionCapacity_;  // by section, units
    std::vector<std::int64_t> latest_;           // by item: highest offset within the capacity
    std::vector<std::int64_t> offsets_;          // by item
    std::vector<std::int64_t> completion_;       // by section
    std::vector<std::int32_t> reach_;            // by section: scratch of splitIntoParts
    std::vector<std::int64_t> crowd_;            // by item: load of its fullest section
    std::vector<std::int32_t> rank_;             // by item: small is tried first
    std::vector<double> conflicts_;              // by item
    std::vector<Frame> frames_;                  // by depth
    WorkMeter* meter_ = nullptr;
    std::int64_t restartWork_ = 0;  // left in this restart
    std::int64_t capacity_ = -1;    // of the last run
    std::int64_t restarts_ = 0;     // of runs at that capacity
    std::mt19937_64 random_;
};

}  // namespace hw::core
