// SPDX-License-Identifier: MIT
// The one replay of a schedule: the only code that carries out the accounting rules. The judge runs
// it alone; everything else that wants to know what a schedule does listens to it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/units.h"
#include "core/graph/captured_order.h"
#include "core/graph/training_graph.h"
#include "core/memory/defined_tensors.h"
#include "core/plan/codec.h"
#include "core/plan/plan.h"

namespace hw::core {

/// What stands in for a storage between two actions: its encoded form, or its copy in host memory.
struct StandIn {
    Bytes bytes;             // on the device
    std::string_view codec;  // of the schedule's action; empty in host memory
    ActionKind by = ActionKind::Encode;
};

/// Where a replay stands.
class ReplayState {
public:
    const TrainingGraph& graph() const { return graph_; }
    bool resident(StorageIndex storage) const { return resident_[storage]; }
    /// Null while nothing stands in for the storage.
    const StandIn* standIn(StorageIndex storage) const;
    bool isOffloaded(StorageIndex storage) const {
        const StandIn* const form = standIn(storage);
        return form != nullptr && form->by == ActionKind::Offload;
    }
    /// Whether running `action` now makes its result `output` a resident storage: rule 4 drops what
    /// is resident already or not asked for right after the op.
    bool holds(const Action& action, std::size_t output) const {
        const OpOutput& made = graph_.ops[action.target].outputs[output];
        return made.makesStorage && !resident_[graph_.storageOf(made.tensor)] &&
               action.wants(output);
    }

    std::size_t action() const { return action_; }  // that runs now, or comes next
    Nanoseconds begin() const { return begin_; }    // of the action
    Nanoseconds time() const { return time_; }
    Nanoseconds waited() const { return waited_; }  // for copies, so far
    Bytes hostLive() const { return hostLive_; }    // copies in host memory
    Bytes hostPeak() const { return hostPeak_; }
    Bytes offloadedBytes() const { return offloaded_; }  // copied out, so far
    Bytes live() const { return live_; }                 // everything resident, encoded forms too
    Bytes during() const { return during_; }  // highest while the action runs; final when it ends
    Bytes peak() const { return peak_; }
    std::size_t peakAction() const { return peakAction_; }  // the first that reaches the peak
    std::int64_t recomputedOps() const { return recomputedOps_; }
    const std::string& why() const { return why_; }  // the schedule cannot go on; empty: it can

protected:
    explicit ReplayState(const TrainingGraph& graph);

    bool targetExists(const Action& action) {
        const std::size_t limit = action.runsOp() ? graph_.ops.size() : graph_.storages.size();
        if (action.target >= 0 && static_cast<std::size_t>(action.target) < limit) return true;
        return noTarget(action);
    }
    template <bool kAgain>
    bool mayRun(const Action& action);
    bool mayFree(StorageIndex storage);
    bool mayEncode(const Action& action);
    bool mayDecode(StorageIndex storage);
    bool mayOffload(StorageIndex storage);
    bool mayPrefetch(StorageIndex storage);
    void waitUntil(Nanoseconds copied);
    void awaitArrival(StorageIndex storage);
    void awaitOperands(const Op& op);
    void awaitAllArrivals();
    void dropHostCopy(StorageIndex storage);
    bool madeTwice(StorageIndex storage);
    bool complete();
    bool fail(std::string why);

    /// Looks at no bytes.
    static bool makesViews(const Op& op) { return op.viewOnly && !op.outputs.empty(); }

    template <bool kChecked>
    void place(StorageIndex storage);
    template <bool kChecked>
    void remove(StorageIndex storage);

