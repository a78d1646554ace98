// SPDX-License-Identifier: MIT
#include "core/memory/schedule_builder.h"

#include <algorithm>
#include <utility>

namespace hw::core {

ScheduleBuilder::Batch::Batch(const TrainingGraph& graph)
    : lastOf_(graph.ops.size(), 0),
      lastOfStorage_(graph.storages.size(), 0),
      lastOfTensor_(graph.tensors.size(), 0),
      versions_(graph.storages.size(), 0) {}

void ScheduleBuilder::Batch::begin() {
    ++batch_;
    ops.clear();
}

void ScheduleBuilder::Batch::run(OpIndex op) {
    if (std::exchange(lastOf_[op], batch_) == batch_) return;
    ops.push_back(op);
    open.push_back(op);
}

bool ScheduleBuilder::Batch::define(TensorIndex tensor) {
    return std::exchange(lastOfTensor_[tensor], batch_) != batch_;
}

void ScheduleBuilder::Batch::rebuild(StorageIndex storage, std::int32_t version) {
    lastOfStorage_[storage] = batch_;
    versions_[storage] = version;
}

ScheduleBuilder::ScheduleBuilder(const TrainingGraph& graph, const RebuildInfo& info)
    : graph_(graph),
      info_(info),
      resident_(graph.storages.size(), false),
      defined_(graph),
      version_(graph.storages.size(), 0),
      lifetime_(graph.storages.size(), Lifetime::LastUse),
      pins_(graph.storages.size(), 0),
      batch_(graph) {
    schedule_.reserve(2 * graph.events.size());  // most plans are shorter
    passEvents(0);
}

// Passes over the events up to the computation of `before`: constants come into being, and what the
// program releases is looked at once more.
void ScheduleBuilder::passEvents(OpIndex before) {
    for (; nextEvent_ < graph_.events.size(); ++nextEvent_) {
        const Event& event = graph_.events[nextEvent_];
        if (event.kind == Event::Kind::Compute && event.index >= before) return;
        if (event.kind == Event::Kind::Constant) place(event.index);
        if (event.kind == Event::Kind::Release) touched_.push_back(event.index);
    }
}

void ScheduleBuilder::place(StorageIndex s) {
    resident_[s] = true;
    version_[s] = 0;
    defined_.begin(s);
    touched_.push_back(s);
}

bool ScheduleBuilder::satisfied(const Use& use) const {
    return defined_.has(use.tensor) && version_[graph_.storageOf(use.tensor)] == use.version;
}

// Kept: what has a use ahead. What cannot be rebuilt stays while any rebuild may read it.
bool ScheduleBuilder::worthKeeping(StorageIndex s) const {
    if (!info_.rematerializable[s] || lifetime_[s] == Lifetime::Rebuilds)
        return info_.neededUntil[s] >= next_;
    return lifetime_[s] == Lifetime::LastUse && info_.lastUse[s] >= next_;
}

void ScheduleBuilder::pin(OpIndex op) {
    for (const Use& use : graph_.ops[op].inputs) ++pins_[graph_.storageOf(use.tensor)];
    for (const Write& write : graph_.ops[op].writes) ++pins_[write.storage];
}

void ScheduleBuilder::unpin(OpIndex op) {
    for (const Use& use : graph_.ops[op].inputs) unpinStorage(graph_.storageOf(use.tensor));
    for (const Write& write : graph_.ops[op].writes) unpinStorage(write.storage);
}

void ScheduleBuilder::unpinStorage(StorageIndex s) {
    if (--pins_[s] == 0) touched_.push_back(s);
}

void ScheduleBuilder::computeNext() {
    const OpIndex index = next_;
    const Op& op = graph_.ops[index];
    passEvents(index);
    freeUnneeded();
    rebuild(op.inputs);
    schedule_.push_back(Action::compute(index));
    for (const Write& write : op.writes) ++version_[write.storage];
    for (const OpOutput& output : op.outputs) {
        const StorageIndex s = graph_.storageOf(output.tensor);
        if (output.makesStorage) {
            place(s);
            lifetime_[s] =
                lifetimeRule_(s) == Lifetime::Rebuilds ? Lifetime::Rebuilds : Lifetime::LastUse;
        }
        if (resident_[s]) defined_.add(output.tensor);
    }
    for (const Use& use : op.inputs) touched_.push_back(graph_.storageOf(use.tensor));
    ++next_;
    passEvents(next_);
    freeUnneeded();
}

void ScheduleBuilder::rebuild(std::span<const Use> uses) {
    if (std::all_of(uses.begin(), uses.end(), [&](const Use& use) { return satisfied(use); }))
        return;
    batch_.begin();
    for (const Use& use : uses) require(use);
    while (!batch_.open.empty()) {  // not by recursion: a chain may be as long as the step
        const OpIndex op = batch_.open.back();
        batch_.open.pop_back();
        for (const Use& use : graph_.ops[op].inputs) require(use);
    }
    std::sort(batch_.ops.begin(), batch_.ops.end());
    for (const Use& use : uses) ++pins_[graph_.storageOf(use.tensor)];
    for (const OpIndex op : batch_.ops) pin(op);
    for (const OpIndex op : batch_.ops) {
        recompute(op);
        unpin(op);
        freeUnneeded();
    }
    for (const Use& use : uses) unpinStorage(graph_.storageOf(use.tensor));
}

// Enters into the batch what brings `use` into being: the creator of its storage, the writers up to
// its version with the views taken before each of them, and the maker of the tensor itself.
void ScheduleBuilder::require(const Use& use) {
    const StorageIndex s = graph_.storageOf(use.tensor);
    if (satisfied(use) && !batch_.rebuilds(s)) return;
    const Storage& storage = graph_.storages[s];
    if (!resident_[s] && !storage.isConstant() && batch_.version(s) < use.version) {
        batch_.rebuild(s, use.version);
        for (const OpIndex op : info_.chain[s]) {
            if (op >= next_) break;
            std::int32_t reads = op == storage.creator ? -1 : use.version;
            for (const Use& input : graph_.ops[op].inputs)
                if (op != storage.creator && graph_.storageOf(input.tensor) == s)
                    reads = input.version;
            if (reads < use.version) batch_.run(op);
        }
    }
    const OpIndex maker = graph_.tensors[use.tensor].creator;
    if (batch_.define(use.tensor) && maker != kNone && maker < next_ && !defined_.has(use.tensor))
        batch_.run(maker);
}

// Re-runs an op. Of its outputs those are kept that the batch needs or that have a use ahead.
void ScheduleBuilder::recompute(OpIndex index) {
    const Op& op = graph_.ops[index];
    for (const Write& write : op.writes) ++version_[write.storage];
    ShortList<std::int32_t> keep;
    for (std::size_t j = 0; j < op.outputs.size(); ++j) {
        const TensorIndex t = op.outputs[j].tensor;
        const StorageIndex s = graph_.storageOf(t);
        if (defined_.has(t)) continue;
        if (op.outputs[j].makesStorage) {
            const bool usefulAsItIs =
                graph_.storages[s].writers.empty() && info_.lastUse[s] >= next_;
            if (!batch_.rebuilds(s) && !usefulAsItIs) continue;
            place(s);
            lifetime_[s] = lifetimeRule_(s);
        } else if (!resident_[s]) {
            continue;
        }
        defined_.add(t);
        keep.push_back(static_cast<std::int32_t>(j));
    }
    schedule_.push_back(Action::recompute(index, std::move(keep)));
}

void ScheduleBuilder::drop(StorageIndex storage) {
    free(storage);
}

void ScheduleBuilder::free(StorageIndex s) {
    schedule_.push_back(Action::free(s));
    resident_[s] = false;
    defined_.forget(s);
}

void ScheduleBuilder::freeUnneeded() {
    for (const StorageIndex s : touched_)  // what is pinned comes again when it is no more
        if (pins_[s] == 0 && resident_[s] && !worthKeeping(s)) free(s);
    touched_.clear();
}

Schedule ScheduleBuilder::finish() {
    passEvents(static_cast<OpIndex>(graph_.ops.size()) + 1);
    std::vector<Use> finals;
    for (const TensorIndex tensor : graph_.finalTensors)
        finals.push_back({tensor, static_cast<std::int32_t>(
                                      graph_.storages[graph_.storageOf(tensor)].writers.size())});
    rebuild(finals);
    freeUnneeded();
    return std::move(schedule_);
}

}  // namespace hw::core
