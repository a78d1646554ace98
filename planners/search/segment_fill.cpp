// SPDX-License-Identifier: MIT
#include "planners/search/segment_fill.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include "planners/search/divisions.h"

namespace hw::planners {

using namespace hw::core;

namespace {

constexpr int kMostSteps = 10;                       // for each way, and again for the best
constexpr double kRoughly = 0.98, kNearly = 0.9998;  // of the budget is used: then it is enough
constexpr std::size_t kBest = 3;                     // ways that are looked at closely
constexpr std::size_t kChain = 32;  // storages made from each other that are looked at

/// What to drop first, and what stays for it.
struct Manner {
    double farFirst;  // how much sooner what is needed later is dropped: an exponent
    bool holds;       // what something dropped is made again from stays until it has been
};
// The likeliest first.
constexpr std::array<Manner, 6> kManners{
    {{0.5, true}, {0, true}, {0.5, false}, {0, false}, {1, true}, {1, false}}};

class SegmentFill {
public:
    SegmentFill(const TrainingGraph& graph, Bytes budget, const Consider& consider,
                const std::function<bool()>& stop)
        : graph_(graph),
          budget_(budget),
          consider_(consider),
          stop_(stop),
          info_(rebuildInfo(graph)),
          forward_(chen::forwardPass(graph, info_)),
          held_(info_),
          own_(graph.storages.size(), 0),
          away_(graph.storages.size(), 1),
          gone_(graph.storages.size(), false) {
        for (StorageIndex s = 0; s < static_cast<StorageIndex>(graph.storages.size()); ++s) {
            if (forward_.lastUse[s] == kNone) continue;
            own_[s] = static_cast<double>(chen::makingTime(graph, info_, forward_, s).count());
            gone_[s] = !forward_.saved[s];
            const auto& readers = graph.storages[s].readers;
            const auto next = std::lower_bound(readers.begin(), readers.end(), forward_.end);
            if (next != readers.end()) away_[s] = 1 + *next - forward_.end;
        }
    }

    void run() {
        if (stop_()) return;
        peak_ = consider_(schedule(Bytes(0), false)).peak;
        std::vector<Fill> fills;
        for (const Division& each : kDivisions) {
            if (stop_()) return;
            const std::vector<bool> crosses = crossing(each);
            for (const Manner& manner : kManners) {
                fills.push_back({each, manner});
                fill(fills.back(), crosses, kRoughly);
            }
        }
        std::erase_if(fills, [](const Fill& of) { return !of.time; });
        std::stable_sort(fills.begin(), fills.end(),
                         [](const Fill& a, const Fill& b) { return *a.time < *b.time; });
        fills.resize(std::min(fills.size(), kBest));
        for (Fill& each : fills) fill(each, crossing(each.division), kNearly);
    }

private:
    std::vector<bool> crossing(const Division& division) const {
        return crossingStorages(graph_, forward_, division, ratio(budget_, peak_));
    }

    /// Puts what does not cross in the order in which to drop it: first what takes the least time a
    /// byte to have again. Each op runs once more at most, so what is dropped together shares the
    /// results that it is made from and nothing keeps.
    void order(const std::vector<bool>& crossing, const Manner& manner) {
        using Entry = std::pair<double, StorageIndex>;
        std::priority_queue<Entry, std::vector<Entry>, std::greater<>> next;
        missing_ = gone_;
        std::vector<bool> waits(missing_.size(), false);
        const auto dearness = [&](StorageIndex s) {
            return timeAgain(s) / (static_cast<double>(graph_.storages[s].bytes.count()) *
                                   std::pow(away_[s], manner.farFirst));
        };
        for (StorageIndex s = 0; s < static_cast<StorageIndex>(waits.size()); ++s) {
            waits[s] = forward_.saved[s] && !crossing[s] && graph_.storages[s].bytes > Bytes(0);
            if (waits[s]) next.emplace(dearness(s), s);
        }
        cheapest_.clear();
        while (!next.empty()) {
            const StorageIndex s = next.top().second;
            next.pop();
            if (!waits[s]) continue;
            waits[s] = false;
            cheapest_.push_back(s);
            timeAgain(s);
            const std::vector<StorageIndex> made = chain_;  // with it, from now on
            for (const StorageIndex input : made) missing_[input] = false;
            for (const StorageIndex input : made)
                forEachMadeFrom(input, [&](StorageIndex other) {
                    if (waits[other]) next.emplace(dearness(other), other);
                });
        }
    }

    /// Of the forward pass to have `s` once more (ns); leaves in chain_ what is missing for it.
    double timeAgain(StorageIndex s) {
        chain_.assign(1, s);
        double time = own_[s];
        for (std::size_t at = 0; at < chain_.size() && chain_.size() < kChain; ++at)
            for (const OpIndex op : info_.chain[chain_[at]]) {
                if (op >= forward_.end) break;
                for (const Use& use : graph_.ops[op].inputs) {
                    const StorageIndex input = graph_.storageOf(use.tensor);
                    if (!missing_[input] ||
                        std::find(chain_.begin(), chain_.end(), input) != chain_.end())
                        continue;
                    chain_.push_back(input);
                    time += own_[input];
                }
            }
        chain_.erase(chain_.begin());
        return time;
    }

