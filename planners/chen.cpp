// SPDX-License-Identifier: MIT
#include "planners/chen.h"

#include <algorithm>
#include <cmath>

#include "core/memory/rebuild.h"
#include "core/plan/schedule_builder.h"

namespace hw::planners {
namespace {

using namespace hw::core;

OpIndex forwardEnd(const TrainingGraph& graph) {
    const auto backward = std::find_if(graph.ops.begin(), graph.ops.end(),
                                       [](const Op& op) { return op.phase == Phase::Backward; });
    return static_cast<OpIndex>(backward - graph.ops.begin());
}

// What the forward pass looks like to the algorithm.
struct Forward {
    OpIndex end = 0;
    std::vector<OpIndex> lastForwardUse;  // per storage; its creator when no forward op reads it
    std::vector<bool> saved;              // made in forward, needed later, may be dropped
    std::vector<std::int64_t> crossing;   // [op]: droppable bytes that later forward ops read
    std::vector<std::vector<StorageIndex>>
        lastUseAt;  // [op]: saved storages whose last forward use it is
};

Forward analyse(const TrainingGraph& graph, const RebuildInfo& info) {
    Forward forward;
    forward.end = forwardEnd(graph);
    forward.lastForwardUse.assign(graph.storages.size(), kNone);
    forward.saved.assign(graph.storages.size(), false);
    forward.crossing.assign(forward.end, 0);
    forward.lastUseAt.resize(forward.end);
    for (StorageIndex s = 0; s < static_cast<StorageIndex>(graph.storages.size()); ++s) {
        const Storage& storage = graph.storages[s];
        if (storage.isConstant() || storage.creator >= forward.end) continue;
        OpIndex last = storage.creator;
        for (const OpIndex op : info.chain[s])
            if (op < forward.end) last = std::max(last, op);
        for (const OpIndex op : storage.readers)
            if (op < forward.end) last = std::max(last, op);
        forward.lastForwardUse[s] = last;
        for (OpIndex op = storage.creator; op < last; ++op)
            forward.crossing[op] += storage.bytes.count();
        forward.saved[s] =
            info.lastUse[s] >= forward.end && info.rematerializable[s] && !storage.aliveAtEnd;
        if (forward.saved[s]) forward.lastUseAt[last].push_back(s);
    }
    return forward;
}

// Algorithm 3: which saved storages are checkpoints when a segment may hold `limit` bytes.
std::vector<bool> checkpoints(const TrainingGraph& graph, const Forward& forward,
                              std::int64_t limit) {
    std::vector<bool> keep(graph.storages.size(), false);
    std::vector<StorageIndex> alive;     // saved storages that a later forward op reads
    std::vector<StorageIndex> sinceCut;  // saved storages of the open segment
    std::int64_t segment = 0;
    for (OpIndex op = 0; op < forward.end; ++op) {
        for (const OpOutput& output : graph.ops[op].outputs) {
            const StorageIndex s = graph.storageOf(output.tensor);
            if (!output.makesStorage || !forward.saved[s]) continue;
            segment += graph.storages[s].bytes.count();
            alive.push_back(s);
            sinceCut.push_back(s);
        }
        std::erase_if(alive, [&](StorageIndex s) { return forward.lastForwardUse[s] <= op; });
        const bool narrow =
            op + 1 == forward.end || forward.crossing[op] <= forward.crossing[op + 1];
        if (segment <= limit || !narrow) continue;
        for (const StorageIndex s : alive) keep[s] = true;
        segment = 0;
        sinceCut.clear();
    }
    // The last segment is needed right away: dropping it gains nothing.
    for (const StorageIndex s : sinceCut) keep[s] = true;
    return keep;
}

Schedule build(const TrainingGraph& graph, const RebuildInfo& info, const Forward& forward,
               const std::vector<bool>& keep) {
    ScheduleBuilder builder(graph, info);
    while (!builder.done()) {
        const OpIndex op = builder.next();
        builder.computeNext();
        if (op >= forward.end) continue;
        for (const StorageIndex s : forward.lastUseAt[op])
            if (!keep[s] && builder.resident(s)) builder.drop(s);
    }
    return builder.finish();
}

}  // namespace

Proposal ChenGreedy::plan(const TrainingGraph& graph, const PlanRequest& request,
                          const Progress& progress) const {
    constexpr int kGrid = 40;  // values of B, evenly spaced in the logarithm
    const RebuildInfo info = rebuildInfo(graph);
    const Forward forward = analyse(graph, info);
    std::int64_t smallest = 0, total = 0;
    for (StorageIndex s = 0; s < static_cast<StorageIndex>(graph.storages.size()); ++s) {
        if (!forward.saved[s]) continue;
        const std::int64_t bytes = std::max<std::int64_t>(graph.storages[s].bytes.count(), 1);
        smallest = smallest == 0 ? bytes : std::min(smallest, bytes);
        total += bytes;
    }
    Proposal proposal;
    Bytes lowest(std::numeric_limits<std::int64_t>::max());
    Nanoseconds fastest(std::numeric_limits<std::int64_t>::max());
    auto consider = [&](Schedule schedule) {
        const Evaluation result = evaluate(graph, schedule);
        if (!result.valid) return;
        lowest = std::min(lowest, result.peak);
        if (result.peak > request.budget || result.time >= fastest) return;
        fastest = result.time;
        proposal.status = PlanStatus::Ok;
        proposal.schedule = std::move(schedule);
    };
    // Nothing dropped comes first: where that fits, nothing is faster.
    consider(build(graph, info, forward, std::vector<bool>(graph.storages.size(), true)));
    std::vector<bool> previous;
    for (int i = 0; i < kGrid && total > 0 && fastest > graph.totalTime(); ++i) {
        if (progress.cancelled()) return {PlanStatus::Cancelled, "cancelled", {}, {}, {}};
        progress.report(static_cast<double>(i) / kGrid, "searching the segment size");
        const double fraction = static_cast<double>(i) / (kGrid - 1);
        const double limit =
            static_cast<double>(smallest) *
            std::pow(static_cast<double>(total) / static_cast<double>(smallest), fraction);
        std::vector<bool> keep = checkpoints(graph, forward, std::llround(limit));
        if (keep == previous) continue;
        consider(build(graph, info, forward, keep));
        previous = std::move(keep);
    }
    if (proposal.status != PlanStatus::Ok)
        proposal.reason =
            "the segments need at least " + humanBytes(lowest) + ", whatever their size";
    return proposal;
}

}  // namespace hw::planners
