// SPDX-License-Identifier: MIT
#include "core/memory/evaluate.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "core/plan/codec.h"

namespace hw::core {
namespace {

// Replays a schedule action by action. The state is what the accounting rules talk about: which
// storages are resident, at which version, and which tensors on them are defined.
class Replay {
public:
    explicit Replay(const TrainingGraph& graph)
        : graph_(graph),
          resident_(graph.storages.size(), false),
          encoded_(graph.storages.size(), Bytes(-1)),
          version_(graph.storages.size(), 0),
          defined_(graph.tensors.size(), false),
          computed_(graph.ops.size(), false) {
        OpIndex fixedOps = 0;  // ops before the constant that keep their place
        for (const Event& event : graph.events) {
            if (event.kind == Event::Kind::Constant)
                arrivals_.push_back({fixedOps, event.index});
            else if (event.kind == Event::Kind::Compute && !graph.ops[event.index].viewOnly()) {
                ++fixedOps;
                fixedOrder_.push_back(event.index);
            }
        }
        arrive();
    }

    Evaluation run(const Schedule& schedule, std::size_t end, std::vector<MemoryPoint>* curve) {
        for (std::size_t i = 0; i < end; ++i) {
            const Nanoseconds begin = result_.time;
            action_ = i;
            during_ = live_;
            if (!apply(schedule[i])) {
                result_.action = i;
                return result_;
            }
            if (during_ > result_.peak) result_.peak = during_, result_.peakAction = i;
            if (curve) curve->push_back({begin, result_.time, during_, live_});
        }
        if (end == schedule.size()) finish();
        return result_;
    }

    const std::vector<bool>& resident() const { return resident_; }

private:
    bool fail(std::string why) {
        result_.why = std::move(why);
        return false;
    }

    bool apply(const Action& action) {
        const bool onOp =
            action.kind == ActionKind::Compute || action.kind == ActionKind::Recompute;
        const std::size_t limit = onOp ? graph_.ops.size() : graph_.storages.size();
        if (action.target < 0 || static_cast<std::size_t>(action.target) >= limit)
            return fail((onOp ? "there is no op " : "there is no storage ") +
                        std::to_string(action.target));
        switch (action.kind) {
            case ActionKind::Compute:
                return compute(action.target);
            case ActionKind::Recompute:
                return recompute(action.target, action.outputs);
            case ActionKind::Free:
                return free(action.target);
            case ActionKind::Encode:
                return encode(action);
            case ActionKind::Decode:
                return decode(action.target);
        }
        return fail("unknown action");
    }

    bool compute(OpIndex index) {
        const Op& op = graph_.ops[index];
        if (computed_[index]) return fail(opName(index) + " is computed for the first time twice");
        if (!op.viewOnly() && fixedOrder_[fixedDone_] != index)
            return fail(opName(index) + " is computed out of order, expected " +
                        opName(fixedOrder_[fixedDone_]));
        if (!execute(index, [](std::size_t) { return true; })) return false;
        computed_[index] = true;
        ++computedCount_;
        if (!op.viewOnly()) {
            ++fixedDone_;
            arrive();
        }
        return true;
    }

    bool recompute(OpIndex index, const std::vector<std::int32_t>& wanted) {
        const Op& op = graph_.ops[index];
        if (!computed_[index])
            return fail(opName(index) + " is recomputed before its first computation");
        for (const std::int32_t output : wanted)
            if (output < 0 || static_cast<std::size_t>(output) >= op.outputs.size())
                return fail(opName(index) + " has no output " + std::to_string(output));
        for (const Write& write : op.writes)
            if (graph_.storages[write.storage].isConstant())
                return fail(opName(index) + " writes a constant and must not be run again");
        ++result_.recomputedOps;
        return execute(index, [&](std::size_t output) {
            return std::find(wanted.begin(), wanted.end(), static_cast<std::int32_t>(output)) !=
                   wanted.end();
        });
    }

    template <class Keep>
    bool execute(OpIndex index, Keep keep) {
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
                return fail(opName(index) + " cannot write storage " +
                            std::to_string(write.storage));

        during_ = live_ + op.workspace;
        for (const OpOutput& output : op.outputs)
            if (output.makesStorage)
                during_ += graph_.storages[graph_.storageOf(output.tensor)].bytes;
        result_.time += op.time;

        for (const Write& write : op.writes) ++version_[write.storage];
        for (std::size_t j = 0; j < op.outputs.size(); ++j) {
            const OpOutput& output = op.outputs[j];
            const StorageIndex s = graph_.storageOf(output.tensor);
            if (!output.makesStorage) {
                if (resident_[s] && keep(j)) defined_[output.tensor] = true;
            } else if (!resident_[s] && keep(j)) {
                place(s, 0);
                defined_[output.tensor] = true;
            }
        }
        return true;
    }

    bool free(StorageIndex s) {
        if (encoded_[s] >= Bytes(0)) {
            live_ -= encoded_[s];
            encoded_[s] = Bytes(-1);
            return true;
        }
        if (!resident_[s])
            return fail("storage " + std::to_string(s) + " is freed while not resident");
        resident_[s] = false;
        live_ -= graph_.storages[s].bytes;
        for (const TensorIndex tensor : graph_.storages[s].tensors) defined_[tensor] = false;
        return true;
    }

