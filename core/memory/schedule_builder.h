// SPDX-License-Identifier: MIT
// Builds valid schedules for planners that decide what to drop: it computes ops in captured order,
// rebuilds what was dropped when it is needed again, and frees what is no longer needed.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "core/graph/training_graph.h"
#include "core/memory/defined_tensors.h"
#include "core/memory/rebuild.h"
#include "core/plan/plan.h"

namespace hw::core {

class ScheduleBuilder {
public:
    /// `graph` and `info` must outlive the builder.
    ScheduleBuilder(const TrainingGraph& graph, const RebuildInfo& info);

    /// Computes the next captured op for the first time, rebuilding missing inputs first. Rebuilt
    /// storages stay until their last use; those without a further use go right after the op.
    void computeNext();
    OpIndex next() const { return next_; }
    bool done() const { return next_ == static_cast<OpIndex>(graph_.ops.size()); }

    /// How long a storage stays that has just come into being.
    enum class Lifetime : std::uint8_t {
        LastUse,   // until the program uses it no more: what happens without setLifetime()
        Rebuilds,  // as long as the rebuild of anything may read it
        Passing    // rebuilt only on the way to something else: until that is done
    };
    /// `lifetime` is asked about every storage that is made (where Passing means LastUse) or
    /// rebuilt.
    void setLifetime(std::function<Lifetime(StorageIndex)> lifetime) {
        lifetimeRule_ = std::move(lifetime);
    }

    /// Drops a resident, rematerializable storage; it is rebuilt when it is needed again.
    void drop(StorageIndex storage);
    /// Rebuilds what is missing of these operands of ops to come.
    void rebuild(std::span<const Use> uses);
    bool resident(StorageIndex storage) const { return resident_[storage]; }

    /// Rebuilds final tensors that were dropped and returns the schedule.
    Schedule finish();

private:
    /// Ops to re-run, in captured order: then every version that one of them reads is there in its
    /// time, and nothing is rebuilt twice. Each batch takes the memory of the one before.
    class Batch {
    public:
        explicit Batch(const TrainingGraph& graph);
        void begin();

        void run(OpIndex op);
        /// False when it was there.
        bool define(TensorIndex tensor);
        void rebuild(StorageIndex storage, std::int32_t version);

        bool rebuilds(StorageIndex storage) const { return lastOfStorage_[storage] == batch_; }
        /// Up to which version; kNone: it is not rebuilt.
        std::int32_t version(StorageIndex storage) const {
            return rebuilds(storage) ? versions_[storage] : kNone;
        }

        std::vector<OpIndex> ops;
        std::vector<OpIndex> open;  // of the ops, those whose inputs were not required yet

    private:
        std::uint32_t batch_ = 0;
        // The last batch that has each op, storage and tensor.
        std::vector<std::uint32_t> lastOf_, lastOfStorage_, lastOfTensor_;
        std::vector<std::int32_t> versions_;  // of the storages
    };

    void require(const Use& use);
    void recompute(OpIndex op);
    bool satisfied(const Use& use) const;
    bool worthKeeping(StorageIndex storage) const;
    void place(StorageIndex storage);
    void pin(OpIndex op);  // its operands are read ahead
    void unpin(OpIndex op);
    void unpinStorage(StorageIndex storage);
    void free(StorageIndex storage);
    void freeUnneeded();
    void passEvents(OpIndex before);

    const TrainingGraph& graph_;
    const RebuildInfo& info_;
    Schedule schedule_;
    OpIndex next_ = 0;
    std::size_t nextEvent_ = 0;
    std::vector<bool> resident_;
    DefinedTensors defined_;
    std::vector<std::int32_t> version_;
    std::vector<Lifetime> lifetime_;
    std::function<Lifetime(StorageIndex)> lifetimeRule_ = [](StorageIndex) {
        return Lifetime::LastUse;
    };
    std::vector<int> pins_;              // reads ahead in the rebuild and the op in progress
    std::vector<StorageIndex> touched_;  // candidates for freeing
    Batch batch_;                        // the ops of one rebuild
};

}  // namespace hw::core
