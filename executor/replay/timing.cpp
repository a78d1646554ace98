// SPDX-License-Identifier: MIT
#include "executor/replay/timing.h"

#include <algorithm>
#include <map>

namespace hw::executor {
namespace {

using core::Nanoseconds;
using core::OpIndex;
using core::Status;

// Those that the plan runs again, or in another way than captured, as predicted.
std::vector<OpFigures> changedOps(const core::Plan& plan, const core::TrainingGraph& graph) {
    std::map<OpIndex, OpFigures> changed;
    for (const core::Action& action : plan.schedule)
        if (action.recomputes()) ++changed[action.target].recomputed;
    for (const auto& [op, name] : plan.implementations) changed[op].implementation = name;
    std::vector<OpFigures> rows;
    for (auto& [op, row] : changed) {
        row.op = op;
        row.predicted = graph.ops[op].time;
        row.predictedAgain = Nanoseconds(row.predicted.count() * row.recomputed);
        rows.push_back(std::move(row));
    }
    return rows;
}

Status pass(const Execution& execution, std::vector<RunResult>& results) {
    RunOptions options;
    options.arena = execution.arena;
    auto result = execution.interpreter->run(*execution.schedule, options);
    if (!result) return result.error();
    results.push_back(std::move(*result));
    return {};
}

template <typename Figure>
Nanoseconds ofAll(const std::vector<RunResult>& results, const Figure& figure) {
    std::vector<Nanoseconds> values;
    for (const RunResult& result : results) values.push_back(figure(result));
    return median(std::move(values));
}

}  // namespace

core::Result<Timing> timeInTurn(const Execution& captured, const Execution* planned,
                                const core::Plan* plan, const core::TrainingGraph& graph,
                                int repeat) {
    std::vector<RunResult> unplanned, under;
    // The larger arena of the two is new, and its pages are still to come.
    if (Status ok = pass(captured, unplanned); !ok) return ok.error();
    unplanned.clear();
    for (int i = 0; i < repeat; ++i) {
        if (Status ok = pass(captured, unplanned); !ok) return ok.error();
        if (!planned) continue;
        if (Status ok = pass(*planned, under); !ok) return ok.error();
    }
    const auto time = [](const RunResult& result) { return result.time; };
    Timing timing;
    timing.time = timing.baselineTime = ofAll(unplanned, time);
    timing.interpreterPerOp = ofAll(unplanned, [&](const RunResult& result) {
        return Nanoseconds((result.time - result.kernels).count() /
                           static_cast<std::int64_t>(graph.ops.size()));
    });
    if (!planned || !plan) return timing;
    timing.time = ofAll(under, time);
    for (const RunResult& result : under) timing.peak = std::max(timing.peak, result.peak);
    timing.ops = changedOps(*plan, graph);
    for (OpFigures& row : timing.ops) {
        row.measured = ofAll(under, [&](const RunResult& result) { return result.times[row.op]; });
        row.measuredAgain =
            ofAll(under, [&](const RunResult& result) { return result.again[row.op]; });
    }
    return timing;
}

}  // namespace hw::executor
