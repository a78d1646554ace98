// SPDX-License-Identifier: MIT
#include "core/memory/evaluate.h"

#include <algorithm>

#include "core/memory/replay.h"

namespace hw::core {
namespace {

struct CurveListener : ReplayListener {
    std::vector<MemoryPoint>& curve;
    explicit CurveListener(std::vector<MemoryPoint>& into) : curve(into) {}

    void ends(const ReplayState& now, const Action&) {
        curve.push_back({now.begin(), now.time(), now.during(), now.live(), now.hostLive()});
    }
};

template <class Listener>
Evaluation judge(const TrainingGraph& graph, const Schedule& schedule, Listener listener) {
    Replay replay(graph, listener);
    Evaluation result;
    result.valid = replay.run(schedule);
    result.why = replay.why();
    if (!result.valid) result.action = replay.action();
    result.peak = replay.peak();
    result.peakAction = replay.peakAction();
    result.time = replay.time();
    result.recomputedOps = replay.recomputedOps();
    result.hostPeak = replay.hostPeak();
    result.offloadedBytes = replay.offloadedBytes();
    result.waited = replay.waited();
    return result;
}

}  // namespace

Evaluation evaluate(const TrainingGraph& graph, const Schedule& schedule) {
    return judge(graph, schedule, ReplayListener());
}

Evaluation evaluate(const TrainingGraph& graph, const Schedule& schedule,
                    std::vector<MemoryPoint>& curve) {
    curve.clear();
    curve.reserve(schedule.size());
    return judge(graph, schedule, CurveListener(curve));
}

std::vector<StorageIndex> residentDuring(const TrainingGraph& graph, const Schedule& schedule,
                                         std::size_t action) {
    ReplayListener silent;
    Replay replay(graph, silent);
    const std::size_t end = std::min(action, schedule.size());
    for (std::size_t i = 0; i < end && replay.step(schedule[i]); ++i) {
    }
    std::vector<bool> adds(graph.storages.size(), false);
    if (action < schedule.size() && schedule[action].runsOp())
        for (const OpOutput& output : graph.ops[schedule[action].target].outputs)
            if (output.makesStorage) adds[graph.storageOf(output.tensor)] = true;
    std::vector<StorageIndex> list;
    for (StorageIndex s = 0; s < static_cast<StorageIndex>(adds.size()); ++s)
        if (adds[s] || replay.resident(s)) list.push_back(s);
    return list;
}

Status requireValid(const Evaluation& judged) {
    if (judged.valid) return {};
    return Error{
        ErrorCode::Verification,
        "the plan is invalid: schedule entry " + std::to_string(judged.action) + ": " + judged.why,
        "plan again; a plan file should not be edited by hand"};
}

Schedule baselineSchedule(const TrainingGraph& graph) {
    Schedule schedule;
    schedule.reserve(graph.events.size());
    for (const Event& event : graph.events) {
        if (event.kind == Event::Kind::Compute) schedule.push_back(Action::compute(event.index));
        if (event.kind == Event::Kind::Release) schedule.push_back(Action::free(event.index));
    }
    return schedule;
}

}  // namespace hw::core
