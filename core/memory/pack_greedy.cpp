// SPDX-License-Identifier: MIT
#include "core/memory/pack_greedy.h"

#include <algorithm>
#include <array>
#include <bit>
#include <iterator>
#include <limits>
#include <numeric>
#include <random>

#include "core/memory/pack_in_time.h"

namespace hw::core {
namespace {

constexpr std::int64_t kCrowded = 33;    // sections closer to the highest load than one part in 33
constexpr std::int64_t kAllOrders = 24;  // those of packingOrders(), each into either gap
constexpr std::int64_t kOrdersWork = 500'000'000;  // all orders of 25,000 items, one of 126,000
constexpr std::int64_t kLongStays[] = {40, 200};   // in crowded sections, as a part of all sections

// Saturating: sizes are free to be large.
std::int64_t area(const PackingItem& item) {
    const auto product =
        static_cast<double>(item.size) * static_cast<double>(item.last - item.first);
    return product > 9e18 ? INT64_MAX : static_cast<std::int64_t>(product);
}

// Sizes within a factor of `base`, 2 or 4, count as one.
std::int64_t sizeClass(const PackingItem& item, int base) {
    const int bits = std::bit_width(static_cast<std::uint64_t>(item.size));
    return base == 2 ? bits : (bits + 1) / 2;
}

using Key = std::array<std::int64_t, 3>;  // descending

template <class KeyOf>
PackingOrder sortedBy(const PackingProblem& problem, KeyOf keyOf) {
    std::vector<Key> keys;
    keys.reserve(problem.items.size());
    for (const PackingItem& item : problem.items) keys.push_back(keyOf(item));
    PackingOrder order(keys.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::int32_t a, std::int32_t b) { return keys[a] > keys[b]; });
    return order;
}

// Number of sections before each whose load is close to the highest; one more than sections.
std::vector<std::int64_t> crowdedBefore(const PackingProblem& problem) {
    const std::int64_t most = *std::max_element(problem.load.begin(), problem.load.end());
    std::vector<std::int64_t> before(problem.load.size() + 1, 0);
    for (std::size_t t = 0; t < problem.load.size(); ++t)
        before[t + 1] = before[t] + (problem.load[t] > most - most / kCrowded ? 1 : 0);
    return before;
}

}  // namespace

std::int64_t GreedyPacker::pack(const PackingOrder& order, GapChoice choice, std::int64_t stopAt,
                                std::vector<std::int64_t>& offsets) {
    offsets.assign(problem_.items.size(), 0);
    placed_ = fixed_;
    std::int64_t arena = 0;
    for (const auto& [i, offset] : fixedItems_) {
        offsets[i] = offset;
        arena = std::max(arena, offset * problem_.unit + problem_.items[i].bytes);
    }
    for (const std::int32_t i : order) {
        const PackingItem& item = problem_.items[i];
        offsets[i] = gapFor(item, choice);
        arena = std::max(arena, offsets[i] * problem_.unit + item.bytes);
        if (arena >= stopAt) break;
        place(i, offsets[i]);
    }
    return arena;
}

void GreedyPacker::place(std::int32_t i, std::int64_t offset) {
    const PackingItem& item = problem_.items[i];
    const Placed made{offset, offset + item.size, item.first, item.last};
    placed_.insert(
        std::upper_bound(placed_.begin(), placed_.end(), made,
                         [](const Placed& a, const Placed& b) { return a.offset < b.offset; }),
        made);
}

void GreedyPacker::fix(std::int32_t i, std::int64_t offset) {
    placed_.swap(fixed_);
    place(i, offset);
    placed_.swap(fixed_);
    fixedItems_.emplace_back(i, offset);
    isFixed_[static_cast<std::size_t>(i)] = true;
}

std::int64_t GreedyPacker::gapFor(const PackingItem& item, GapChoice choice) const {
    std::int64_t free = 0, best = -1, bestRoom = std::numeric_limits<std::int64_t>::max();
    for (const Placed& placed : placed_) {
        if (placed.first >= item.last || item.first >= placed.last) continue;
        const std::int64_t room = placed.offset - free;
        if (room >= item.size && room < bestRoom) {
            best = free, bestRoom = room;
            if (choice == GapChoice::Lowest || room == item.size) break;
        }
        free = std::max(free, placed.end);
    }
    return best < 0 ? free : best;
}

