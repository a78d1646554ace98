// SPDX-License-Identifier: MIT
#include "core/memory/layout.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace hw::core {
namespace {

constexpr std::int64_t roundUp(std::int64_t value, std::int64_t to) {
    return (value + to - 1) / to * to;
}

bool takesSpace(const Block& block) {
    return block.size > Bytes(0) && block.begin < block.end;
}

// Enumerates the blocks that live at some instant of an interval: blocks sorted by begin under a
// tree of the latest end, so that a query costs O(log n + overlaps).
class OverlapIndex {
public:
    explicit OverlapIndex(const std::vector<Block>& blocks) : blocks_(blocks) {
        for (std::size_t i = 0; i < blocks.size(); ++i)
            if (takesSpace(blocks[i])) byBegin_.push_back(i);
        std::stable_sort(byBegin_.begin(), byBegin_.end(), [&](std::size_t a, std::size_t b) {
            return blocks_[a].begin < blocks_[b].begin;
        });
        while (leaves_ < byBegin_.size()) leaves_ *= 2;
        latestEnd_.assign(2 * leaves_, INT64_MIN);
        for (std::size_t i = 0; i < byBegin_.size(); ++i)
            latestEnd_[leaves_ + i] = blocks_[byBegin_[i]].end;
        for (std::size_t node = leaves_ - 1; node > 0; --node)
            latestEnd_[node] = std::max(latestEnd_[2 * node], latestEnd_[2 * node + 1]);
    }

    template <class Visit>
    void forEach(const Block& with, Visit visit) const {
        const auto last =
            std::partition_point(byBegin_.begin(), byBegin_.end(),
                                 [&](std::size_t i) { return blocks_[i].begin < with.end; });
        const auto count = static_cast<std::size_t>(last - byBegin_.begin());
        if (count > 0) descend(1, 0, leaves_, count, with.begin, visit);
    }

private:
    template <class Visit>
    void descend(std::size_t node, std::size_t from, std::size_t to, std::size_t count,
                 std::int64_t begin, Visit& visit) const {
        if (from >= count || latestEnd_[node] <= begin) return;
        if (to - from == 1) return visit(byBegin_[from]);
        const std::size_t middle = (from + to) / 2;
        descend(2 * node, from, middle, count, begin, visit);
        descend(2 * node + 1, middle, to, count, begin, visit);
    }

    const std::vector<Block>& blocks_;
    std::vector<std::size_t> byBegin_;
    std::size_t leaves_ = 1;
    std::vector<std::int64_t> latestEnd_;
};

// Highest sum of sizes, each rounded up to `alignment`, that live at one instant.
std::int64_t highestLoad(const std::vector<Block>& blocks, std::int64_t alignment) {
    std::vector<std::pair<std::int64_t, std::int64_t>> changes;
    for (const Block& block : blocks) {
        if (!takesSpace(block)) continue;
        const std::int64_t size = roundUp(block.size.count(), alignment);
        changes.emplace_back(block.begin, size);
        changes.emplace_back(block.end, -size);
    }
    std::sort(changes.begin(), changes.end());  // at one instant frees (negative) come first
    std::int64_t load = 0, highest = 0;
    for (const auto& [time, change] : changes) highest = std::max(highest, load += change);
    return highest;
}

class Packer {
public:
    Packer(const std::vector<Block>& blocks, std::int64_t alignment)
        : blocks_(blocks), alignment_(alignment), index_(blocks) {}

    // Places the blocks in the given order, each into the tightest gap that holds it for all of its
    // life, or on top. Stops when the arena reaches `stopAt`. Returns the arena.
    std::int64_t pack(const std::vector<std::size_t>& order, std::int64_t stopAt,
                      std::vector<std::int64_t>& offsets) const {
        offsets.assign(blocks_.size(), kUnplaced);
        std::int64_t arena = 0;
        std::vector<std::pair<std::int64_t, std::int64_t>> taken;
        for (const std::size_t i : order) {
            taken.clear();
            index_.forEach(blocks_[i], [&](std::size_t j) {
                if (offsets[j] != kUnplaced)
                    taken.emplace_back(offsets[j], offsets[j] + blocks_[j].size.count());
            });
            std::sort(taken.begin(), taken.end());
            offsets[i] = tightestGap(taken, blocks_[i].size.count());
            arena = std::max(arena, offsets[i] + blocks_[i].size.count());
            if (arena >= stopAt) break;
        }
        return arena;
    }

private:
    static constexpr std::int64_t kUnplaced = -1;

