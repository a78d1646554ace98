// SPDX-License-Identifier: MIT
#include "core/memory/replay.h"

#include <algorithm>
#include <utility>

namespace hw::core {

ReplayState::ReplayState(const TrainingGraph& graph)
    : graph_(graph), order_(capturedOrder(graph)), resident_(graph.storages.size(), false) {}

const StandIn* ReplayState::standIn(StorageIndex storage) const {
    const auto form = standIns_.find(storage);
    return form == standIns_.end() ? nullptr : &form->second;
}

bool ReplayState::fail(std::string why) {
    why_ = std::move(why);
    return false;
}

std::string ReplayState::opName(OpIndex index) const {
    return "op " + std::to_string(index) + " (" + graph_.ops[index].name + ")";
}

bool ReplayState::noTarget(const Action& action) {
    return fail((action.runsOp() ? "there is no op " : "there is no storage ") +
                std::to_string(action.target));
}

bool ReplayState::outOfOrder(OpIndex index) {
    if (computed_[index]) return fail(opName(index) + " is computed for the first time twice");
    return fail(opName(index) + " is computed out of order, expected " +
                opName(order_.fixedOps[fixedDone_]));
}

bool ReplayState::notAgain(const Action& action) {
    const OpIndex index = action.target;
    if (!computed_[index])
        return fail(opName(index) + " is recomputed before its first computation");
    const auto results = static_cast<std::int32_t>(graph_.ops[index].outputs.size());
    for (const std::int32_t output : action.outputs)
        if (output < 0 || output >= results)
            return fail(opName(index) + " has no output " + std::to_string(output));
    if (graph_.ops[index].once)
        return fail(opName(index) +
                    " works on more than what ops leave in storages, and must not be run again");
    return fail(opName(index) + " writes a constant and must not be run again");
}

bool ReplayState::misses(OpIndex index, const Use& use) {
    const StorageIndex s = graph_.storageOf(use.tensor);
    if (!resident_[s]) return fail(opName(index) + " misses storage " + std::to_string(s));
    if (!defined_.has(use.tensor))
        return fail(opName(index) + " misses tensor " + std::to_string(use.tensor));
    return fail(opName(index) + " needs version " + std::to_string(use.version) + " of storage " +
                std::to_string(s) + ", which holds " + std::to_string(version_[s]));
}

bool ReplayState::cannotWrite(OpIndex index, const Write& write) {
    return fail(opName(index) + " cannot write storage " + std::to_string(write.storage) +
                (leaving_.count(write.storage) > 0 ? ", which is copied to host memory" : ""));
}

bool ReplayState::madeTwice(StorageIndex s) {
    return fail("storage " + std::to_string(s) + " is made again while it is in host memory");
}

bool ReplayState::mayFree(StorageIndex s) {
    if (resident_[s]) return true;
    return fail("storage " + std::to_string(s) + " is freed while not resident");
}

// With both forms resident a further codec of the storage would have no meaning.
bool ReplayState::mayEncode(const Action& action) {
    const StorageIndex s = action.target;
    if (!resident_[s])
        return fail("storage " + std::to_string(s) + " is encoded while not resident");
    if (standIn(s)) return fail("storage " + std::to_string(s) + " is encoded already");
    if (leaving_.count(s) > 0)
        return fail("storage " + std::to_string(s) + " is encoded while it is offloaded");
    if (action.encoding->bytes < Bytes(0)) return fail("an encoded form has a negative size");
    return true;
}

bool ReplayState::mayDecode(StorageIndex s) {
    if (!standIn(s) || standIn(s)->by != ActionKind::Encode)
        return fail("storage " + std::to_string(s) + " is decoded but not encoded");
    if (resident_[s])
        return fail("storage " + std::to_string(s) + " is decoded while it is resident");
    return true;
}

bool ReplayState::mayOffload(StorageIndex s) {
    if (!resident_[s])
        return fail("storage " + std::to_string(s) + " is offloaded while not resident");
    if (standIn(s) || leaving_.count(s) > 0)
        return fail("storage " + std::to_string(s) + " is offloaded or encoded already");
    return true;
}

bool ReplayState::mayPrefetch(StorageIndex s) {
    if (isOffloaded(s)) return true;
    return fail("storage " + std::to_string(s) + " is prefetched but not in host memory");
}

void ReplayState::waitUntil(Nanoseconds copied) {
    if (copied <= time_) return;
    waited_ += copied - time_;
    time_ = copied;
}

void ReplayState::awaitArrival(StorageIndex s) {
    const auto copy = arriving_.find(s);
    if (copy == arriving_.end()) return;
    waitUntil(copy->second);
    arriving_.erase(copy);
}

void ReplayState::awaitOperands(const Op& op) {
    for (const Use& use : op.inputs) awaitArrival(graph_.storageOf(use.tensor));
    for (const Write& write : op.writes) awaitArrival(write.storage);
}

void ReplayState::awaitAllArrivals() {
    waitUntil(inFree_);
    arriving_.clear();
}

void ReplayState::dropHostCopy(StorageIndex s) {
    hostLive_ -= graph_.storages[s].bytes;
}

bool ReplayState::complete() {
    if (computedCount_ != graph_.ops.size()) {
        const auto missing =
            std::find(computed_.begin(), computed_.end(), false) - computed_.begin();
        return fail(opName(static_cast<OpIndex>(missing)) + " is never computed");
    }
    for (const TensorIndex tensor : graph_.finalTensors) {
        const StorageIndex s = graph_.storageOf(tensor);
        if (!resident_[s] || !defined_.has(tensor) ||
            version_[s] != static_cast<std::int32_t>(graph_.storages[s].writers.size()))
            return fail("tensor " + std::to_string(tensor) + " of storage " + std::to_string(s) +
                        " must be there at the end and is not");
    }
    return true;
}

}  // namespace hw::core
