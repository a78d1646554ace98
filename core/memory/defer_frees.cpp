// SPDX-License-Identifier: MIT
#include "core/memory/defer_frees.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/memory/evaluate.h"
#include "core/memory/replay.h"

namespace hw::core {
namespace {

/// Highest bytes over ranges of actions, to which bytes can be added: a segment tree, both in
/// logarithmic time.
class RangePeaks {
public:
    explicit RangePeaks(const std::vector<MemoryPoint>& curve) {
        while (leaves_ < curve.size()) leaves_ *= 2;
        peaks_.assign(2 * leaves_, Bytes(0));
        added_.assign(2 * leaves_, Bytes(0));
        for (std::size_t i = 0; i < curve.size(); ++i) peaks_[leaves_ + i] = curve[i].during;
        for (std::size_t node = leaves_ - 1; node > 0; --node) pull(node);
    }
    /// Of places begin to end - 1.
    Bytes peak(std::size_t begin, std::size_t end) const { return peak(1, 0, leaves_, begin, end); }
    void add(std::size_t begin, std::size_t end, Bytes bytes) {
        add(1, 0, leaves_, begin, end, bytes);
    }

private:
    void pull(std::size_t node) {
        peaks_[node] = std::max(peaks_[2 * node], peaks_[2 * node + 1]) + added_[node];
    }
    Bytes peak(std::size_t node, std::size_t from, std::size_t to, std::size_t begin,
               std::size_t end) const {
        if (end <= from || to <= begin) return Bytes(0);
        if (begin <= from && to <= end) return peaks_[node];
        const std::size_t half = (from + to) / 2;
        return added_[node] + std::max(peak(2 * node, from, half, begin, end),
                                       peak(2 * node + 1, half, to, begin, end));
    }
    void add(std::size_t node, std::size_t from, std::size_t to, std::size_t begin, std::size_t end,
             Bytes bytes) {
        if (end <= from || to <= begin) return;
        if (begin <= from && to <= end) {
            peaks_[node] += bytes;
            added_[node] += bytes;
            return;
        }
        const std::size_t half = (from + to) / 2;
        add(2 * node, from, half, begin, end, bytes);
        add(2 * node + 1, half, to, begin, end, bytes);
        pull(node);
    }

    std::size_t leaves_ = 1;
    std::vector<Bytes> peaks_, added_;  // by node; the second: to all below it
};

struct Deferred {
    StorageIndex storage;
    std::size_t from, to;  // the free, and the action before which it may come instead
};

/// By storage the action that frees it for good; none of what an encoded form stands for.
class LastFrees : public ReplayListener {
public:
    explicit LastFrees(const TrainingGraph& graph) : at(graph.storages.size(), kNever) {}
    static constexpr std::size_t kNever = static_cast<std::size_t>(-1);

    void made(const ReplayState&, const Action&, StorageIndex s, std::size_t) { at[s] = kNever; }
    void restored(const ReplayState&, StorageIndex s, const StandIn&) { at[s] = kNever; }
    void freed(const ReplayState& now, StorageIndex s) { at[s] = now.action(); }

    std::vector<std::size_t> at;
};

struct Releases {
    std::vector<std::size_t> at;  // by storage the first action that computes an op after it
    std::size_t lastOp = 0;       // the last action that computes one
};

Releases releases(const TrainingGraph& graph, const Schedule& schedule) {
    std::vector<std::size_t> runs(graph.ops.size() + 1, schedule.size());
    Releases result;
    for (std::size_t a = 0; a < schedule.size(); ++a)
        if (schedule[a].kind == ActionKind::Compute && !graph.ops[schedule[a].target].viewOnly)
            runs[schedule[a].target] = result.lastOp = a;
    // Views may run at other places: what comes before the next op that keeps its own.
    for (std::size_t op = graph.ops.size(); op-- > 0;)
        if (graph.ops[op].viewOnly) runs[op] = runs[op + 1];
    result.at.assign(graph.storages.size(), 0);
    std::size_t ops = 0;
    for (const Event& event : graph.events) {
        if (event.kind == Event::Kind::Compute) ++ops;
        if (event.kind == Event::Kind::Release) result.at[event.index] = runs[ops];
    }
    return result;
}

}  // namespace

Schedule deferFrees(const TrainingGraph& graph, const Schedule& schedule) {
    std::vector<MemoryPoint> curve;
    const Evaluation judged = evaluate(graph, schedule, curve);
    if (!judged.valid) return schedule;
    LastFrees frees(graph);
    replayValid(graph, schedule, frees);
    const Releases released = releases(graph, schedule);
    RangePeaks peaks(curve);
    std::vector<Deferred> candidates;
    for (StorageIndex s = 0; s < static_cast<StorageIndex>(graph.storages.size()); ++s) {
        const std::size_t from = frees.at[s], to = released.at[s];
        if (from == LastFrees::kNever || from + 1 >= to) continue;
        // After the last op the program lets go of nothing before the plan has done all it does.
        if (from > released.lastOp)
            peaks.add(from + 1, to, graph.storages[s].bytes);
        else
            candidates.push_back({s, from, to});
    }
    std::stable_sort(candidates.begin(), candidates.end(),
                     [&](const Deferred& a, const Deferred& b) {
                         return graph.storages[a.storage].bytes < graph.storages[b.storage].bytes;
                     });
    const Bytes room = withoutSpare(judged.peak);
    std::vector<std::vector<StorageIndex>> moved(schedule.size() + 1);
    std::vector<bool> left(schedule.size(), false);
    for (const Deferred& each : candidates) {
        const Bytes bytes = graph.storages[each.storage].bytes;
        if (peaks.peak(each.from + 1, each.to) + bytes > room) continue;
        peaks.add(each.from + 1, each.to, bytes);
        moved[each.to].push_back(each.storage);
        left[each.from] = true;
    }
    Schedule result;
    result.reserve(schedule.size());
    for (std::size_t a = 0; a <= schedule.size(); ++a) {
        for (const StorageIndex s : moved[a]) result.push_back(Action::free(s));
        if (a < schedule.size() && !left[a]) result.push_back(schedule[a]);
    }
    return result;
}

}  // namespace hw::core