    const TrainingGraph& graph_;
    CapturedOrder order_;
    std::vector<std::uint8_t> resident_;  // by storage; bytes: read and written at every action
    std::map<StorageIndex, StandIn> standIns_;
    std::map<StorageIndex, Nanoseconds> leaving_, arriving_;  // when their copies are through
    Nanoseconds outFree_, inFree_, waited_;                   // the channels of the link
    Bytes hostLive_, hostPeak_, offloaded_;
    std::size_t fixedDone_ = 0, constantsPlaced_ = 0;
    Bytes live_, during_, peak_;
    Nanoseconds begin_, time_;
    std::size_t action_ = 0, peakAction_ = 0;
    std::int64_t recomputedOps_ = 0;
    std::string why_;

    // What only the checks ask for.
    std::vector<std::int32_t> version_;  // by storage; an encoded form keeps it
    DefinedTensors defined_;
    std::vector<std::uint8_t> computed_;  // by op
    std::size_t computedCount_ = 0;

private:
    // In words, out of line: the checks are the judge's inner loop.
    bool noTarget(const Action& action);
    bool outOfOrder(OpIndex index);
    bool misses(OpIndex index, const Use& use);
    bool cannotWrite(OpIndex index, const Write& write);
    bool mayRecompute(const Action& action);
    bool notAgain(const Action& action);
    std::string opName(OpIndex index) const;
};

inline bool ReplayState::mayRecompute(const Action& action) {
    const Op& op = graph_.ops[action.target];
    bool may = computed_[action.target] && !op.once;
    for (const std::int32_t output : action.outputs)
        may &= output >= 0 && static_cast<std::size_t>(output) < op.outputs.size();
    for (const Write& write : op.writes) may &= !graph_.storages[write.storage].isConstant();
    return may || notAgain(action);
}

template <bool kAgain>
bool ReplayState::mayRun(const Action& action) {
    const OpIndex index = action.target;
    const Op& op = graph_.ops[index];
    if constexpr (kAgain) {
        if (!mayRecompute(action)) return false;
    } else if (computed_[index] || (!op.viewOnly && order_.fixedOps[fixedDone_] != index)) {
        return outOfOrder(index);
    }
    for (const Use& use : op.inputs) {
        const StorageIndex s = graph_.storageOf(use.tensor);
        if (!resident_[s] || !defined_.has(use.tensor) || version_[s] != use.version)
            return misses(index, use);
    }
    for (const Write& write : op.writes)
        if (!resident_[write.storage] || version_[write.storage] != write.versionBefore ||
            (!leaving_.empty() && leaving_.count(write.storage) > 0))
            return cannotWrite(index, write);
    return true;
}

// Makes a storage resident, with the tensors that come with it and no op makes.
template <bool kChecked>
void ReplayState::place(StorageIndex s) {
    resident_[s] = true;
    live_ += graph_.storages[s].bytes;
    if constexpr (kChecked) defined_.begin(s);
}

template <bool kChecked>
void ReplayState::remove(StorageIndex s) {
    resident_[s] = false;
    live_ -= graph_.storages[s].bytes;
    if constexpr (kChecked) defined_.forget(s);
}

/// What a replay tells. A listener derives from it and hides what it wants to hear; calls are bound
/// when compiled, so that what is not heard costs nothing.
struct ReplayListener {
    /// Before the action changes anything; its target exists, all else is still to be checked.
    void begins(const ReplayState&, const Action&) {}
    /// The op is about to run on inputs that are as they should be; nothing has changed yet.
    void runs(const ReplayState&, const Action&) {}
    /// Result `output` of the running op is a resident storage now.
    void made(const ReplayState&, const Action&, StorageIndex, std::size_t /*output*/) {}
    /// A constant has come into being: at the start, before any action, or after the running op.
    void constant(const ReplayState&, StorageIndex) {}
    void freed(const ReplayState&, StorageIndex) {}
    void freedStandIn(const ReplayState&, StorageIndex, const StandIn&) {}
    /// A stand-in has taken the storage's place, and the other way round. Both are resident while
    /// the action runs.
    void replaced(const ReplayState&, StorageIndex, const StandIn&) {}
    void restored(const ReplayState&, StorageIndex, const StandIn&) {}
    /// The action is done.
    void ends(const ReplayState&, const Action&) {}
};

/// Replays a schedule by the accounting rules: captured order of first computations (views may come
/// later), versions of inputs, duplicates of recomputed outputs charged while the op runs,
/// constants at their place, final tensors resident and defined at the end. The first action that
/// is impossible stops it, with why() and action(). `kChecked` is false only for schedules that are
/// known to be valid, which it takes on trust. Graph, listener and actions must outlive it.
template <class Listener = ReplayListener, bool kChecked = true>
class Replay : public ReplayState {
public:
    Replay(const TrainingGraph& graph, Listener& listener)
        : ReplayState(graph), listener_(listener) {
        if constexpr (kChecked) {
            version_.assign(graph.storages.size(), 0);
            defined_ = DefinedTensors(graph);
            computed_.assign(graph.ops.size(), false);
        }
        placeConstants();
        peak_ = live_;
    }

