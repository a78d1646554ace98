// SPDX-License-Identifier: MIT
#include "core/graph/training_graph.h"

#include <algorithm>
#include <array>
#include <set>

#include "core/base/digest.h"
#include "core/base/lists.h"
#include "core/graph/unseen_ops.h"

namespace hw::core {
namespace {

constexpr std::array<std::string_view, 4> kPhaseNames{"unknown", "forward", "backward",
                                                      "optimizer"};
constexpr std::array<std::string_view, kCategoryCount> kCategoryNames{
    "parameter", "gradient",  "optimizer state",    "input",  "activation",
    "temporary", "workspace", "gathered parameter", "unknown"};

template <class Enum, std::size_t N>
Enum fromName(const std::array<std::string_view, N>& names, std::string_view name, Enum fallback) {
    const auto at = std::find(names.begin(), names.end(), name);
    return at == names.end() ? fallback : static_cast<Enum>(at - names.begin());
}

std::string place(const char* what, std::int64_t index) {
    return what + (" " + std::to_string(index));
}

// Replays the captured order once: every index in range, every version as recorded.
class Checker {
public:
    explicit Checker(const TrainingGraph& graph)
        : graph_(graph), version_(graph.storages.size(), kNotThere) {}

    std::string run() {
        OpIndex next = 0;
        for (const Event& event : graph_.events) {
            std::string wrong;
            switch (event.kind) {
                case Event::Kind::Constant:
                    wrong = arrive(event.index);
                    break;
                case Event::Kind::Release:
                    wrong = release(event.index);
                    break;
                case Event::Kind::Compute:
                    if (event.index != next++) return "ops are not in captured order";
                    wrong = compute(event.index);
                    break;
            }
            if (!wrong.empty()) return wrong;
        }
        if (next != static_cast<OpIndex>(graph_.ops.size()))
            return "an op is missing from the events";
        for (const TensorIndex tensor : graph_.finalTensors)
            if (version_[graph_.storageOf(tensor)] < 0)
                return place("final tensor", tensor) + " is not alive at the end";
        return {};
    }

private:
    static constexpr std::int32_t kNotThere = -1;

    bool storageOk(StorageIndex s) const {
        return s >= 0 && s < static_cast<StorageIndex>(graph_.storages.size());
    }
    std::string arrive(StorageIndex s) {
        if (!storageOk(s) || !graph_.storages[s].isConstant() || version_[s] != kNotThere)
            return place("storage", s) + " cannot come into being as a constant";
        version_[s] = 0;
        return {};
    }
    std::string release(StorageIndex s) {
        if (!storageOk(s) || version_[s] < 0)
            return place("storage", s) + " is released while not alive";
        version_[s] = kNotThere;
        return {};
    }
    std::string compute(OpIndex index) {
        const Op& op = graph_.ops[index];
        for (const Use& use : op.inputs) {
            const StorageIndex s = graph_.storageOf(use.tensor);
            if (version_[s] < 0) return place("op", index) + " reads a storage that is not alive";
            if (version_[s] != use.version)
                return place("op", index) + " reads " + place("storage", s) + " at version " +
                       std::to_string(use.version) + ", but it holds " +
                       std::to_string(version_[s]);
        }
        for (const Write& write : op.writes)
            if (!storageOk(write.storage) || version_[write.storage] != write.versionBefore)
                return place("op", index) + " writes " + place("storage", write.storage) +
                       " at a version that it does not hold";
        for (const Write& write : op.writes) ++version_[write.storage];
        for (const OpOutput& output : op.outputs) {
            const StorageIndex s = graph_.storageOf(output.tensor);
            if (output.makesStorage) {
                if (version_[s] >= 0)
                    return place("op", index) + " makes a storage that is there already";
                version_[s] = 0;
            } else if (version_[s] < 0) {
                return place("op", index) + " makes a view of a storage that is not alive";
            }
        }
        return {};
    }

