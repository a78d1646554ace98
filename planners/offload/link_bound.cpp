// SPDX-License-Identifier: MIT
#include "planners/offload/link_bound.h"

#include <algorithm>

#include "core/memory/stage_judge.h"
#include "planners/program/knapsack_bound.h"

namespace hw::planners {

using namespace hw::core;

Nanoseconds boundWithLink(const TrainingGraph& graph, Bytes budget, Bytes host) {
    const Nanoseconds baseline = graph.totalTime();
    const StageModel model(graph);
    StageJudge judge(model, budget);
    judge.trim();
    if (judge.overflow() == Bytes(0)) return baseline;
    const StageIndex highest = judge.highestStage();
    Nanoseconds before;
    for (OpIndex op = 0; op < model.opOf(highest); ++op) before += graph.ops[op].time;

    // Too little: with so much time the link and recomputation cannot do it.
    const auto tooLittle = [&](Nanoseconds overhead) {
        const double seconds = static_cast<double>((before + overhead).count()) * 1e-9;
        const double copied = seconds * static_cast<double>(graph.link.outPerSecond.count());
        const Bytes away = copied < static_cast<double>(host.count())
                               ? Bytes(static_cast<std::int64_t>(copied) + 1)
                               : host;
        const PartsBound rest = boundByKnapsack(model, budget + away, highest);
        return rest.impossible || rest.bound - baseline > overhead;
    };
    Nanoseconds known, enough = baseline * 1'000'000;
    if (!tooLittle(known)) return baseline;
    while (enough - known > Nanoseconds(1'000)) {
        const Nanoseconds half((known.count() + enough.count()) / 2);
        (tooLittle(half) ? known : enough) = half;
    }
    return baseline + known;
}

}  // namespace hw::planners