    /// The whole schedule and the checks of its end; false when it is not valid.
    bool run(const Schedule& schedule) {
        for (const Action& action : schedule)
            if (!step(action)) return false;
        if (!arriving_.empty()) awaitAllArrivals();
        return !kChecked || complete();
    }

    /// The next action; false when it is impossible: then why() and action() tell, nothing else.
    bool step(const Action& action) {
        begin_ = time_;
        during_ = live_;
        if (kChecked && !targetExists(action)) return false;
        listener_.begins(*this, action);
        if (!carryOut(action)) return false;
        if (during_ > peak_) peak_ = during_, peakAction_ = action_;
        listener_.ends(*this, action);
        ++action_;
        return true;
    }

private:
    bool carryOut(const Action& action) {
        switch (action.kind) {
            case ActionKind::Compute:
                return run<false>(action);
            case ActionKind::Recompute:
                return run<true>(action);
            case ActionKind::Free:
                return free(action.target);
            case ActionKind::Encode:
                return encode(action);
            case ActionKind::Decode:
                return decode(action.target);
            case ActionKind::Offload:
                return offload(action.target);
            case ActionKind::Prefetch:
                return prefetch(action.target);
        }
        return fail("unknown action");
    }

    template <bool kAgain>
    bool run(const Action& action) {
        if (kChecked && !mayRun<kAgain>(action)) return false;
        const Op& op = graph_.ops[action.target];
        if (!arriving_.empty() && !makesViews(op)) awaitOperands(op);
        listener_.runs(*this, action);
        time_ += op.time;
        Bytes during = live_ + op.workspace;  // and all outputs, whether they stay or not
        if constexpr (kChecked)
            for (const Write& write : op.writes) ++version_[write.storage];
        for (std::size_t j = 0; j < op.outputs.size(); ++j) {
            const OpOutput& output = op.outputs[j];
            const StorageIndex s = graph_.storageOf(output.tensor);
            if (output.makesStorage) {
                during += graph_.storages[s].bytes;
                if (resident_[s] || (kAgain && !action.wants(j))) continue;
                if (kChecked && !standIns_.empty() && isOffloaded(s)) return madeTwice(s);
                place<kChecked>(s);
                if constexpr (kChecked) version_[s] = 0, defined_.add(output.tensor);
                listener_.made(*this, action, s, j);
            } else if (kChecked && resident_[s] && (!kAgain || action.wants(j))) {
                defined_.add(output.tensor);
            }
        }
        during_ = during;
        if constexpr (kAgain) {
            ++recomputedOps_;
            return true;
        }
        if constexpr (kChecked) computed_[action.target] = true, ++computedCount_;
        if (op.viewOnly) return true;
        ++fixedDone_;
        placeConstants();
        return true;
    }