    /// What the forward pass makes from it, and from what it makes of that and nothing keeps.
    template <class Visit>
    void forEachMadeFrom(StorageIndex s, Visit visit) const {
        std::vector<StorageIndex> found{s};
        for (std::size_t at = 0; at < found.size() && found.size() < kChain; ++at)
            for (const OpIndex op : graph_.storages[found[at]].readers) {
                if (op >= forward_.end) break;
                for (const OpOutput& output : graph_.ops[op].outputs) {
                    const StorageIndex made = graph_.storageOf(output.tensor);
                    if (!output.makesStorage ||
                        std::find(found.begin(), found.end(), made) != found.end())
                        continue;
                    if (missing_[made])
                        found.push_back(made);
                    else
                        visit(made);
                }
            }
    }

    /// A way, and how many bytes have to be dropped with it.
    struct Fill {
        Division division;
        Manner manner;
        Bytes tooFew = {}, enough = {};
        std::optional<Nanoseconds> time = {};  // with enough dropped
    };

    /// Drops more and more until the budget is kept, then less until that share of it is used.
    void fill(Fill& of, const std::vector<bool>& crosses, double used) {
        if (stop_()) return;
        order(crosses, of.manner);
        Bytes all;
        for (const StorageIndex s : cheapest_) all += graph_.storages[s].bytes;
        Bytes next = of.time ? middle(of) : std::min(all, peak_ - budget_);
        for (int step = 0; step < kMostSteps && !stop_(); ++step) {
            const Evaluation made = consider_(schedule(next, of.manner.holds));
            if (made.valid && made.peak <= budget_) {
                of.enough = next, of.time = made.time;
                if (ratio(made.peak, budget_) >= used) return;
            } else {
                if (next == all) return;
                of.tooFew = next;
            }
            const Bytes more = std::max(made.peak - budget_, Bytes(all.count() / 16));
            next = of.time ? middle(of) : std::min(all, next + more);
        }
    }

    static Bytes middle(const Fill& of) {
        return Bytes((of.tooFew.count() + of.enough.count()) / 2);
    }

    /// Drops the first of them, so many bytes.
    Schedule schedule(Bytes bytes, bool holds) {
        std::vector<bool> keep(graph_.storages.size(), true);
        Bytes dropped;
        for (const StorageIndex s : cheapest_) {
            if (dropped >= bytes) break;
            keep[s] = false;
            dropped += graph_.storages[s].bytes;
        }
        if (holds)
            hold(keep);
        else
            held_.lastUse = info_.lastUse;
        return chen::dropSchedule(graph_, held_, forward_, keep);
    }

    /// What is dropped is made again from what is there then: that stays until it has been.
    void hold(const std::vector<bool>& keep) {
        std::vector<OpIndex> until(graph_.storages.size(), kNone);  // per storage: rebuilt for that
        held_.lastUse = info_.lastUse;
        for (auto s = static_cast<StorageIndex>(until.size()) - 1; s >= 0; --s) {
            if (!keep[s]) until[s] = held_.lastUse[s];
            if (until[s] == kNone) continue;
            for (const OpIndex op : info_.chain[s]) {
                if (op >= forward_.end) break;
                for (const Use& use : graph_.ops[op].inputs) {
                    const StorageIndex input = graph_.storageOf(use.tensor);
                    OpIndex& needed = gone_[input] ? until[input] : held_.lastUse[input];
                    if (forward_.lastUse[input] != kNone) needed = std::max(needed, until[s]);
                }
            }
        }
    }

    const TrainingGraph& graph_;
    Bytes budget_, peak_;  // of keeping everything
    const Consider& consider_;
    const std::function<bool()>& stop_;
    const RebuildInfo info_;
    const chen::ForwardPass forward_;
    RebuildInfo held_;          // of the schedule in progress
    std::vector<double> own_;   // ns, per storage: to make it, without what it is made from
    std::vector<double> away_;  // per storage: first use in the backward pass, in ops
    std::vector<bool> gone_;    // per storage: by the backward pass, in any plan
    // Of the division in progress:
    std::vector<bool> missing_;        // gone_, and not made again yet
    std::vector<StorageIndex> chain_;  // of timeAgain()
    std::vector<StorageIndex> cheapest_;
};

}  // namespace

void fillSegments(const TrainingGraph& graph, Bytes budget, const Consider& consider,
                  const std::function<bool()>& stop) {
    SegmentFill(graph, budget, consider, stop).run();
}

}  // namespace hw::planners
