// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/models/plan_trace.h"

#include <algorithm>

#include "planners/schedule/schedule_trace.h"

namespace hw::viewer {
namespace {

using core::kNone;

void addRows(PlanTrace& trace, const core::TrainingGraph& graph) {
    trace.rowOf.assign(graph.storages.size(), kNone);
    trace.below.emplace_back(0);
    for (core::StorageIndex s = 0; s < static_cast<core::StorageIndex>(graph.storages.size());
         ++s) {
        if (graph.storages[s].isConstant()) continue;
        trace.rowOf[s] = static_cast<std::int32_t>(trace.rows.size());
        trace.rows.push_back(s);
        trace.below.push_back(trace.below.back() + graph.storages[s].bytes);
    }
}

TraceBar barOf(const PlanTrace& trace, const planners::Lifetime& lifetime) {
    return {trace.rowOf[lifetime.storage], static_cast<std::int32_t>(lifetime.begin),
            static_cast<std::int32_t>(lifetime.end), lifetime.by};
}

// Splits `bar` where only a stand-in was resident.
void addBar(PlanTrace& trace, TraceBar bar, const std::vector<TraceBar>& standIns) {
    for (const TraceBar& stretch : standIns) {
        if (stretch.row != bar.row || stretch.begin < bar.begin || stretch.end > bar.end) continue;
        if (stretch.begin > bar.begin)
            trace.bars.push_back({bar.row, bar.begin, stretch.begin, bar.by});
        if (stretch.end > stretch.begin) trace.bars.push_back(stretch);
        bar.begin = stretch.end;
    }
    if (bar.end > bar.begin) trace.bars.push_back(bar);
}

void addBars(PlanTrace& trace, const planners::ScheduleTrace& made) {
    trace.computed.assign(trace.rows.size(), 0);
    std::vector<TraceBar> standIns;
    for (const planners::Lifetime& lifetime : made.standIns)
        if (trace.rowOf[lifetime.storage] != kNone) standIns.push_back(barOf(trace, lifetime));
    for (const planners::Lifetime& lifetime : made.lifetimes) {
        ++trace.computed[trace.rowOf[lifetime.storage]];
        addBar(trace, barOf(trace, lifetime), standIns);
    }
    std::sort(trace.bars.begin(), trace.bars.end(), [](const TraceBar& a, const TraceBar& b) {
        return a.row != b.row ? a.row < b.row : a.begin < b.begin;
    });
    trace.firstBar.assign(trace.rows.size() + 1, trace.bars.size());
    for (std::size_t i = trace.bars.size(); i-- > 0;) trace.firstBar[trace.bars[i].row] = i;
    for (std::size_t row = trace.rows.size(); row-- > 0;)  // rows that were never made
        trace.firstBar[row] = std::min(trace.firstBar[row], trace.firstBar[row + 1]);
}

// Logs without phases still name their backward ops.
core::Phase phaseOf(const core::Op& op, bool guess) {
    if (!guess) return op.phase;
    return op.name.find("backward") == std::string::npos ? core::Phase::Unknown
                                                         : core::Phase::Backward;
}

void addPhases(PlanTrace& trace, const core::TrainingGraph& graph) {
    trace.phasesGuessed = std::all_of(graph.ops.begin(), graph.ops.end(), [](const core::Op& op) {
        return op.phase == core::Phase::Unknown;
    });
    auto last = core::Phase::Unknown;
    bool any = false;
    for (std::int32_t step = 0; step < trace.steps(); ++step) {
        if (trace.recomputed[step]) continue;
        const core::Phase phase = phaseOf(graph.ops[trace.ops[step]], trace.phasesGuessed);
        if (phase == core::Phase::Unknown || (any && phase == last)) continue;
        if (any || trace.phasesGuessed) trace.phases.push_back({step, phase});
        last = phase;
        any = true;
    }
}

}  // namespace

std::int32_t PlanTrace::stepAt(core::Nanoseconds time) const {
    const auto after = std::upper_bound(begin.begin(), begin.end() - 1, time);
    return std::max(0, static_cast<std::int32_t>(after - begin.begin()) - 1);
}

const TraceBar* PlanTrace::barAt(std::int32_t row, std::int32_t step) const {
    for (std::size_t i = firstBar[row]; i < firstBar[row + 1]; ++i)
        if (bars[i].begin <= step && step < bars[i].end) return &bars[i];
    return nullptr;
}

PlanTrace planTrace(const core::TrainingGraph& graph, const core::Schedule& schedule,
                    const StepCurve& curve) {
    PlanTrace trace;
    const planners::ScheduleTrace made = planners::traceOf(graph, schedule);
    addRows(trace, graph);
    addBars(trace, made);
    for (const planners::TraceStep& step : made.steps) {
        trace.ops.push_back(step.op);
        trace.recomputed.push_back(step.recomputed);
        trace.begin.push_back(step.begin);
    }
    trace.begin.push_back(curve.time);
    addPhases(trace, graph);
    for (std::size_t i = 0; i < curve.peakMoment; ++i)  // codecs are moments, but no steps
        trace.peakStep += curve.moments[i].op != kNone;
    trace.peakStep = std::clamp(trace.peakStep, 0, std::max(0, trace.steps() - 1));
    return trace;
}

}  // namespace hw::viewer
