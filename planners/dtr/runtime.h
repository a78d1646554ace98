// SPDX-License-Identifier: MIT
// DTR's runtime: plays the program of a graph under a budget and writes down what it did.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "core/memory/defined_tensors.h"
#include "core/memory/rebuild.h"
#include "planners/dtr/evictor.h"
#include "planners/planner.h"
#include "planners/schedule/work_budget.h"

namespace hw::planners {

struct DtrSettings {
    DtrHeuristic heuristic = DtrHeuristic::EqClass;
    bool banish = false;         // instead of eager eviction
    bool some = false;           // choose among some storages only, see EvictionHeuristic
    bool keepSources = false;    // what others are rebuilt from stays as long as any may be
    bool recordSchedule = true;  // false: figures only, for runs of many millions of actions
    WorkBudget time = {};        // after these seconds the run ends without a schedule
};

/// One run (see Dtr for the rules). Everything given must outlive it.
class DtrRuntime {
public:
    DtrRuntime(const core::TrainingGraph& graph, const PlanRequest& request,
               const Progress& progress, const DtrSettings& settings);
    virtual ~DtrRuntime() = default;
    DtrRuntime(const DtrRuntime&) = delete;
    DtrRuntime& operator=(const DtrRuntime&) = delete;

    /// Plays the program once. Ok with its schedule, or why it stopped; figures either way.
    Proposal run();

    /// Entry of the schedule, of the run that has ended, during which memory was highest.
    std::size_t peakAction() const { return peakAction_; }

protected:
    /// `info`: what is to be known ahead of how storages are made again.
    DtrRuntime(const core::TrainingGraph& graph, const PlanRequest& request,
               const Progress& progress, const DtrSettings& settings, core::RebuildInfo info);

    struct Stop {
        PlanStatus status;
        std::string reason;
    };
    /// An op to run again, and the result that is wanted (kNone: its first).
    struct Step {
        core::OpIndex op;
        core::TensorIndex wanted;
    };
    /// An op in progress: inputs are locked one by one, missing ones rebuilt first. An explicit
    /// stack, for evicted chains are as long as the program.
    struct Frame {
        core::OpIndex op = core::kNone;
        core::TensorIndex wanted = core::kNone;
        bool again = false;
        bool begun = false;  // what is there is locked
        std::vector<core::StorageIndex> locked;
        std::vector<core::Use> missing;
        std::size_t next = 0;    // in missing
        std::size_t cursor = 0;  // of nextRebuild() for missing[next]
    };

    // what a program does while it trains (live_replay.h)
    virtual void play();
    virtual void makeRoom(std::int64_t size, core::OpIndex forOp);
    virtual void hear() {}  // before something that is missing is made again
    virtual void pinWhatStays();
    virtual bool unwantedSibling(core::StorageIndex s) const;

    // the program
    void addConstant(core::StorageIndex s);
    void computeFirst(core::OpIndex index);
    void connect(core::OpIndex index);
    void touch(core::StorageIndex s);
    void release(core::StorageIndex s);
    void requireFinals();

    // materialization
    void materialize(core::OpIndex index, core::TensorIndex wanted, bool again);
    void begin(core::OpIndex index, core::TensorIndex wanted, bool again);
    void lockInputs(Frame& frame);
    void unlock(Frame& frame);
    void access(const core::Op& op);
    void advance();
    void finish(const Frame& frame);
    void notePeak(std::int64_t memory);
    void execute(const Frame& frame, std::int64_t outputBytes);
    bool place(core::StorageIndex s);
    bool satisfied(const core::Use& use) const;
    std::optional<Step> nextRebuild(const core::Use& use, std::size_t& cursor) const;
    std::optional<core::OpIndex> nextVersion(const core::Use& use, std::size_t& cursor) const;
    bool waitedFor(core::StorageIndex s) const;

    // memory
    void evict(core::StorageIndex s);
    void noteFreed(core::StorageIndex s);

    // freeing for good (dtr_banish.cpp)
    bool isSource(core::StorageIndex s) const;  // that stays for what is rebuilt from it
    void planSourceFrees();
    void freeForGood(core::StorageIndex s);
    void tryBanish(core::StorageIndex s);
    bool banishable(core::StorageIndex s) const;
    void banish(core::StorageIndex s);

    void checkStopped();
    DtrStorage& at(core::StorageIndex s) { return evictor_[s]; }
    const DtrStorage& at(core::StorageIndex s) const { return evictor_[s]; }

    const core::TrainingGraph& graph_;
    const PlanRequest& request_;
    const Progress& progress_;
    const DtrSettings settings_;
    const bool simulated_;          // a log of the simulator: follow it to the letter
    const core::RebuildInfo info_;  // of a recorded session
    Evictor evictor_;
    core::DefinedTensors defined_;
    std::deque<Frame> frames_;  // the first depth_ are in use
    std::size_t depth_ = 0;
    std::size_t outer_ = 0;  // of these belong to an op that waits for other ones to come back
    std::vector<core::StorageIndex> touched_, made_, toBanish_;
    std::vector<std::vector<core::StorageIndex>> sourceFrees_;  // [op]: freed right after it
    std::vector<core::OpIndex> sourceNeeds_;
    core::Schedule schedule_;
    core::OpIndex now_ = core::kNone;  // last op of the program that has begun
    std::int64_t memory_ = 0, peak_ = 0, rematTime_ = 0, executed_ = 0;
    std::size_t peakAction_ = 0;
    double rematLimit_;
};

}  // namespace hw::planners
