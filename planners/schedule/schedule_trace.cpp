// SPDX-License-Identifier: MIT
#include "planners/schedule/schedule_trace.h"

#include <map>

#include "core/memory/replay.h"

namespace hw::planners {

using namespace hw::core;

namespace {

class Tracer : public ReplayListener {
public:
    explicit Tracer(const TrainingGraph& graph) : open_(graph.storages.size(), kNone) {}

    void runs(const ReplayState& now, const Action& action) {
        trace_.steps.push_back({action.target, action.recomputes(), now.begin()});
    }
    void made(const ReplayState&, const Action& action, StorageIndex s, std::size_t) {
        if (open_[s] != kNone) return;  // something stands in for it
        open_[s] = static_cast<std::int32_t>(trace_.lifetimes.size());
        trace_.lifetimes.push_back({s, steps() - 1, steps() - 1, action.kind});
    }
    void replaced(const ReplayState&, StorageIndex s, const StandIn& form) {
        standsInSince_[s] = {s, steps(), steps(), form.by};
    }
    void restored(const ReplayState&, StorageIndex s, const StandIn&) { endStandIn(s); }
    void freed(const ReplayState& now, StorageIndex s) {
        if (!now.standIn(s)) end(s);
    }
    void freedStandIn(const ReplayState& now, StorageIndex s, const StandIn&) {
        endStandIn(s);
        if (!now.resident(s)) end(s);
    }

    ScheduleTrace finish() {
        while (!standsInSince_.empty()) endStandIn(standsInSince_.begin()->first);
        for (StorageIndex s = 0; s < static_cast<StorageIndex>(open_.size()); ++s) end(s);
        return std::move(trace_);
    }

private:
    std::int64_t steps() const { return static_cast<std::int64_t>(trace_.steps.size()); }

    void end(StorageIndex s) {
        if (open_[s] == kNone) return;  // a constant
        trace_.lifetimes[open_[s]].end = steps();
        open_[s] = kNone;
    }
    void endStandIn(StorageIndex s) {
        trace_.standIns.push_back(standsInSince_.extract(s).mapped());
        trace_.standIns.back().end = steps();
    }

    std::vector<std::int32_t> open_;  // per storage: its lifetime that has not ended
    std::map<StorageIndex, Lifetime> standsInSince_;
    ScheduleTrace trace_;
};

}  // namespace

ScheduleTrace traceOf(const TrainingGraph& graph, const Schedule& schedule) {
    Tracer tracer(graph);
    replayValid(graph, schedule, tracer);
    return tracer.finish();
}

}  // namespace hw::planners