std::vector<PackingOrder> packingOrders(const PackingProblem& problem) {
    using Item = const PackingItem&;
    const auto life = [](Item i) { return std::int64_t{i.last} - i.first; };
    std::vector<PackingOrder> orders{
        sortedBy(problem,
                 [&](Item i) {
                     return Key{i.size, life(i), -i.first};
                 }),
        sortedBy(problem,
                 [&](Item i) {
                     return Key{i.size, -i.first, i.last};
                 }),
        sortedBy(problem,
                 [&](Item i) {
                     return Key{i.size, i.last, -i.first};
                 }),
        sortedBy(problem,
                 [&](Item i) {
                     return Key{sizeClass(i, 4), i.last, -i.first};
                 }),
        sortedBy(problem,
                 [&](Item i) {
                     return Key{area(i), life(i), i.size};
                 }),
        sortedBy(problem,
                 [&](Item i) {
                     return Key{life(i), i.size, -i.first};
                 }),
        sortedBy(problem,
                 [&](Item i) {
                     return Key{-i.first, life(i), i.size};
                 }),
        sortedBy(problem,
                 [&](Item i) {
                     return Key{i.last, life(i), i.size};
                 }),
    };
    const std::vector<std::int64_t> before = crowdedBefore(problem);
    for (const std::int64_t part : kLongStays) {
        const auto stays = [&](Item i) -> std::int64_t {
            return (before[i.last] - before[i.first]) * part > problem.sections ? 1 : 0;
        };
        orders.push_back(sortedBy(problem, [&](Item i) { return Key{stays(i), i.size, i.last}; }));
        orders.push_back(sortedBy(problem, [&](Item i) {
            return Key{stays(i), sizeClass(i, 2), i.last};
        }));
    }
    return orders;
}

GreedyPacking packInOrders(const PackingProblem& problem, GreedyPacker& packer,
                           std::int64_t target) {
    GreedyPacking best;
    std::int64_t left = kOrdersWork / GreedyPacker::cost(std::ssize(problem.items));
    if (left < kAllOrders && !packer.hasFixed()) best = packInTime(problem);
    if (best.arena <= target || left == 0) return best;
    std::vector<std::int64_t> offsets;
    for (PackingOrder& order : packingOrders(problem)) {
        std::erase_if(order, [&](std::int32_t i) { return packer.isFixed(i); });
        for (const GapChoice choice : {GapChoice::Lowest, GapChoice::Tightest}) {
            if (left-- == 0) return best;
            const std::int64_t arena = packer.pack(order, choice, best.arena, offsets);
            if (arena >= best.arena) continue;
            best = {arena, offsets, order, choice};
            if (arena <= target) return best;
        }
    }
    return best;
}

void improveOrder(const PackingProblem& problem, GreedyPacker& packer, std::int64_t target,
                  WorkMeter& meter, GreedyPacking& best) {
    const std::int64_t cost = GreedyPacker::cost(static_cast<std::int64_t>(problem.items.size()));
    std::mt19937_64 random(1);
    PackingOrder order = best.order;
    std::vector<std::int64_t> offsets;
    std::vector<double> priority(problem.items.size());
    for (std::size_t rank = 0; rank < order.size(); ++rank)
        priority[order[rank]] = static_cast<double>(order.size() - rank);
    while (best.arena > target && meter.spend(cost)) {
        const std::int64_t arena =
            packer.pack(order, best.choice, std::numeric_limits<std::int64_t>::max(), offsets);
        if (arena < best.arena) best = {arena, offsets, order, best.choice};
        for (const std::int32_t i : order) {
            const std::int64_t excess = offsets[i] * problem.unit + problem.items[i].bytes - target;
            if (excess <= 0) continue;
            const double blame =
                static_cast<double>(excess) / static_cast<double>(arena - target + 1);
            priority[i] += blame * static_cast<double>(1 + random() % order.size()) / 4;
        }
        std::stable_sort(order.begin(), order.end(),
                         [&](std::int32_t a, std::int32_t b) { return priority[a] > priority[b]; });
    }
}

}  // namespace hw::core
