// SPDX-License-Identifier: MIT
#include "core/memory/layout.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>

#include "core/memory/pack_greedy.h"
#include "core/memory/pack_search.h"
#include "core/memory/packing_problem.h"

namespace hw::core {
namespace {

// Above this the exhaustive search is too slow to get anywhere.
constexpr std::size_t kMostItemsToSearch = 3000;
// How the work is shared out, found by trial on hard problems and on plans of recorded steps.
constexpr std::int64_t kImproveShare = 4;  // one part in so many for orders …
constexpr std::int64_t kOrders = 100;      // … and no more of them than this
constexpr std::int64_t kFirstShare = 4;    // for the first search at the goal
// Coarse packings: of what lives where the load is more than a share of the highest, then of the
// blocks that stay for one section in so many and of the largest, until the rest is no more than a
// share of the load.
constexpr double kCrowds[] = {0.98, 0.95, 0.9};
constexpr std::int64_t kStays = 2;
constexpr double kMinorShares[] = {0.2, 0.1, 0.05, 0.01, 0.002};
constexpr int kCoarseSteps = 4;                   // arenas that each of them aims at
constexpr std::int64_t kCoarseShare = 12;         // for one aim of one of them …
constexpr std::int64_t kCoarseWork = 20'000'000;  // … at most
constexpr std::int64_t kNear = 100;  // an arena of one part in so many above the goal is fine
constexpr std::int64_t kAims = 3;    // of what is left, for one aim of the last stage

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
        // A capacity below the bound cannot be met: the greedy answer is as good as any.
        GreedyPacker packer(problem_);
        keep(packWell(problem_, packer, goal_, kImproveShare));
        if (best_ <= goal_ || workLimit_ <= 0) return;
        // Of tens of thousands of items not even one more order is paid for.
        if (GreedyPacker::cost(std::ssize(problem_.items)) > workLimit_) return;
        if (problem_.items.size() <= kMostItemsToSearch) fine_.emplace(problem_);
        aimAt(goal_, workLimit_ / kFirstShare);
        for (const double crowd : kCrowds)
            if (best_ > goal_ && !meter_.exhausted()) packCoarsely(crowdedItems(crowd), false);
        for (const double share : kMinorShares)
            if (best_ > goal_ && !meter_.exhausted()) packCoarsely(largestItems(share), true);
        narrow();
    }

    std::int64_t bound() const { return bound_; }
    const std::vector<std::int64_t>& offsets() const { return offsets_; }

private:
    void keep(const GreedyPacking& packing) {
        if (packing.arena < best_) best_ = packing.arena, offsets_ = packing.offsets;
    }

    // All orders, then the best one improved by at most `share` of the work.
    GreedyPacking packWell(const PackingProblem& problem, GreedyPacker& packer, std::int64_t target,
                           std::int64_t share) {
        GreedyPacking packing = packInOrders(problem, packer, target);
        const auto n = static_cast<std::int64_t>(problem.items.size());
        WorkMeter meter =
            meter_.slice(std::min(workLimit_ / share, kOrders * GreedyPacker::cost(n)));
        if (workLimit_ > 0) improveOrder(problem, packer, target, meter, packing);
        return packing;
    }

    // Packs the `major` items alone; the others fill the gaps greedily. With `reserve` the search
    // leaves room for them on top of each section, which suits others that are small.
    void packCoarsely(const std::vector<std::int32_t>& major, bool reserve) {
        if (major.size() == problem_.items.size() || major.size() > kMostItemsToSearch) return;
        PackingProblem coarse = problem_.coarse(major);
        if (!reserve) std::fill(coarse.reserved.begin(), coarse.reserved.end(), 0);
        GreedyPacker packer(coarse);
        const GreedyPacking packed = packWell(coarse, packer, goal_, kCoarseShare);
        CanonicalSearch search(coarse);
        std::vector<std::int64_t> found;
        std::int64_t low = goal_;
        for (int step = 0;
             step < (capacity_ ? 1 : kCoarseSteps) && low < best_ && !meter_.exhausted(); ++step) {
            const std::int64_t aim = coarseAim(step, low);
            WorkMeter slice = meter_.slice(std::min(workLimit_ / kCoarseShare, kCoarseWork));
            if (packed.arena <= aim) {
                found = packed.offsets;
            } else if (search.run(aim, slice, found) != SearchResult::Found) {
                low = aim + 1;
                continue;
            }
            fillAround(major, found);
            if (best_ > aim) return;  // the others do not fit: it takes a finer level
        }
    }

