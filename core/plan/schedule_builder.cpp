// SPDX-License-Identifier: MIT
#include "core/plan/schedule_builder.h"

#include <algorithm>

namespace hw::core {

ScheduleBuilder::ScheduleBuilder(const TrainingGraph& graph, const RebuildInfo& info)
    : graph_(graph),
      info_(info),
      resident_(graph.storages.size(), false),
      defined_(graph.tensors.size(), false),
      version_(graph.storages.size(), 0),
      pins_(graph.storages.size(), 0) {
    arriveConstants(0);
}

// Passes over the events up to the computation of `before`: constants come, releases are noted.
void ScheduleBuilder::arriveConstants(OpIndex before) {
    for (; nextEvent_ < graph_.events.size(); ++nextEvent_) {
        const Event& event = graph_.events[nextEvent_];
        if (event.kind == Event::Kind::Compute) {
            if (event.index >= before) return;
            continue;
        }
        if (event.kind == Event::Kind::Release) {
            noteTouched(event.index);
            continue;
        }
        resident_[event.index] = true;
        for (const TensorIndex tensor : graph_.storages[event.index].tensors)
            if (graph_.tensors[tensor].creator == kNone) defined_[tensor] = true;
    }
}

bool ScheduleBuilder::satisfied(const Use& use) const {
    const StorageIndex s = graph_.storageOf(use.tensor);
    return resident_[s] && defined_[use.tensor] && version_[s] == use.version;
}

// Kept: what has a use ahead. What cannot be rebuilt stays while any rebuild may read it.
bool ScheduleBuilder::worthKeeping(StorageIndex s) const {
    return (info_.rematerializable[s] ? info_.lastUse[s] : info_.neededUntil[s]) >= next_;
}

void ScheduleBuilder::computeNext() {
    const OpIndex index = next_;
    const Op& op = graph_.ops[index];
    arriveConstants(index);
    freeUnneeded();
    for (const Use& use : op.inputs) {
        ensure(use);
        ++pins_[graph_.storageOf(use.tensor)];
    }
    schedule_.push_back(Action::compute(index));
    for (const Write& write : op.writes) ++version_[write.storage], noteTouched(write.storage);
    for (const OpOutput& output : op.outputs) {
        const StorageIndex s = graph_.storageOf(output.tensor);
        if (output.makesStorage) {
            resident_[s] = true;
            version_[s] = 0;
            for (const TensorIndex t : graph_.storages[s].tensors)
                if (graph_.tensors[t].creator == kNone) defined_[t] = true;
            noteTouched(s);
        }
        if (resident_[s]) defined_[output.tensor] = true;
    }
    for (const Use& use : op.inputs) {
        const StorageIndex s = graph_.storageOf(use.tensor);
        --pins_[s];
        noteTouched(s);
    }
    ++next_;
    arriveConstants(next_);
    freeUnneeded();
}

// Whether `op`, one of the chain of storage `s`, belongs right after the version that `s` holds.
bool ScheduleBuilder::readsCurrentVersion(OpIndex op, StorageIndex s) const {
    for (const Write& write : graph_.ops[op].writes)
        if (write.storage == s) return write.versionBefore == version_[s];
    for (const Use& use : graph_.ops[op].inputs)
        if (graph_.storageOf(use.tensor) == s) return use.version == version_[s];
    return false;
}

// Brings `use` into being. Writers of its storage are re-run in order, and with them the views that
// were taken before each write.
void ScheduleBuilder::ensure(Use use) {
    if (satisfied(use)) return;
    const StorageIndex s = graph_.storageOf(use.tensor);
    const Storage& storage = graph_.storages[s];
    if (!resident_[s]) recompute(storage.creator, storage.tensors.front());
    ++pins_[s];
    if (version_[s] < use.version) {
        for (const OpIndex op : info_.chain[s]) {
            if (version_[s] >= use.version || op >= next_) break;
            if (op == storage.creator) continue;
            if (readsCurrentVersion(op, s)) recompute(op, kNone);
        }
    }
    if (!defined_[use.tensor]) recompute(graph_.tensors[use.tensor].creator, use.tensor);
    --pins_[s];
}

// Re-runs an op. Of its outputs those are kept that are wanted or have a use ahead.
void ScheduleBuilder::recompute(OpIndex index, TensorIndex wanted) {
    const Op& op = graph_.ops[index];
    for (const Use& use : op.inputs) {
        ensure(use);
        ++pins_[graph_.storageOf(use.tensor)];
    }
    std::vector<std::int32_t> keep;
    for (std::size_t j = 0; j < op.outputs.size(); ++j) {
        const TensorIndex t = op.outputs[j].tensor;
        const StorageIndex s = graph_.storageOf(t);
        if (defined_[t]) continue;
        if (op.outputs[j].makesStorage) {
            if (t != wanted && (info_.lastUse[s] < next_ || !graph_.storages[s].writers.empty())) continue;
            resident_[s] = true;
            version_[s] = 0;
            for (const TensorIndex other : graph_.storages[s].tensors)
                if (graph_.tensors[other].creator == kNone) defined_[other] = true;
            noteTouched(s);
        } else if (!resident_[s]) {
            continue;
        }
        defined_[t] = true;
        keep.push_back(static_cast<std::int32_t>(j));
    }
    for (const Write& write : op.writes) ++version_[write.storage];
    schedule_.push_back(Action::recompute(index, std::move(keep)));
    for (const Use& use : op.inputs) {
        const StorageIndex s = graph_.storageOf(use.tensor);
        --pins_[s];
        noteTouched(s);
    }
    freeUnneeded();
}

void ScheduleBuilder::drop(StorageIndex storage) { free(storage); }

void ScheduleBuilder::free(StorageIndex s) {
    schedule_.push_back(Action::free(s));
    resident_[s] = false;
    for (const TensorIndex tensor : graph_.storages[s].tensors) defined_[tensor] = false;
}

void ScheduleBuilder::freeUnneeded() {
    std::vector<StorageIndex> later;
    for (const StorageIndex s : touched_) {
        if (!resident_[s] || worthKeeping(s)) continue;
        if (pins_[s] > 0) later.push_back(s);
        else free(s);
    }
    touched_ = std::move(later);
}

Schedule ScheduleBuilder::finish() {
    arriveConstants(static_cast<OpIndex>(graph_.ops.size()) + 1);
    for (const TensorIndex tensor : graph_.finalTensors) {
        const StorageIndex s = graph_.storageOf(tensor);
        ensure({tensor, static_cast<std::int32_t>(graph_.storages[s].writers.size())});
    }
    freeUnneeded();
    return std::move(schedule_);
}

}  // namespace hw::core
