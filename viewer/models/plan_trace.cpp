// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/models/plan_trace.h"

#include <algorithm>
#include <utility>

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

// Stretches during which only the encoded form is there. Steps as in the trace: codecs are none.
std::vector<TraceBar> encodedStretches(const PlanTrace& trace, const core::Schedule& schedule) {
    std::vector<TraceBar> stretches;
    std::vector<std::int32_t> since(trace.rows.size(), kNone);
    std::int32_t step = 0;
    const auto close = [&](std::int32_t row) {
        if (row != kNone && since[row] != kNone)
            stretches.push_back({row, std::exchange(since[row], kNone), step, Presence::Encoded});
    };
    for (const core::Action& action : schedule) {
        switch (action.kind) {
            case core::ActionKind::Compute:
            case core::ActionKind::Recompute:
                ++step;
                break;
            case core::ActionKind::Encode:
                if (trace.rowOf[action.target] != kNone) since[trace.rowOf[action.target]] = step;
                break;
            case core::ActionKind::Free:
            case core::ActionKind::Decode:
                close(trace.rowOf[action.target]);
                break;
        }
    }
    for (std::int32_t row = 0; row < static_cast<std::int32_t>(since.size()); ++row) close(row);
    return stretches;
}

// Splits `bar` where only the encoded form was resident.
void addBar(PlanTrace& trace, TraceBar bar, const std::vector<TraceBar>& encoded) {
    for (const TraceBar& stretch : encoded) {
        if (stretch.row != bar.row || stretch.begin < bar.begin || stretch.end > bar.end) continue;
        if (stretch.begin > bar.begin)
            trace.bars.push_back({bar.row, bar.begin, stretch.begin, bar.presence});
        if (stretch.end > stretch.begin) trace.bars.push_back(stretch);
        bar.begin = stretch.end;
    }
    if (bar.end > bar.begin) trace.bars.push_back(bar);
}

void addBars(PlanTrace& trace, const std::vector<planners::Residency>& residencies,
             const core::Schedule& schedule) {
    trace.computed.assign(trace.rows.size(), 0);
    const std::vector<TraceBar> encoded = encodedStretches(trace, schedule);
    for (const planners::Residency& stretch : residencies) {
        const std::int32_t row = trace.rowOf[stretch.storage];
        ++trace.computed[row];
        addBar(
            trace,
            {row, static_cast<std::int32_t>(stretch.begin), static_cast<std::int32_t>(stretch.end),
             stretch.recomputed ? Presence::Rematerialized : Presence::Kept},
            encoded);
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
    addBars(trace, made.residencies, schedule);
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
