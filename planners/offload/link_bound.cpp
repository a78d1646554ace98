// SPDX-License-Identifier: MIT
#include "planners/offload/link_bound.h"

#include <algorithm>
#include <optional>

#include "core/memory/stage_judge.h"
#include "planners/program/cut_relaxation.h"
#include "planners/program/knapsack_bound.h"

namespace hw::planners {

using namespace hw::core;

namespace {

constexpr double kSecondsPerItem = 3e-4;  // that the relaxation takes, at most
constexpr double kSolveSeconds = 0.2;     // of one; the knapsack where it would take longer
constexpr int kSteps = 8;                 // of the bisection

/// Of plans within `budget` that only recompute; none: there are none.
std::optional<Nanoseconds> boundAlone(const StageModel& model, Bytes budget, StageIndex highest) {
    const PartsBound parts = boundByKnapsack(model, budget, highest);
    if (parts.impossible) return std::nullopt;
    const bool large = kSecondsPerItem * static_cast<double>(model.itemCount()) > kSolveSeconds;
    if (large || !haveSolver()) return parts.bound;
    CutOptions options;
    options.limits = SolveLimits::deterministic(200);
    options.integer = false;
    const auto solved = solveCuts(model, budget, {highest}, options);
    if (!solved) return parts.bound;
    if (solved->status == SolveStatus::Infeasible) return std::nullopt;
    return std::max(parts.bound, solved->bound);
}

}  // namespace

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
        const auto rest = boundAlone(model, budget + away, highest);
        return !rest || *rest - baseline > overhead;
    };
    if (!tooLittle(Nanoseconds(0))) return baseline;
    Nanoseconds known, enough(baseline.count() / 100 + 1);
    while (tooLittle(enough)) {
        if (enough > baseline * 1'000) return baseline + known;
        known = enough;
        enough = enough * 2;
    }
    for (int step = 0; step < kSteps; ++step) {
        const Nanoseconds half((known.count() + enough.count()) / 2);
        (tooLittle(half) ? known : enough) = half;
    }
    return baseline + known;
}

}  // namespace hw::planners
