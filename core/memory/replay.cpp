// SPDX-License-Identifier: MIT
#include "core/memory/replay.h"

#include <algorithm>
#include <utility>

#include "core/plan/codec.h"

namespace hw::core {

ReplayState::ReplayState(const TrainingGraph& graph)
    : graph_(graph),
      order_(capturedOrder(graph)),
      resident_(graph.storages.size(), false),
      version_(graph.storages.size(), 0),
      defined_(graph.tensors.size(), false),
      computed_(graph.ops.size(), false) {}

const EncodedForm* ReplayState::encodedForm(StorageIndex storage) const {
    const auto form = encoded_.find(storage);
    return form == encoded_.end() ? nullptr : &form->second;
}

bool ReplayState::fail(std::string why) {
    why_ = std::move(why);
    return false;
}

std::string ReplayState::opName(OpIndex index) const {
    return "op " + std::to_string(index) + " (" + graph_.ops[index].name + ")";
}

bool ReplayState::targetExists(const Action& action) {
    const std::size_t limit = action.runsOp() ? graph_.ops.size() : graph_.storages.size();
    if (action.target >= 0 && static_cast<std::size_t>(action.target) < limit) return true;
    return fail((action.runsOp() ? "there is no op " : "there is no storage ") +
                std::to_string(action.target));
}

bool ReplayState::mayCompute(OpIndex index) {
    if (computed_[index]) return fail(opName(index) + " is computed for the first time twice");
    if (!graph_.ops[index].viewOnly() && order_.fixedOps[fixedDone_] != index)
        return fail(opName(index) + " is computed out of order, expected " +
                    opName(order_.fixedOps[fixedDone_]));
    return true;
}

bool ReplayState::mayRecompute(const Action& action) {
    const OpIndex index = action.target;
    const Op& op = graph_.ops[index];
    if (!computed_[index])
        return fail(opName(index) + " is recomputed before its first computation");
    for (const std::int32_t output : action.outputs)
        if (output < 0 || static_cast<std::size_t>(output) >= op.outputs.size())
            return fail(opName(index) + " has no output " + std::to_string(output));
    for (const Write& write : op.writes)
        if (graph_.storages[write.storage].isConstant())
            return fail(opName(index) + " writes a constant and must not be run again");
    ++recomputedOps_;
    return true;
}

bool ReplayState::mayRun(const Action& action) {
    const OpIndex index = action.target;
    if (!(action.recomputes() ? mayRecompute(action) : mayCompute(index))) return false;
    const Op& op = graph_.ops[index];
    for (const Use& use : op.inputs) {
        const StorageIndex s = graph_.storageOf(use.tensor);
        if (!resident_[s]) return fail(opName(index) + " misses storage " + std::to_string(s));
        if (!defined_[use.tensor])
            return fail(opName(index) + " misses tensor " + std::to_string(use.tensor));
        if (version_[s] != use.version)
            return fail(opName(index) + " needs version " + std::to_string(use.version) +
                        " of storage " + std::to_string(s) + ", which holds " +
                        std::to_string(version_[s]));
    }
    for (const Write& write : op.writes)
        if (!resident_[write.storage] || version_[write.storage] != write.versionBefore)
            return fail(opName(index) + " cannot write storage " + std::to_string(write.storage));
    return true;
}

// With both forms resident a further codec of the storage would have no meaning.
bool ReplayState::mayEncode(const Action& action) {
    const StorageIndex s = action.target;
    if (!resident_[s])
        return fail("storage " + std::to_string(s) + " is encoded while not resident");
    if (encodedForm(s)) return fail("storage " + std::to_string(s) + " is encoded already");
    if (action.encodedBytes < Bytes(0)) return fail("an encoded form has a negative size");
    return true;
}

bool ReplayState::mayDecode(StorageIndex s) {
    if (!encodedForm(s))
        return fail("storage " + std::to_string(s) + " is decoded but not encoded");
    if (resident_[s])
        return fail("storage " + std::to_string(s) + " is decoded while it is resident");
    return true;
}

bool ReplayState::complete() {
    if (computedCount_ != graph_.ops.size()) {
        const auto missing =
            std::find(computed_.begin(), computed_.end(), false) - computed_.begin();
        return fail(opName(static_cast<OpIndex>(missing)) + " is never computed");
    }
    for (const TensorIndex tensor : graph_.finalTensors) {
        const StorageIndex s = graph_.storageOf(tensor);
        if (!resident_[s] || !defined_[tensor] ||
            version_[s] != static_cast<std::int32_t>(graph_.storages[s].writers.size()))
            return fail("tensor " + std::to_string(tensor) + " of storage " + std::to_string(s) +
                        " must be there at the end and is not");
    }
    return true;
}

void ReplayState::chargeOp(const Op& op) {
    during_ = live_ + op.workspace;
    for (const OpOutput& output : op.outputs)
        if (output.makesStorage) during_ += graph_.storages[graph_.storageOf(output.tensor)].bytes;
    time_ += op.time;
    for (const Write& write : op.writes) ++version_[write.storage];
}

// Makes a storage resident, with the tensors that come with it and no op makes.
void ReplayState::place(StorageIndex s, std::int32_t version) {
    resident_[s] = true;
    version_[s] = version;
    live_ += graph_.storages[s].bytes;
    for (const TensorIndex tensor : graph_.storages[s].tensors)
        if (graph_.tensors[tensor].creator == kNone) defined_[tensor] = true;
}

void ReplayState::remove(StorageIndex s) {
    resident_[s] = false;
    live_ -= graph_.storages[s].bytes;
    for (const TensorIndex tensor : graph_.storages[s].tensors) defined_[tensor] = false;
}

// While a codec runs both forms are resident; views do not survive it.
EncodedForm ReplayState::exchangeForEncoded(const Action& action) {
    const StorageIndex s = action.target;
    const EncodedForm form{action.encodedBytes, action.codec};
    during_ = live_ + form.bytes;
    time_ += codecTime(form.codec, graph_.storages[s].bytes, form.bytes);
    remove(s);
    live_ += form.bytes;
    encoded_[s] = form;
    return form;
}

EncodedForm ReplayState::exchangeForPlain(StorageIndex s) {
    const EncodedForm form = encoded_.extract(s).mapped();
    during_ = live_ + graph_.storages[s].bytes;
    time_ += codecTime(form.codec, graph_.storages[s].bytes, form.bytes);
    live_ -= form.bytes;
    place(s, version_[s]);
    defined_[graph_.storages[s].tensors.front()] = true;
    return form;
}

}  // namespace hw::core