    const TrainingGraph& graph_;
    std::vector<std::int32_t> version_;
};

bool writesTo(const Op& op, StorageIndex storage) {
    return std::any_of(op.writes.begin(), op.writes.end(),
                       [&](const Write& write) { return write.storage == storage; });
}

// A collective returns what it was given, and writes that without saying so: it keeps its place
// among all others, so that no rank waits for one that another rank comes to later.
bool makesViewsOnly(const Op& op) {
    return op.writes.empty() &&
           std::none_of(op.outputs.begin(), op.outputs.end(),
                        [](const OpOutput& o) { return o.makesStorage; }) &&
           !isCollective(op.name);
}

}  // namespace

std::string_view phaseName(Phase phase) {
    return kPhaseNames[static_cast<std::size_t>(phase)];
}
std::string_view categoryName(Category category) {
    return kCategoryNames[static_cast<std::size_t>(category)];
}
Phase phaseFromName(std::string_view name) {
    return fromName(kPhaseNames, name, Phase::Unknown);
}
Category categoryFromName(std::string_view name) {
    return fromName(kCategoryNames, name, Category::Unknown);
}
std::string_view costSetName(CostSet set) {
    return set == CostSet::Captured ? "captured" : "measured";
}

bool Op::is(std::string_view op) const {
    const std::string_view full = name;
    return full.starts_with(op) && (full.size() == op.size() || full[op.size()] == '.');
}

/// Of one storage: sums of them stay far from the largest number.
constexpr Bytes kMostBytes(std::int64_t{1} << 50);
/// Of all ops together, 104 days; a plan may run each a thousand times.
constexpr Nanoseconds kMostTime(std::int64_t{1} << 53);

/// What finish() is about to find out.
std::string TrainingGraph::clearFound() {
    const auto storageCount = static_cast<StorageIndex>(storages.size());
    for (Storage& storage : storages) {
        if (storage.bytes < Bytes(0)) return "a storage has a negative size";
        if (storage.bytes > kMostBytes) return "a storage is larger than any memory";
        storage.creator = kNone;
        storage.tensors.clear();
        storage.writers.clear();
        storage.readers.clear();
        storage.aliveAtEnd = false;
    }
    for (Tensor& tensor : tensors) {
        if (tensor.storage < 0 || tensor.storage >= storageCount) return "a tensor has no storage";
        tensor.creator = kNone;
    }
    return {};
}

/// Who reads, makes and writes what. `readBefore`: tensors that were read before any op made them.
std::string TrainingGraph::linkOp(OpIndex i, std::vector<bool>& readBefore) {
    const auto tensorCount = static_cast<TensorIndex>(tensors.size());
    const auto storageCount = static_cast<StorageIndex>(storages.size());
    Op& op = ops[i];
    op.viewOnly = makesViewsOnly(op);
    if (op.time < Nanoseconds(0)) return place("op", i) + " has a negative time";
    if (op.workspace < Bytes(0)) return place("op", i) + " has a negative workspace";
    for (const Use& use : op.inputs) {
        if (use.tensor < 0 || use.tensor >= tensorCount)
            return place("op", i) + " reads an unknown tensor";
        pushUnlessLast(storages[storageOf(use.tensor)].readers, i);
        if (tensors[use.tensor].creator == kNone) readBefore[use.tensor] = true;
    }
    for (const OpOutput& output : op.outputs) {
        if (output.tensor < 0 || output.tensor >= tensorCount)
            return place("op", i) + " makes an unknown tensor";
        Tensor& tensor = tensors[output.tensor];
        Storage& storage = storages[tensor.storage];
        if (output.makesStorage) {
            if (storage.creator != kNone) return place("op", i) + " makes a storage a second time";
            storage.creator = i;
            storage.layer = op.layer;
        }
        // A tensor that was read before any op returned it came with its storage.
        if (tensor.creator == kNone && !readBefore[output.tensor]) tensor.creator = i;
    }
    for (const Write& write : op.writes) {
        if (write.storage < 0 || write.storage >= storageCount)
            return place("op", i) + " writes an unknown storage";
        storages[write.storage].writers.push_back(i);
    }
    return {};
}

/// The tensor that came with a storage is the first of its tensors.
void TrainingGraph::linkTensors() {
    for (TensorIndex t = 0; t < static_cast<TensorIndex>(tensors.size()); ++t) {
        Storage& storage = storages[tensors[t].storage];
        const bool root = tensors[t].creator == storage.creator && !storage.tensors.empty() &&
                          tensors[storage.tensors.front()].creator != storage.creator;
        if (root)
            storage.tensors.insert(storage.tensors.begin(), t);
        else
            storage.tensors.push_back(t);
    }
}

std::string TrainingGraph::finish() {
    if (std::string wrong = clearFound(); !wrong.empty()) return wrong;
    std::vector<bool> readBefore(tensors.size(), false);
    Nanoseconds total;
    for (OpIndex i = 0; i < static_cast<OpIndex>(ops.size()); ++i) {
        if (std::string wrong = linkOp(i, readBefore); !wrong.empty()) return wrong;
        if (ops[i].time > kMostTime - total) return "the ops take longer than any step";
        total += ops[i].time;
    }
    linkTensors();
    for (const TensorIndex tensor : finalTensors) {
        if (tensor < 0 || tensor >= static_cast<TensorIndex>(tensors.size()))
            return "an unknown tensor is alive at the end";
        storages[storageOf(tensor)].aliveAtEnd = true;
    }
    std::string wrong = Checker(*this).run();
    if (wrong.empty()) findUnseen();
    return wrong;
}

/// Collectives go on with their tensors after they have returned, and write them without saying so.
/// What is read as it was made empty has been filled by code that calls no op (through numpy, or by
/// C++ that has its address); so has what was filled after its op. Where that has not changed
/// since, ops that read it may run again. Parameters that are released within a step are those that
/// FSDP has gathered: it takes their bytes away, whatever still refers to them, and a plan cannot
/// put that off. Of a quantized tensor, scale and zero point are in no storage.
void TrainingGraph::findUnseen() {
    for (Storage& storage : storages) storage.unseen = storage.quantized || storage.writtenUnseen;
    if (recorded) {
        for (const Event& event : events)
            if (event.kind == Event::Kind::Release && storages[event.index].isConstant())
                storages[event.index].unseen |= storages[event.index].isParameter();
        for (const Op& op : ops) {
            const bool collective = isCollective(op.name);
            for (const Use& use : op.inputs) {
                Storage& storage = storages[storageOf(use.tensor)];
                storage.unseen |=
                    collective || (use.version == 0 && !op.viewOnly && !storage.isConstant() &&
                                   leavesEmpty(ops[storage.creator].name) &&
                                   !writesTo(op, storageOf(use.tensor)));
            }
            for (const OpOutput& output : op.outputs)
                storages[storageOf(output.tensor)].unseen |= collective;
        }
    }
    for (Op& op : ops) {
        const auto unseen = [&](TensorIndex tensor) { return storages[storageOf(tensor)].unseen; };
        op.once =
            !op.viewOnly &&
            (op.opaque ||
             std::any_of(op.inputs.begin(), op.inputs.end(),
                         [&](const Use& use) { return unseen(use.tensor); }) ||
             std::any_of(op.outputs.begin(), op.outputs.end(), [&](const OpOutput& output) {
                 return unseen(output.tensor) || storages[storageOf(output.tensor)].filledUnseen;
             }));
    }
}

Nanoseconds TrainingGraph::totalTime() const {
    Nanoseconds total;
    for (const Op& op : ops) total += op.time;
    return total;
}

Bytes TrainingGraph::constantPeak() const {
    Bytes now, most;
    for (const Event& event : events) {
        if (event.kind == Event::Kind::Compute || !storages[event.index].isConstant()) continue;
        if (event.kind == Event::Kind::Constant)
            now += storages[event.index].bytes;
        else
            now -= storages[event.index].bytes;
        most = std::max(most, now);
    }
    return most;
}

Bytes TrainingGraph::constantBytes() const {
    Bytes total;
    for (const Storage& storage : storages)
        if (storage.isConstant()) total += storage.bytes;
    return total;
}

namespace {

// Storages that must be resident while `op` runs, constants left out, each once.
Bytes operandBytes(const TrainingGraph& graph, const Op& op) {
    std::set<StorageIndex> seen;
    Bytes total = op.workspace;
    auto add = [&](StorageIndex s) {
        if (!graph.storages[s].isConstant() && seen.insert(s).second)
            total += graph.storages[s].bytes;
    };
    for (const Use& use : op.inputs) add(graph.storageOf(use.tensor));
    for (const OpOutput& output : op.outputs) add(graph.storageOf(output.tensor));
    return total;
}

}  // namespace

Bytes TrainingGraph::bottleneckBytes() const {
    Bytes most;
    for (const Op& op : ops) most = std::max(most, operandBytes(*this, op));
    return most;
}

Bytes TrainingGraph::floorBytes() const {
    // The last op, in captured order, that cannot move and needs the constant.
    std::vector<OpIndex> lastNeed(storages.size(), kNone);
    for (StorageIndex s = 0; s < static_cast<StorageIndex>(storages.size()); ++s) {
        const Storage& storage = storages[s];
        for (const OpIndex reader : storage.readers)
            if (!ops[reader].viewOnly) lastNeed[s] = std::max(lastNeed[s], reader);
        for (const OpIndex writer : storage.writers) lastNeed[s] = std::max(lastNeed[s], writer);
        if (storage.aliveAtEnd) lastNeed[s] = static_cast<OpIndex>(ops.size());
    }
    std::vector<std::vector<StorageIndex>> endsAfter(ops.size() + 1);
    Bytes constants, floor;
    for (const Event& event : events) {
        const std::int32_t i = event.index;
        if (event.kind == Event::Kind::Constant && lastNeed[i] != kNone) {
            constants += storages[i].bytes;
            endsAfter[lastNeed[i]].push_back(i);
        } else if (event.kind == Event::Kind::Compute) {
            if (!ops[i].viewOnly) floor = std::max(floor, constants + operandBytes(*this, ops[i]));
            for (const StorageIndex s : endsAfter[i]) constants -= storages[s].bytes;
        }
    }
    Bytes finals;
    for (const Storage& storage : storages)
        if (storage.aliveAtEnd) finals += storage.bytes;
    return std::max(floor, finals);
}

std::string TrainingGraph::fingerprint() const {
    Digest digest;
    digest.add("highwater-graph-1");
    digest.add(static_cast<std::int64_t>(storages.size()));
    for (const Storage& storage : storages) {
        digest.add(storage.bytes.count());
        digest.add(storage.creator);
    }
    for (const Tensor& tensor : tensors) digest.add(tensor.storage);
    digest.add(static_cast<std::int64_t>(ops.size()));
    for (const Op& op : ops) {
        digest.add(op.name);
        digest.add(static_cast<std::int64_t>(op.inputs.size()));
        for (const Use& use : op.inputs) digest.add(use.tensor), digest.add(use.version);
        digest.add(static_cast<std::int64_t>(op.outputs.size()));
        for (const OpOutput& output : op.outputs)
            digest.add(output.tensor), digest.add(output.makesStorage);
        digest.add(static_cast<std::int64_t>(op.writes.size()));
        for (const Write& write : op.writes)
            digest.add(write.storage), digest.add(write.versionBefore);
    }
    for (const TensorIndex tensor : finalTensors) digest.add(tensor);
    return "sha256:" + digest.hex();
}

}  // namespace hw::core