    std::int64_t coarseAim(int step, std::int64_t low) const {
        const std::int64_t near = goal_ + goal_ / kNear;
        if (step == 0) return goal_;
        return step == 1 && low <= near && near < best_ ? near : low + (best_ - low) / 2;
    }

    // Those that live in a section with more than `crowd` of the highest load: what lives elsewhere
    // only finds room more easily.
    std::vector<std::int32_t> crowdedItems(double crowd) const {
        const std::vector<std::int64_t>& load = problem_.load;
        const auto most = static_cast<double>(*std::max_element(load.begin(), load.end()));
        std::vector<std::int32_t> major;
        for (std::size_t i = 0; i < problem_.items.size(); ++i) {
            const PackingItem& item = problem_.items[i];
            const auto fullest =
                *std::max_element(load.begin() + item.first, load.begin() + item.last);
            if (static_cast<double>(fullest) > crowd * most)
                major.push_back(static_cast<std::int32_t>(i));
        }
        return major;
    }

    // Those that stay longest, and of the others the largest, as many as leave at most `share` of
    // the load to the rest: a block in a wrong place costs more the larger it is, and one that
    // stays needs a place that is free all the time.
    std::vector<std::int32_t> largestItems(double share) const {
        std::vector<std::int64_t> minor = problem_.load;
        const auto highest = [&] { return *std::max_element(minor.begin(), minor.end()); };
        const auto most = static_cast<std::int64_t>(share * static_cast<double>(highest()));
        PackingOrder order = packingOrders(problem_).front();
        const auto stays = std::stable_partition(order.begin(), order.end(), [&](std::int32_t i) {
            const PackingItem& item = problem_.items[i];
            return kStays * (item.last - item.first) > problem_.sections;
        });
        std::vector<std::int32_t> major;
        for (auto next = order.begin(); next != order.end(); ++next) {
            if (next >= stays && highest() <= most) break;
            for (std::int32_t t = problem_.items[*next].first; t < problem_.items[*next].last; ++t)
                minor[t] -= problem_.items[*next].size;
            major.push_back(*next);
        }
        std::sort(major.begin(), major.end());
        return major;
    }

    void fillAround(const std::vector<std::int32_t>& major,
                    const std::vector<std::int64_t>& found) {
        GreedyPacker packer(problem_);
        for (std::size_t k = 0; k < major.size(); ++k) packer.fix(major[k], found[k]);
        keep(packWell(problem_, packer, goal_, kCoarseShare));
    }

    // Searches for an arena of at most `aim`.
    SearchResult aimAt(std::int64_t aim, std::int64_t work) {
        if (!fine_) return SearchResult::OutOfWork;
        WorkMeter slice = meter_.slice(work);
        const SearchResult result = fine_->run(aim, slice, offsets_);
        if (result == SearchResult::Found) best_ = problem_.arenaOf(offsets_);
        if (result == SearchResult::Impossible) bound_ = std::max(bound_, aim + 1);
        return result;
    }

    // Aims at the goal again; then, without a capacity, halves what is open between it and the
    // best.
    void narrow() {
        std::int64_t open = goal_;  // smallest arena that was not given up yet
        while (fine_ && open < best_ && !meter_.exhausted()) {
            const std::int64_t aim = open == goal_ ? goal_ : open + (best_ - open) / 2;
            const std::int64_t work = capacity_ ? meter_.left() : meter_.left() / kAims + 1;
            if (aimAt(aim, work) != SearchResult::Found) open = aim + 1;
            if (capacity_) return;
        }
    }

    const PackingProblem& problem_;
    std::optional<CanonicalSearch> fine_;  // over all items, if not too many
    WorkMeter meter_;
    std::int64_t bound_;  // bytes, as all here
    std::int64_t goal_;
    bool capacity_;
    std::int64_t workLimit_;
    std::int64_t best_ = std::numeric_limits<std::int64_t>::max();
    std::vector<std::int64_t> offsets_;  // units
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
