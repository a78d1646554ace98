// SPDX-License-Identifier: MIT
#include "core/memory/pack_in_time.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <set>

namespace hw::core {
namespace {

/// The free ranges below the highest end so far, and all above it. In units.
class FreeRanges {
public:
    /// The lowest of the tightest that hold `size`; what is free below the end grows upwards.
    std::int64_t take(std::int64_t size) {
        const auto tightest = bySize_.lower_bound({size, 0});
        if (tightest != bySize_.end()) {
            const auto [room, offset] = *tightest;
            remove(offset, room);
            if (room > size) add(offset + size, room - size);
            return offset;
        }
        std::int64_t offset = end_;
        if (!byOffset_.empty()) {
            const auto [last, room] = *byOffset_.rbegin();
            if (last + room == end_) {
                offset = last;
                remove(last, room);
            }
        }
        end_ = offset + size;
        return offset;
    }

    void give(std::int64_t offset, std::int64_t size) {
        const auto above = byOffset_.lower_bound(offset);
        std::int64_t begin = offset, end = offset + size;
        if (above != byOffset_.begin()) {
            const auto [below, room] = *std::prev(above);
            if (below + room == begin) remove(begin = below, room);
        }
        const auto next = byOffset_.lower_bound(offset);
        if (next != byOffset_.end() && next->first == end) {
            const std::int64_t room = next->second;
            remove(end, room);
            end += room;
        }
        add(begin, end - begin);
    }

private:
    void add(std::int64_t offset, std::int64_t size) {
        byOffset_.emplace(offset, size);
        bySize_.emplace(size, offset);
    }
    void remove(std::int64_t offset, std::int64_t size) {
        byOffset_.erase(offset);
        bySize_.erase({size, offset});
    }

    std::map<std::int64_t, std::int64_t> byOffset_;           // sizes
    std::set<std::pair<std::int64_t, std::int64_t>> bySize_;  // size, offset
    std::int64_t end_ = 0;
};

// `begins` and `ends` of items in sections, whichever way time goes.
template <class Begin, class End>
GreedyPacking sweep(const PackingProblem& problem, Begin begins, End ends) {
    const std::vector<PackingItem>& items = problem.items;
    GreedyPacking packing;
    packing.choice = GapChoice::Tightest;
    packing.order.resize(items.size());
    std::iota(packing.order.begin(), packing.order.end(), 0);
    PackingOrder gone = packing.order;
    std::stable_sort(packing.order.begin(), packing.order.end(),
                     [&](std::int32_t a, std::int32_t b) {
                         const auto begin = begins(items[a]), other = begins(items[b]);
                         return begin != other ? begin < other : ends(items[a]) > ends(items[b]);
                     });
    std::stable_sort(gone.begin(), gone.end(), [&](std::int32_t a, std::int32_t b) {
        return ends(items[a]) < ends(items[b]);
    });
    packing.offsets.assign(items.size(), 0);
    packing.arena = 0;
    FreeRanges free;
    auto next = gone.begin();
    for (const std::int32_t i : packing.order) {
        for (; next != gone.end() && ends(items[*next]) <= begins(items[i]); ++next)
            free.give(packing.offsets[*next], items[*next].size);
        packing.offsets[i] = free.take(items[i].size);
        packing.arena = std::max(packing.arena, packing.offsets[i] * problem.unit + items[i].bytes);
    }
    return packing;
}

}  // namespace

GreedyPacking packInTime(const PackingProblem& problem) {
    using Item = const PackingItem&;
    GreedyPacking forwards = sweep(
        problem, [](Item i) { return i.first; }, [](Item i) { return i.last; });
    GreedyPacking backwards = sweep(
        problem, [](Item i) { return -i.last; }, [](Item i) { return -i.first; });
    return forwards.arena <= backwards.arena ? forwards : backwards;
}

}  // namespace hw::core
