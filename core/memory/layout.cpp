// SPDX-License-Identifier: MIT
#include "core/memory/layout.h"

#include <algorithm>
#include <limits>

#include "core/memory/pack_greedy.h"
#include "core/memory/pack_search.h"
#include "core/memory/packing_problem.h"

namespace hw::core {
namespace {

// Above this the exhaustive search is too slow to get anywhere.
constexpr std::size_t kMostItemsToSearch = 3000;
constexpr std::int64_t kImproveShare = 4;  // a part of the work, one in so many, for orders …
constexpr std::int64_t kOrders = 100;      // … and no more of them than this

class Packer {
public:
    Packer(const PackingProblem& problem, const PackOptions& options)
        : problem_(problem),
          meter_(options),
          bound_(problem.lowerBound),
          goal_(std::max(bound_, options.capacity ? options.capacity->count() : 0)),
          capacity_(options.capacity.has_value()),
          workLimit_(options.workLimit) {}

    void run() {
        packGreedily();
        // A capacity below the bound cannot be met: the greedy answer is as good as any.
        if (best_ <= goal_ || workLimit_ <= 0) return;
        improve();
        if (best_ <= goal_ || problem_.items.size() > kMostItemsToSearch) return;
        search();
    }

    std::int64_t bound() const { return bound_; }
    const std::vector<std::int64_t>& offsets() const { return offsets_; }

private:
    void packGreedily() {
        GreedyPacker packer(problem_);
        std::vector<std::int64_t> offsets;
        for (PackingOrder& order : packingOrders(problem_)) {
            const std::int64_t arena = packer.pack(order, GapChoice::Tightest, best_, offsets);
            if (arena >= best_) continue;
            best_ = arena;
            offsets_ = offsets;
            order_ = std::move(order);
            if (best_ <= goal_) return;
        }
    }

    void improve() {
        PackOptions share;
        const auto n = static_cast<std::int64_t>(problem_.items.size());
        share.workLimit = std::min(workLimit_ / kImproveShare, kOrders * GreedyPacker::cost(n));
        WorkMeter meter(share);
        improveOrder(problem_, order_, goal_, meter, best_, offsets_);
    }

    // Aims at the goal first; then, without a capacity, halves what is open between bound and best.
    void search() {
        CanonicalSearch search(problem_);
        std::int64_t open = goal_;  // smallest arena that was not given up yet
        while (open < best_ && !meter_.exhausted()) {
            const std::int64_t aim = open == goal_ ? goal_ : open + (best_ - open) / 2;
            const SearchResult result = search.run(aim, meter_, offsets_);
            if (result == SearchResult::Found) best_ = problem_.arenaOf(offsets_);
            if (result == SearchResult::Impossible) bound_ = std::max(bound_, aim + 1);
            if (capacity_) return;
            open = result == SearchResult::Found ? open : aim + 1;
        }
    }

    const PackingProblem& problem_;
    WorkMeter meter_;
    std::int64_t bound_;  // bytes, as all here
    std::int64_t goal_;
    bool capacity_;
    std::int64_t workLimit_;
    std::int64_t best_ = std::numeric_limits<std::int64_t>::max();
    std::vector<std::int64_t> offsets_;  // units
    PackingOrder order_;
};

}  // namespace

Packing packBlocks(const std::vector<Block>& blocks, const PackOptions& options) {
    Packing packing;
    packing.offsets.assign(blocks.size(), Bytes(0));
    const PackingProblem problem(blocks, std::max<std::int64_t>(options.alignment.count(), 1));
    if (!problem.items.empty()) {
        Packer packer(problem, options);
        packer.run();
        for (std::size_t i = 0; i < problem.items.size(); ++i)
            packing.offsets[problem.items[i].block] = Bytes(packer.offsets()[i] * problem.unit);
        packing.arena = Bytes(problem.arenaOf(packer.offsets()));
        packing.lowerBound = Bytes(packer.bound());
    }
    packing.optimal = packing.arena == packing.lowerBound;
    return packing;
}

Packing packBlocks(const std::vector<Block>& blocks, Bytes alignment) {
    PackOptions options;
    options.alignment = alignment;
    return packBlocks(blocks, options);
}

Bytes highestLoad(const std::vector<Block>& blocks) {
    std::vector<std::pair<std::int64_t, std::int64_t>> changes;
    for (const Block& block : blocks) {
        if (!block.takesSpace()) continue;
        changes.emplace_back(block.begin, block.size.count());
        changes.emplace_back(block.end, -block.size.count());
    }
    std::sort(changes.begin(), changes.end());  // at one instant ends (negative) come first
    std::int64_t load = 0, highest = 0;
    for (const auto& [time, change] : changes) highest = std::max(highest, load += change);
    return Bytes(highest);
}

}  // namespace hw::core
