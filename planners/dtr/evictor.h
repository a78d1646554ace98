// SPDX-License-Identifier: MIT
// What DTR decides, wherever it acts: in the simulation of a step (runtime.h) and in a program that
// trains (live/runtime). In C++17, as frameworks ask for.
#pragma once

#include <memory>
#include <vector>

#include "planners/dtr/heuristics.h"

namespace hw::planners {

/// What waits for something else to be made may be unlocked for it so many times for an op of the
/// program: what is unlocked is made once more, and what that unlocks once more again.
inline constexpr int kUnlocks = 64;

/// The storages that are resident, those of them that may be evicted, and which one goes next.
class Evictor {
public:
    Evictor(std::size_t storages, DtrHeuristic heuristic, const HeuristicOptions& options)
        : state_(std::make_unique<DtrState>(storages)),
          heuristic_(makeHeuristic(heuristic, *state_, options)),
          pool_(storages),
          some_(options.some) {}

    /// There are more storages, which are not resident yet.
    void resize(std::size_t storages) {
        state_->resize(storages);
        pool_.resize(storages);
        heuristic_->resize(storages);
    }

    DtrStorage& operator[](core::StorageIndex s) { return state_->storages[s]; }
    const DtrStorage& operator[](core::StorageIndex s) const { return state_->storages[s]; }
    DtrState& state() { return *state_; }
    const DtrState& state() const { return *state_; }

    /// The program's next op makes or writes `s`, or views it, at that cost (ns).
    void announce(core::StorageIndex s, std::int64_t cost) {
        state_->storages[s].compute += cost;
        heuristic_->announced(s);
    }
    /// An op makes or writes a tensor of `output` from one of `input`.
    void link(core::StorageIndex input, core::StorageIndex output) {
        state_->links.add(input, output);
        heuristic_->linked(input, output);
    }
    /// An op has made these. Those with locks are added to the pool once they have none.
    void materialized(const std::vector<core::StorageIndex>& made) {
        for (const core::StorageIndex s : made)
            if (state_->storages[s].locks == 0) enter(s);
        heuristic_->materialized(made);
    }
    /// A storage as another evictor has left it: its links are there, and it has not been resident.
    void takeOver(core::StorageIndex s, const DtrStorage& before) {
        DtrStorage& storage = state_->storages[s];
        storage.size = before.size;
        storage.compute = before.compute;
        storage.lastAccess = before.lastAccess;
        storage.material = storage.everMaterial = true;
        materialized({s});
        if (!before.material)
            evicted(s);
        else if (before.deferred)
            defer(s);
        else if (before.pinned)
            pin(s);
    }
    /// The storage to evict next; kNone: none can be.
    core::StorageIndex choose() {
        return some_ ? heuristic_->chooseAmongSome(pool_, bytes_) : heuristic_->choose(pool_);
    }
    /// A resident storage goes, by eviction or because the program needs it no longer.
    void evicted(core::StorageIndex s) {
        vacate(s);
        heuristic_->evicted(s);
    }
    /// It goes and never comes back; it may be gone already.
    void banished(core::StorageIndex s) {
        state_->storages[s].gone = true;
        unpin(s);
        if (state_->storages[s].material) vacate(s);
        heuristic_->banished(s);
    }

    /// Of a resident storage: it stays until it is unlocked as often.
    void lock(core::StorageIndex s) {
        if (state_->storages[s].locks++ == 0) leave(s);
    }
    void unlock(core::StorageIndex s) {
        if (--state_->storages[s].locks == 0) enter(s);
    }
    void pin(core::StorageIndex s) {
        state_->storages[s].deferred = false;
        if (state_->storages[s].pinned) return;
        lock(s);
        state_->storages[s].pinned = true;
    }
    void unpin(core::StorageIndex s) {
        state_->storages[s].deferred = false;
        if (!state_->storages[s].pinned) return;
        state_->storages[s].pinned = false;
        unlock(s);
    }
    /// It is pinned until takeDeferred().
    void defer(core::StorageIndex s) {
        if (state_->storages[s].pinned) return;
        pin(s);
        state_->storages[s].deferred = true;
        deferred_.push_back(s);
    }
    /// False: there were none.
    bool takeDeferred() {
        bool any = false;
        for (const core::StorageIndex s : deferred_) {
            if (!state_->storages[s].deferred) continue;
            unpin(s);
            any = true;
        }
        deferred_.clear();
        return any;
    }

private:
    void enter(core::StorageIndex s) {
        pool_.add(s);
        bytes_ += state_->storages[s].size;
        heuristic_->entered(s);
    }
    void leave(core::StorageIndex s) {
        pool_.remove(s);
        bytes_ -= state_->storages[s].size;
        heuristic_->left(s);
    }
    void vacate(core::StorageIndex s) {
        state_->storages[s].material = false;
        leave(s);
    }

    std::unique_ptr<DtrState> state_;  // where the heuristic finds it
    std::unique_ptr<EvictionHeuristic> heuristic_;
    EvictionPool pool_;
    std::vector<core::StorageIndex> deferred_;
    std::int64_t bytes_ = 0;  // of the pool
    bool some_;
};

}  // namespace hw::planners
