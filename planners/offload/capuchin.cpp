// SPDX-License-Identifier: MIT
#include "planners/offload/capuchin.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/memory/evaluate.h"
#include "core/memory/rebuild.h"
#include "core/memory/schedule_builder.h"
#include "planners/offload/idle_stretches.h"
#include "planners/offload/offload_schedule.h"

namespace hw::planners {

using namespace hw::core;

namespace {

/// A storage that is idle over the peak.
struct Candidate {
    StorageIndex storage;
    OpIndex lastUse;       // before the peak
    Nanoseconds freeTime;  // below 0: the copies are late by so much
};

class Rule {
public:
    Rule(const TrainingGraph& graph, Bytes budget)
        : graph_(graph),
          budget_(budget),
          info_(rebuildInfo(graph)),
          baseline_(baselineSchedule(graph)),
          recomputed_(graph.storages.size(), false) {}

    /// With what is recomputed dropped after its last use before the peak.
    Schedule schedule() {
        choose();
        std::vector<std::vector<StorageIndex>> droppedAfter(graph_.ops.size());
        for (const Candidate& candidate : candidates_)
            if (recomputed_[static_cast<std::size_t>(candidate.storage)])
                droppedAfter[static_cast<std::size_t>(candidate.lastUse)].push_back(
                    candidate.storage);
        ScheduleBuilder builder(graph_, info_);
        while (!builder.done()) {
            const auto op = static_cast<std::size_t>(builder.next());
            builder.computeNext();
            for (const StorageIndex s : droppedAfter[op])
                if (builder.resident(s)) builder.drop(s);
        }
        return builder.finish();
    }

private:
    void choose() {
        std::vector<MemoryPoint> curve;
        const Evaluation judged = evaluate(graph_, baseline_, curve);
        Bytes need = judged.peak - budget_;
        findCandidates(curve, judged.peakAction);
        std::stable_sort(
            candidates_.begin(), candidates_.end(),
            [](const Candidate& a, const Candidate& b) { return a.freeTime > b.freeTime; });
        std::vector<const Candidate*> rest;
        for (const Candidate& candidate : candidates_) {
            if (need > Bytes(0) && candidate.freeTime >= Nanoseconds(0))
                need -= bytesOf(candidate);
            else
                rest.push_back(&candidate);
        }
        while (need > Bytes(0) && !rest.empty()) {
            const auto cheapest = std::min_element(
                rest.begin(), rest.end(),
                [&](const auto* a, const auto* b) { return costPerByte(*a) < costPerByte(*b); });
            const Candidate& taken = **cheapest;
            const auto again = recomputation(taken);
            recomputed_[static_cast<std::size_t>(taken.storage)] = again && *again < late(taken);
            need -= bytesOf(taken);
            rest.erase(cheapest);
        }
    }

    void findCandidates(const std::vector<MemoryPoint>& curve, std::size_t peak) {
        std::vector<OpIndex> opBefore;  // by action: the op that has run last
        OpIndex last = kNone;
        for (const Action& action : baseline_) {
            opBefore.push_back(last);
            if (action.runsOp()) last = action.target;
        }
        opBefore.push_back(last);
        const auto begin = [&](std::size_t action) {
            return action < curve.size() ? curve[action].begin : curve.back().end;
        };
        for (const IdleStretch& idle : idleStretches(graph_, baseline_, Bytes(1))) {
            if (idle.first > peak || peak >= idle.before) continue;
            if (graph_.storages[idle.storage].isConstant() || opBefore[idle.first] == kNone)
                continue;
            const Bytes bytes = graph_.storages[idle.storage].bytes;
            candidates_.push_back({idle.storage, opBefore[idle.first],
                                   begin(idle.before) - begin(idle.first) -
                                       graph_.link.outTime(bytes) - graph_.link.inTime(bytes)});
        }
    }

    Bytes bytesOf(const Candidate& candidate) const {
        return graph_.storages[candidate.storage].bytes;
    }
    Nanoseconds late(const Candidate& candidate) const {
        return std::max(Nanoseconds(0), Nanoseconds(0) - candidate.freeTime);
    }
    double costPerByte(const Candidate& candidate) const {
        const auto again = recomputation(candidate);
        const Nanoseconds cost = again ? std::min(*again, late(candidate)) : late(candidate);
        return static_cast<double>(cost.count()) /
               static_cast<double>(std::max<std::int64_t>(1, bytesOf(candidate).count()));
    }

    /// Of the ops that lead to it from what stays: those of other storages that are recomputed are
    /// among them. None: it cannot be made again.
    std::optional<Nanoseconds> recomputation(const Candidate& candidate) const {
        if (!info_.rematerializable[static_cast<std::size_t>(candidate.storage)])
            return std::nullopt;
        Nanoseconds time;
        std::vector<StorageIndex> open{candidate.storage}, seen = open;
        while (!open.empty()) {
            const auto s = static_cast<std::size_t>(open.back());
            open.pop_back();
            for (const OpIndex op : info_.chain[s]) {
                time += graph_.ops[op].time;
                for (const Use& use : graph_.ops[op].inputs) {
                    const StorageIndex input = graph_.storageOf(use.tensor);
                    if (!recomputed_[static_cast<std::size_t>(input)] ||
                        std::find(seen.begin(), seen.end(), input) != seen.end())
                        continue;
                    open.push_back(input), seen.push_back(input);
                }
            }
        }
        return time;
    }

    const TrainingGraph& graph_;
    Bytes budget_;
    RebuildInfo info_;
    Schedule baseline_;
    std::vector<Candidate> candidates_;
    std::vector<bool> recomputed_;  // by storage
};

}  // namespace

PlannerInfo Capuchin::info() {
    return {
        .name = "capuchin",
        .description = "swaps what is idle longest, then swaps or recomputes (Peng et al. 2020)",
        .colour = 1,
        .offloads = true,
        .needsHostMemory = true,
        .make = [] { return std::make_unique<Capuchin>(); }};
}

Proposal Capuchin::plan(const TrainingGraph& graph, const PlanRequest& request,
                        const Progress&) const {
    return proposeOffloaded(graph, Rule(graph, request.budget).schedule(), request);
}

}  // namespace hw::planners
