// SPDX-License-Identifier: MIT
// The packing problem in the form that all stages work on: only blocks that take space, sizes in
// whole units, lifetimes as ranges of sections.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/memory/layout.h"

namespace hw::core {

/// A block in units. A *section* is a set of blocks that live together and is contained in no other
/// such set; a block lives during the sections [first, last). Two blocks live together exactly when
/// they share a section, so the sections can stand for time.
struct PackingItem {
    std::int64_t size = 0;  // units, rounded up
    std::int32_t first = 0;
    std::int32_t last = 0;
    std::int64_t bytes = 0;  // true size
    std::size_t block = 0;   // index into the caller's blocks

    bool livesWith(const PackingItem& other) const {
        return first < other.last && other.first < last;
    }
};

struct PackingProblem {
    PackingProblem(const std::vector<Block>& blocks, std::int64_t alignment);

    /// The same problem with the `major` items only (indices, ascending); the load of the others is
    /// left free in every section. Offsets keep the unit.
    PackingProblem coarse(const std::vector<std::int32_t>& major) const;

    /// Highest end of an item in bytes.
    std::int64_t arenaOf(const std::vector<std::int64_t>& offsets) const;

    std::vector<PackingItem> items;
    std::int32_t sections = 0;
    /// Bytes; the greatest common divisor of the rounded sizes. Offsets that are no multiple of it
    /// gain nothing: blocks that rest on each other or on the floor lie on multiples.
    std::int64_t unit = 1;
    std::vector<std::int64_t> load;      // units that live in each section
    std::vector<std::int64_t> reserved;  // units to leave free below the capacity in each section
    std::int64_t lowerBound = 0;         // bytes, of an aligned packing

private:
    PackingProblem() = default;
};

/// Counts work and says when to stop.
class WorkMeter {
public:
    explicit WorkMeter(const PackOptions& options);

    /// True when `amount` more may be done. Once false, always false.
    bool spend(std::int64_t amount);
    bool exhausted() const { return exhausted_; }
    std::int64_t left() const { return left_; }
    /// A meter of at most `work`; what it spends counts here too. Must not outlive this one.
    WorkMeter slice(std::int64_t work);

private:
    WorkMeter() = default;

    WorkMeter* parent_ = nullptr;
    std::int64_t left_ = 0;
    std::int64_t untilCheck_ = 0;
    double deadline_ = 0;  // seconds of the steady clock
    std::function<bool()> cancelled_;
    bool exhausted_ = false;
};

}  // namespace hw::core
