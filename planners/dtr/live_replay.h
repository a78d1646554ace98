// SPDX-License-Identifier: MIT
// The simulation's runtime, given what came to DTR in a program: what does it evict?
//
// From the log come the ops and their costs, what the program lets go of, when an allocation asks
// for room, and what the framework forbids. What is evicted, what is locked and pinned, which ops
// run again, in which order, and what the clock says, the runtime decides as in any simulation. The
// rules that a graph settles in advance (rebuildInfo) are decided as the program goes on: what can
// no longer be made again after a write is made before it, and stays.
#pragma once

#include <string>
#include <vector>

#include "planners/dtr/live_log.h"
#include "planners/dtr/runtime.h"

namespace hw::planners {

class LiveReplay final : public DtrRuntime {
public:
    LiveReplay(const LiveStretch& stretch, DtrHeuristic heuristic, const PlanRequest& request,
               const Progress& progress);

    /// What it has evicted, in order, once it has run.
    const std::vector<core::StorageIndex>& evicted() const { return evicted_; }

private:
    using Kind = LiveEntry::Kind;
    enum class Sources { Held, Gone, Dear };  // as in the program

    void play() override;
    void makeRoom(std::int64_t size, core::OpIndex forOp) override;
    void hear() override;
    void pinWhatStays() override;
    bool unwantedSibling(core::StorageIndex s) const override;

    void begin();
    void computeOnce(core::OpIndex op);
    const LiveEntry* next(Kind kind);
    void takeUntil(Kind kind);
    void take(const LiveEntry& entry);

    core::Use current(core::StorageIndex s) const;
    bool present(core::StorageIndex s) const { return satisfied(current(s)); }
    bool canMake(core::StorageIndex s) const;
    void lose(core::StorageIndex s);
    void released(core::StorageIndex s);
    void keep(core::StorageIndex s);
    void bringBack(core::StorageIndex s);
    void makeOneRoom();
    bool unlockWaiting();
    void chosen(core::StorageIndex s);
    void drop(core::StorageIndex s);
    Sources holdSources(core::StorageIndex s);
    bool loseWith(const std::vector<core::StorageIndex>& gone);
    std::vector<core::StorageIndex> lostWith(const std::vector<core::StorageIndex>& changed);
    void aboutToChange(const std::vector<core::StorageIndex>& changed);
    void giveUp(core::StorageIndex s);

    const LiveStretch& stretch_;
    std::size_t cursor_ = 0;           // in the entries
    std::vector<std::int32_t> wrote_;  // by storage, how often so far
    std::vector<bool> finished_;       // by op
    std::vector<bool> forgotten_;      // by storage: nothing makes it again
    std::vector<bool> needed_;         // something that is not there is made from it
    std::vector<bool> made_;           // in this step
    bool atAnyPrice_ = false;
    int unlocks_ = 0;  // since the last op of the program began
    std::vector<core::StorageIndex> evicted_;
};

struct Replayed {
    std::vector<core::StorageIndex> evicted;
    std::string stopped;  // why it did not come to the end; empty: it did
};
Replayed replay(const LiveStretch& stretch, DtrHeuristic heuristic);

}  // namespace hw::planners