    // While a codec runs both forms are resident; views do not survive it.
    bool encode(const Action& action) {
        const StorageIndex s = action.target;
        const Bytes bytes = action.encodedBytes;
        if (!resident_[s])
            return fail("storage " + std::to_string(s) + " is encoded while not resident");
        if (bytes < Bytes(0)) return fail("an encoded form has a negative size");
        during_ = live_ + bytes;
        if (!free(s)) return false;
        encoded_[s] = bytes;
        codecs_[s] = action.codec;
        result_.time += codecTime(action.codec, graph_.storages[s].bytes, bytes);
        live_ += bytes;
        return true;
    }
    bool decode(StorageIndex s) {
        if (encoded_[s] < Bytes(0))
            return fail("storage " + std::to_string(s) + " is decoded but not encoded");
        during_ = live_ + graph_.storages[s].bytes;
        result_.time += codecTime(codecs_[s], graph_.storages[s].bytes, encoded_[s]);
        live_ -= encoded_[s];
        encoded_[s] = Bytes(-1);
        place(s, version_[s]);
        defined_[graph_.storages[s].tensors.front()] = true;
        return true;
    }

    // Makes a storage resident, with the tensors that come with it and no op makes.
    void place(StorageIndex s, std::int32_t version) {
        resident_[s] = true;
        version_[s] = version;
        live_ += graph_.storages[s].bytes;
        for (const TensorIndex tensor : graph_.storages[s].tensors)
            if (graph_.tensors[tensor].creator == kNone) defined_[tensor] = true;
    }

    void arrive() {
        for (; arrived_ < arrivals_.size() && arrivals_[arrived_].first <= fixedDone_; ++arrived_)
            place(arrivals_[arrived_].second, 0);
        during_ = std::max(during_, live_);
        if (live_ > result_.peak) result_.peak = live_, result_.peakAction = action_;
    }

    void finish() {
        if (computedCount_ != graph_.ops.size()) {
            const auto missing =
                std::find(computed_.begin(), computed_.end(), false) - computed_.begin();
            fail(opName(static_cast<OpIndex>(missing)) + " is never computed");
            result_.action = action_ + 1;
            return;
        }
        for (const TensorIndex tensor : graph_.finalTensors) {
            const StorageIndex s = graph_.storageOf(tensor);
            if (resident_[s] && defined_[tensor] &&
                version_[s] == static_cast<std::int32_t>(graph_.storages[s].writers.size()))
                continue;
            fail("tensor " + std::to_string(tensor) + " of storage " + std::to_string(s) +
                 " must be there at the end and is not");
            result_.action = action_ + 1;
            return;
        }
        result_.valid = true;
    }

    std::string opName(OpIndex index) const {
        return "op " + std::to_string(index) + " (" + graph_.ops[index].name + ")";
    }

    const TrainingGraph& graph_;
    std::vector<bool> resident_;
    std::vector<Bytes> encoded_;  // bytes of the encoded form, -1 when there is none
    std::map<StorageIndex, std::string_view> codecs_;  // of encoded forms; the schedule's names
    std::vector<std::int32_t> version_;
    std::vector<bool> defined_;
    std::vector<bool> computed_;
    std::size_t computedCount_ = 0;
    std::vector<OpIndex> fixedOrder_;  // ops that keep the captured order
    OpIndex fixedDone_ = 0;
    std::vector<std::pair<OpIndex, StorageIndex>> arrivals_;  // constants: fixed ops before them
    std::size_t arrived_ = 0;
    Bytes live_, during_;
    std::size_t action_ = 0;
    Evaluation result_;
};

}  // namespace

Evaluation evaluate(const TrainingGraph& graph, const Schedule& schedule) {
    return Replay(graph).run(schedule, schedule.size(), nullptr);
}

Evaluation evaluate(const TrainingGraph& graph, const Schedule& schedule,
                    std::vector<MemoryPoint>& curve) {
    curve.clear();
    curve.reserve(schedule.size());
    return Replay(graph).run(schedule, schedule.size(), &curve);
}

std::vector<StorageIndex> residentDuring(const TrainingGraph& graph, const Schedule& schedule,
                                         std::size_t action) {
    Replay replay(graph);
    replay.run(schedule, std::min(action, schedule.size()), nullptr);
    std::vector<bool> resident = replay.resident();
    if (action < schedule.size() && (schedule[action].kind == ActionKind::Compute ||
                                     schedule[action].kind == ActionKind::Recompute))
        for (const OpOutput& output : graph.ops[schedule[action].target].outputs)
            if (output.makesStorage) resident[graph.storageOf(output.tensor)] = true;
    std::vector<StorageIndex> list;
    for (StorageIndex s = 0; s < static_cast<StorageIndex>(resident.size()); ++s)
        if (resident[s]) list.push_back(s);
    return list;
}

Schedule baselineSchedule(const TrainingGraph& graph) {
    Schedule schedule;
    schedule.reserve(graph.events.size());
    for (const Event& event : graph.events) {
        if (event.kind == Event::Kind::Compute) schedule.push_back(Action::compute(event.index));
        if (event.kind == Event::Kind::Release) schedule.push_back(Action::free(event.index));
    }
    return schedule;
}

}  // namespace hw::core
