// SPDX-License-Identifier: MIT
#include "planners/program/knapsack_bound.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "planners/program/cut_context.h"

namespace hw::planners {

using namespace hw::core;

PartsBound boundByKnapsack(const StageModel& model, Bytes budget, StageIndex cut) {
    const TrainingGraph& graph = *model.graph;
    const CutContext context(model, budget, {cut});
    Bytes room = budget - model.footprint[model.opOf(context.cut(0))];
    for (const StorageIndex s : context.thereAt(0))
        if (context.fixed(s, 0)) room -= graph.storages[s].bytes;

    // What the op at the cut reads is there; of the rest, what a later op reads is there or made
    // again by `maker`.
    std::vector<bool> settled(graph.storages.size(), false);
    std::vector<Bytes> freed(graph.ops.size());  // by running the op again
    Bytes excess = Bytes(0) - room, needed;
    for (StageIndex stage = context.cut(0); stage < context.segmentEnd(0); ++stage) {
        if (!context.firstRunIsTied(stage)) continue;
        context.forEachRead(model.opOf(stage), [&](StorageIndex s, std::int32_t version) {
            if (settled[s] || !context.subject(s).counts || !context.exists(s, 0) ||
                context.fixed(s, 0))
                return;
            settled[s] = true;
            const Bytes bytes = graph.storages[s].bytes;
            excess += bytes;
            const OpIndex maker = context.rebuilder(s, version, 0);
            if (stage == context.cut(0) || maker == kNone)
                needed += bytes;
            else
                freed[maker] += bytes;
        });
    }
    if (needed > room) return {graph.totalTime(), true};

    std::vector<OpIndex> makers;
    for (OpIndex op = 0; op < static_cast<OpIndex>(freed.size()); ++op)
        if (freed[op] > Bytes(0)) makers.push_back(op);
    const auto dearness = [&](OpIndex op) {
        return static_cast<double>(model.time[op].count()) / static_cast<double>(freed[op].count());
    };
    std::stable_sort(makers.begin(), makers.end(),
                     [&](OpIndex a, OpIndex b) { return dearness(a) < dearness(b); });
    double more = 0;  // ns
    for (const OpIndex op : makers) {
        if (excess <= Bytes(0)) break;
        const double share = std::min(1.0, ratio(excess, freed[op]));
        more += share * static_cast<double>(model.time[op].count());
        excess -= freed[op];
    }
    return {graph.totalTime() + Nanoseconds(static_cast<std::int64_t>(std::floor(more))), false};
}

}  // namespace hw::planners