    std::int64_t tightestGap(const std::vector<std::pair<std::int64_t, std::int64_t>>& taken,
                             std::int64_t size) const {
        std::int64_t free = 0, best = kUnplaced, bestRoom = INT64_MAX;
        for (const auto& [from, to] : taken) {
            if (from - free >= size && from - free < bestRoom) best = free, bestRoom = from - free;
            free = std::max(free, roundUp(to, alignment_));
        }
        return best == kUnplaced ? free : best;
    }

    const std::vector<Block>& blocks_;
    std::int64_t alignment_;
    OverlapIndex index_;
};

using Key = std::array<std::int64_t, 3>;  // descending

std::vector<std::vector<std::size_t>> packingOrders(const std::vector<Block>& blocks) {
    const auto life = [](const Block& b) { return b.end - b.begin; };
    const auto area = [&](const Block& b) {  // saturating: times and sizes are free to be large
        const auto product = static_cast<double>(b.size.count()) * static_cast<double>(life(b));
        return product > 9e18 ? INT64_MAX : static_cast<std::int64_t>(product);
    };
    Key (*const keys[])(const Block&, std::int64_t, std::int64_t) = {
        [](const Block& b, std::int64_t l, std::int64_t) {
            return Key{b.size.count(), l, -b.begin};
        },
        [](const Block& b, std::int64_t l, std::int64_t a) {
            return Key{a, l, b.size.count()};
        },
        [](const Block& b, std::int64_t l, std::int64_t) {
            return Key{l, b.size.count(), -b.begin};
        },
        [](const Block& b, std::int64_t l, std::int64_t) {
            return Key{-b.begin, l, b.size.count()};
        },
        [](const Block& b, std::int64_t l, std::int64_t) {
            return Key{b.end, l, b.size.count()};
        },
    };
    std::vector<std::size_t> all;
    for (std::size_t i = 0; i < blocks.size(); ++i)
        if (takesSpace(blocks[i])) all.push_back(i);
    std::vector<std::vector<std::size_t>> orders;
    for (const auto key : keys) {
        std::vector<Key> sortKeys(blocks.size());
        for (const std::size_t i : all)
            sortKeys[i] = key(blocks[i], life(blocks[i]), area(blocks[i]));
        std::vector<std::size_t>& order = orders.emplace_back(all);
        std::stable_sort(order.begin(), order.end(),
                         [&](std::size_t a, std::size_t b) { return sortKeys[a] > sortKeys[b]; });
    }
    return orders;
}

}  // namespace

Packing packBlocks(const std::vector<Block>& blocks, Bytes alignment) {
    const std::int64_t align = std::max<std::int64_t>(alignment.count(), 1);
    Packing packing;
    packing.lowerBound = Bytes(highestLoad(blocks, 1));
    packing.offsets.assign(blocks.size(), Bytes(0));
    const std::int64_t alignedBound = highestLoad(blocks, align);

    const Packer packer(blocks, align);
    std::vector<std::int64_t> offsets, best;
    std::int64_t lowest = INT64_MAX;
    for (const std::vector<std::size_t>& order : packingOrders(blocks)) {
        const std::int64_t arena = packer.pack(order, lowest, offsets);
        if (arena < lowest) lowest = arena, best = offsets;
        if (roundUp(lowest, align) <= alignedBound) break;
    }
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        if (takesSpace(blocks[i])) packing.offsets[i] = Bytes(best[i]);
        packing.arena = std::max(packing.arena, packing.offsets[i] + blocks[i].size);
    }
    return packing;
}

}  // namespace hw::core
