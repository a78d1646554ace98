// SPDX-License-Identifier: MIT
#include "planners/schedule/schedule_trace.h"

#include <algorithm>

namespace hw::planners {

using namespace hw::core;

namespace {

class Tracer {
public:
    explicit Tracer(const TrainingGraph& graph)
        : graph_(graph), open_(graph.storages.size(), kNone) {}

    void compute(const Action& action) {
        const Op& op = graph_.ops[action.target];
        const bool again = action.kind == ActionKind::Recompute;
        const auto step = static_cast<std::int64_t>(trace_.steps.size());
        trace_.steps.push_back({action.target, again, time_});
        time_ += op.time;
        for (std::size_t j = 0; j < op.outputs.size(); ++j) {
            const StorageIndex s = graph_.storageOf(op.outputs[j].tensor);
            const auto result = static_cast<std::int32_t>(j);
            const bool wanted = !again || std::find(action.outputs.begin(), action.outputs.end(),
                                                    result) != action.outputs.end();
            if (!op.outputs[j].makesStorage || !wanted || open_[s] != kNone) continue;
            open_[s] = static_cast<std::int32_t>(trace_.residencies.size());
            trace_.residencies.push_back({s, step, step, again});
        }
    }

    void free(StorageIndex s) {
        if (open_[s] == kNone) return;  // a constant
        trace_.residencies[open_[s]].end = static_cast<std::int64_t>(trace_.steps.size());
        open_[s] = kNone;
    }

    ScheduleTrace finish() {
        for (StorageIndex s = 0; s < static_cast<StorageIndex>(open_.size()); ++s) free(s);
        return std::move(trace_);
    }

private:
    const TrainingGraph& graph_;
    std::vector<std::int32_t> open_;  // per storage: its residency that has not ended
    Nanoseconds time_;
    ScheduleTrace trace_;
};

}  // namespace

ScheduleTrace traceOf(const TrainingGraph& graph, const Schedule& schedule) {
    Tracer tracer(graph);
    for (const Action& action : schedule) {
        if (action.kind == ActionKind::Compute || action.kind == ActionKind::Recompute)
            tracer.compute(action);
        else if (action.kind == ActionKind::Free)
            tracer.free(action.target);
    }
    return tracer.finish();
}

}  // namespace hw::planners