    void placeConstants() {
        const std::vector<ConstantStart>& starts = order_.constants;
        for (; constantsPlaced_ < starts.size() &&
               static_cast<std::size_t>(starts[constantsPlaced_].fixedOpsBefore) <= fixedDone_;
             ++constantsPlaced_) {
            place<kChecked>(starts[constantsPlaced_].storage);
            listener_.constant(*this, starts[constantsPlaced_].storage);
        }
        during_ = std::max(during_, live_);
    }

    bool free(StorageIndex s) {
        if (!standIns_.empty() && standIn(s)) {
            const StandIn gone = standIns_.extract(s).mapped();
            live_ -= gone.bytes;
            if (gone.by == ActionKind::Offload) {
                dropHostCopy(s);
                if (kChecked && !resident_[s]) defined_.forget(s);
            }
            listener_.freedStandIn(*this, s, gone);
            return true;
        }
        if (kChecked && !mayFree(s)) return false;
        if (!arriving_.empty()) awaitArrival(s);
        if (const auto copy = leaving_.find(s); copy != leaving_.end()) return leave(copy);
        remove<kChecked>(s);
        listener_.freed(*this, s);
        return true;
    }

    // Its bytes go as soon as they are in host memory; its tensors stay.
    bool leave(std::map<StorageIndex, Nanoseconds>::iterator copy) {
        const StorageIndex s = copy->first;
        waitUntil(copy->second);
        leaving_.erase(copy);
        remove<false>(s);
        const StandIn form{Bytes(0), {}, ActionKind::Offload};
        standIns_[s] = form;
        listener_.replaced(*this, s, form);
        return true;
    }
    bool offload(StorageIndex s) {
        if (kChecked && !mayOffload(s)) return false;
        const Bytes bytes = graph_.storages[s].bytes;
        if (!arriving_.empty()) awaitArrival(s);
        outFree_ = std::max(outFree_, time_) + graph_.link.outTime(bytes);
        leaving_[s] = outFree_;
        offloaded_ += bytes;
        hostLive_ += bytes;
        hostPeak_ = std::max(hostPeak_, hostLive_);
        return true;
    }
    bool prefetch(StorageIndex s) {
        if (kChecked && !mayPrefetch(s)) return false;
        const StandIn form = standIns_.extract(s).mapped();
        inFree_ = std::max(inFree_, time_) + graph_.link.inTime(graph_.storages[s].bytes);
        arriving_[s] = inFree_;
        dropHostCopy(s);
        place<false>(s);
        during_ = live_;
        listener_.restored(*this, s, form);
        return true;
    }

    // While a codec runs both forms are resident; views do not survive it.
    bool encode(const Action& action) {
        if (kChecked && !mayEncode(action)) return false;
        const StorageIndex s = action.target;
        if (!arriving_.empty()) awaitArrival(s);
        const StandIn form{action.encoding->bytes, action.encoding->codec};
        during_ = live_ + form.bytes;
        time_ += codecTime(form.codec, graph_.storages[s].bytes, form.bytes);
        remove<kChecked>(s);
        live_ += form.bytes;
        standIns_[s] = form;
        listener_.replaced(*this, s, form);
        return true;
    }
    bool decode(StorageIndex s) {
        if (kChecked && !mayDecode(s)) return false;
        const StandIn form = standIns_.extract(s).mapped();
        during_ = live_ + graph_.storages[s].bytes;
        time_ += codecTime(form.codec, graph_.storages[s].bytes, form.bytes);
        live_ -= form.bytes;
        place<kChecked>(s);
        if constexpr (kChecked) defined_.add(graph_.storages[s].tensors.front());
        listener_.restored(*this, s, form);
        return true;
    }

    Listener& listener_;
};

/// Tells `listener` what a schedule does that evaluate() has called valid.
template <class Listener>
void replayValid(const TrainingGraph& graph, const Schedule& schedule, Listener& listener) {
    Replay<Listener, false>(graph, listener).run(schedule);
}

}  // namespace hw::core
