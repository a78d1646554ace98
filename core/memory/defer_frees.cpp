// SPDX-License-Identifier: MIT
#include "core/memory/defer_frees.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/memory/evaluate.h"
#include "core/memory/range_peaks.h"
#include "core/memory/replay.h"

namespace hw::core {
namespace {

std::vector<Bytes> duringOf(const std::vector<MemoryPoint>& curve) {
    std::vector<Bytes> bytes;
    bytes.reserve(curve.size());
    for (const MemoryPoint& point : curve) bytes.push_back(point.during);
    return bytes;
}

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
    RangePeaks peaks(duringOf(curve));
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
