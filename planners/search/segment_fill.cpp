// SPDX-License-Identifier: MIT
#include "planners/search/segment_fill.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include "planners/search/divisions.h"

namespace hw::planners {

using namespace hw::core;

namespace {

constexpr int kMostSteps = 10;                       // for each division, and again for the best
constexpr double kRoughly = 0.98, kNearly = 0.9998;  // of the budget is used: then it is enough
constexpr std::size_t kBest = 3;                     // divisions that are looked at closely
constexpr int kChain = 6;  // storages that are made from each other and looked at

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
          alone_(graph.storages.size(), 0),
          gone_(graph.storages.size(), false) {
        const auto count = static_cast<StorageIndex>(graph.storages.size());
        for (StorageIndex s = 0; s < count; ++s) {
            if (forward_.lastUse[s] == kNone) continue;
            alone_[s] = static_cast<double>(chen::makingTime(graph, info_, forward_, s).count());
            gone_[s] = !forward_.saved[s];
        }
        const std::vector<double> own = alone_;
        for (StorageIndex s = 0; s < count; ++s)
            if (gone_[s]) raise(s, own[s], gone_, alone_, kChain);
    }

    void run() {
        if (stop_()) return;
        peak_ = consider_(schedule(Bytes(0))).peak;
        std::vector<Fill> fills;
        for (const Division& each : kDivisions) {
            fills.push_back({each});
            fill(fills.back(), kRoughly);
        }
        std::erase_if(fills, [](const Fill& of) { return !of.time; });
        std::stable_sort(fills.begin(), fills.end(),
                         [](const Fill& a, const Fill& b) { return *a.time < *b.time; });
        fills.resize(std::min(fills.size(), kBest));
        for (Fill& each : fills) fill(each, kNearly);
    }

private:
    /// To have again what is made from `s` takes so much more time (ns).
    void raise(StorageIndex s, double more, const std::vector<bool>& gone,
               std::vector<double>& time, int chain) const {
        for (const OpIndex op : graph_.storages[s].readers) {
            if (op >= forward_.end) return;
            for (const OpOutput& output : graph_.ops[op].outputs) {
                if (!output.makesStorage) continue;
                const StorageIndex made = graph_.storageOf(output.tensor);
                time[made] += more;
                if (gone[made] && chain > 1) raise(made, more, gone, time, chain - 1);
            }
        }
    }

    /// What does not cross, in the order in which to drop it: what takes the least time a byte to
    /// have again once all before it is dropped.
    void order(const std::vector<bool>& crossing) {
        using Entry = std::pair<double, StorageIndex>;
        std::priority_queue<Entry, std::vector<Entry>, std::greater<>> next;
        std::vector<double> time = alone_;
        std::vector<bool> gone = gone_;
        const auto dearness = [&](StorageIndex s) {
            return time[s] / static_cast<double>(graph_.storages[s].bytes.count());
        };
        for (StorageIndex s = 0; s < static_cast<StorageIndex>(time.size()); ++s)
            if (forward_.saved[s] && !crossing[s] && graph_.storages[s].bytes > Bytes(0))
                next.emplace(dearness(s), s);
        cheapest_.clear();
        while (!next.empty()) {
            const auto [known, s] = next.top();
            next.pop();
            if (const double now = dearness(s); now > known) {
                next.emplace(now, s);
                continue;
            }
            cheapest_.push_back(s);
            gone[s] = true;
            raise(s, time[s], gone, time, kChain);
        }
    }

    /// How many bytes have to be dropped with a division.
    struct Fill {
        Division division;
        Bytes tooFew = {}, enough = {};
        std::optional<Nanoseconds> time = {};  // with enough dropped
    };

    /// Drops more and more until the budget is kept, then less until that share of it is used.
    void fill(Fill& of, double used) {
        if (stop_()) return;
        order(crossingStorages(graph_, forward_, of.division, ratio(budget_, peak_)));
        Bytes all;
        for (const StorageIndex s : cheapest_) all += graph_.storages[s].bytes;
        Bytes next = of.time ? middle(of) : std::min(all, peak_ - budget_);
        for (int step = 0; step < kMostSteps && !stop_(); ++step) {
            const Evaluation made = consider_(schedule(next));
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
    Schedule schedule(Bytes bytes) const {
        std::vector<bool> keep(graph_.storages.size(), true);
        Bytes dropped;
        for (const StorageIndex s : cheapest_) {
            if (dropped >= bytes) break;
            keep[s] = false;
            dropped += graph_.storages[s].bytes;
        }
        return chen::dropSchedule(graph_, info_, forward_, keep);
    }

    const TrainingGraph& graph_;
    Bytes budget_, peak_;  // of keeping everything
    const Consider& consider_;
    const std::function<bool()>& stop_;
    const RebuildInfo info_;
    const chen::ForwardPass forward_;
    std::vector<double> alone_;           // ns, per storage: to have it again, all saved kept
    std::vector<bool> gone_;              // per storage: by the backward pass, in any plan
    std::vector<StorageIndex> cheapest_;  // of the division in progress
};

}  // namespace

void fillSegments(const TrainingGraph& graph, Bytes budget, const Consider& consider,
                  const std::function<bool()>& stop) {
    SegmentFill(graph, budget, consider, stop).run();
}

}  // namespace hw::planners
