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
#include "core/plan/plan.h"

namespace hw::core {

/// What stands in for a storage from its encoding to its decoding.
struct EncodedForm {
    Bytes bytes;
    std::string_view codec;  // of the schedule's action
};

/// Where a replay stands.
class ReplayState {
public:
    const TrainingGraph& graph() const { return graph_; }
    bool resident(StorageIndex storage) const { return resident_[storage]; }
    /// Null while there is no encoded form of the storage.
    const EncodedForm* encodedForm(StorageIndex storage) const;
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
    Bytes live() const { return live_; }      // everything resident, encoded forms too
    Bytes during() const { return during_; }  // highest while the action runs
    Bytes peak() const { return peak_; }
    std::size_t peakAction() const { return peakAction_; }  // the first that reaches the peak
    std::int64_t recomputedOps() const { return recomputedOps_; }
    const std::string& why() const { return why_; }  // the schedule cannot go on; empty: it can

protected:
    explicit ReplayState(const TrainingGraph& graph);

    bool fail(std::string why);
    bool targetExists(const Action& action);
    bool mayRun(const Action& action);
    bool mayEncode(const Action& action);
    bool mayDecode(StorageIndex storage);
    bool complete();

    void chargeOp(const Op& op);
    void place(StorageIndex storage, std::int32_t version);
    void remove(StorageIndex storage);
    EncodedForm exchangeForEncoded(const Action& action);
    EncodedForm exchangeForPlain(StorageIndex storage);

    const TrainingGraph& graph_;
    CapturedOrder order_;
    std::vector<bool> resident_;
    std::vector<std::int32_t> version_;
    std::vector<bool> defined_;   // by tensor
    std::vector<bool> computed_;  // by op
    std::map<StorageIndex, EncodedForm> encoded_;
    std::size_t computedCount_ = 0, fixedDone_ = 0, constantsPlaced_ = 0;
    Bytes live_, during_, peak_;
    Nanoseconds begin_, time_;
    std::size_t action_ = 0, peakAction_ = 0;
    std::int64_t recomputedOps_ = 0;
    std::string why_;

private:
    bool mayCompute(OpIndex index);
    bool mayRecompute(const Action& action);
    std::string opName(OpIndex index) const;
};

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
    void freedEncoded(const ReplayState&, StorageIndex, const EncodedForm&) {}
    /// The encoded form has taken the storage's place, and the other way round. Both are resident
    /// while the action runs.
    void encoded(const ReplayState&, StorageIndex, const EncodedForm&) {}
    void decoded(const ReplayState&, StorageIndex, const EncodedForm&) {}
    /// The action is done.
    void ends(const ReplayState&, const Action&) {}
};

/// Replays a schedule by the accounting rules: captured order of first computations (views may come
/// later), versions of inputs, duplicates of recomputed outputs charged while the op runs,
/// constants at their place, final tensors resident and defined at the end. The first action that
/// is impossible stops it, with why() and action(). Graph, listener and actions must outlive it.
template <class Listener = ReplayListener>
class Replay : public ReplayState {
public:
    Replay(const TrainingGraph& graph, Listener& listener)
        : ReplayState(graph), listener_(listener) {
        placeConstants();
        peak_ = live_;
    }

    /// The whole schedule and the checks of its end; false when it is not valid.
    bool run(const Schedule& schedule) {
        for (const Action& action : schedule)
            if (!step(action)) return false;
        return complete();
    }

    /// The next action; false when it is impossible. After that, nothing may be asked for but
    /// why().
    bool step(const Action& action) {
        begin_ = time_;
        during_ = live_;
        if (!targetExists(action)) return false;
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
            case ActionKind::Recompute:
                return runOp(action);
            case ActionKind::Free:
                return free(action.target);
            case ActionKind::Encode:
                if (!mayEncode(action)) return false;
                listener_.encoded(*this, action.target, exchangeForEncoded(action));
                return true;
            case ActionKind::Decode:
                if (!mayDecode(action.target)) return false;
                listener_.decoded(*this, action.target, exchangeForPlain(action.target));
                return true;
        }
        return fail("unknown action");
    }

    bool runOp(const Action& action) {
        if (!mayRun(action)) return false;
        const Op& op = graph_.ops[action.target];
        listener_.runs(*this, action);
        chargeOp(op);
        for (std::size_t j = 0; j < op.outputs.size(); ++j) {
            const OpOutput& output = op.outputs[j];
            const StorageIndex s = graph_.storageOf(output.tensor);
            if (resident_[s] == output.makesStorage || !action.wants(j)) continue;
            if (output.makesStorage) place(s, 0);
            defined_[output.tensor] = true;
            if (output.makesStorage) listener_.made(*this, action, s, j);
        }
        if (action.recomputes()) return true;
        computed_[action.target] = true;
        ++computedCount_;
        if (op.viewOnly()) return true;
        ++fixedDone_;
        placeConstants();
        return true;
    }

    void placeConstants() {
        const std::vector<ConstantStart>& starts = order_.constants;
        for (; constantsPlaced_ < starts.size() &&
               static_cast<std::size_t>(starts[constantsPlaced_].fixedOpsBefore) <= fixedDone_;
             ++constantsPlaced_) {
            place(starts[constantsPlaced_].storage, 0);
            listener_.constant(*this, starts[constantsPlaced_].storage);
        }
        during_ = std::max(during_, live_);
    }

    bool free(StorageIndex s) {
        if (const auto form = encoded_.find(s); !encoded_.empty() && form != encoded_.end()) {
            const EncodedForm gone = form->second;
            live_ -= gone.bytes;
            encoded_.erase(form);
            listener_.freedEncoded(*this, s, gone);
            return true;
        }
        if (!resident_[s])
            return fail("storage " + std::to_string(s) + " is freed while not resident");
        remove(s);
        listener_.freed(*this, s);
        return true;
    }

    Listener& listener_;
};

}  // namespace hw::core
