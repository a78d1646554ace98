// SPDX-License-Identifier: MIT
#include <algorithm>

#include "core/memory/defer_frees.h"
#include "core/memory/restore_early.h"
#include "core/plan/codec.h"
#include "live/compile/placement.h"

namespace hw::live {

namespace wire = profiler::wire;
namespace {

using namespace core;
using wire::LiveAction;

constexpr Bytes kSmallConstant(256);

std::optional<wire::LiveCodec> codecOf(std::string_view name) {
    if (name == kMaskCodec) return wire::LiveCodec::Mask;
    if (name == kSignCodec) return wire::LiveCodec::Sign;
    if (name == kIndexCodec) return wire::LiveCodec::Index;
    return std::nullopt;
}

/// Where in the program's own order each action of a schedule belongs.
class Placer {
public:
    Placer(const TrainingGraph& graph, const Plan& plan)
        : graph_(graph),
          schedule_(deferFrees(graph, restoreEarly(graph, plan.schedule))),
          readUntil_(graph.storages.size(), kNone),
          life_(graph.storages.size()) {
        for (auto* const lists : {&placed_.before, &placed_.after})
            lists->resize(graph.ops.size() + 1);
        placed_.gone.resize(graph.ops.size() + 1);
        draft_.releasedAt.assign(graph.storages.size(), kStepEnd);
        draft_.expiry.assign(graph.storages.size(), kStepEnd);
    }

    Result<DraftPlacement> run() {
        readEvents();
        for (const Action& action : schedule_)
            if (Status done = place(action); !done) return done.error();
        closeAll();
        return std::move(draft_);
    }

private:
    /// What the program and the plan do with a storage at the moment.
    struct Life {
        bool resident = false;   // in the plan
        bool dropped = false;    // while the program holds it
        bool held = false;       // by the plan, after the program has let go of it
        bool encoded = false;    // the plan has an encoded form in its place
        bool signs = false;      // that gives, or has given, signs only
        bool leaving = false;    // a copy in host memory has been begun
        bool offloaded = false;  // and stands in its place
        OpIndex since = kNone;   // the op at which it became resident
        std::pair<OpIndex, std::size_t> drop{0, 0};  // where in after or before
        bool dropBefore = false;
    };

    void readEvents() {
        OpIndex ops = 0;
        for (const Event& event : graph_.events) {
            if (event.kind == Event::Kind::Compute) ++ops;
            if (event.kind != Event::Kind::Release) continue;
            draft_.releasedAt[event.index] = ops;
            if (!graph_.storages[event.index].isConstant())
                placed_.gone[ops].push_back(event.index);
        }
        for (StorageIndex s = 0; s < static_cast<StorageIndex>(life_.size()); ++s) {
            const bool constant = graph_.storages[s].isConstant();
            life_[s].resident = constant;
            // The plan holds constants until the op before which the program has let go of them.
            if (draft_.releasedAt[s] != kStepEnd)
                draft_.expiry[s] = draft_.releasedAt[s] - (constant ? 0 : 1);
        }
    }

    /// An op without results reads bytes, and the program runs it at its own place wherever a plan
    /// has it.
    bool readsOnly(OpIndex op) const {
        return graph_.ops[op].viewOnly && graph_.ops[op].outputs.empty();
    }

    OpIndex nextFixed(OpIndex after) const {
        OpIndex i = after + 1;
        while (i < static_cast<OpIndex>(graph_.ops.size()) && graph_.ops[i].viewOnly &&
               !readsOnly(i))
            ++i;
        return i;
    }

    Status place(const Action& action) {
        switch (action.kind) {
            case ActionKind::Compute:
                if (readsOnly(action.target) && action.target != nextFixed(fixed_)) {
                    for (const Use& use : graph_.ops[action.target].inputs) {
                        OpIndex& until = readUntil_[graph_.storageOf(use.tensor)];
                        until = std::max(until, action.target);
                    }
                    return {};
                }
                if (graph_.ops[action.target].viewOnly && !readsOnly(action.target)) {
                    // What runs before the next op that keeps its place; others come early or late.
                    if (action.target > fixed_ && action.target < nextFixed(fixed_))
                        latest_ = std::max(latest_, action.target);
                    return {};
                }
                if (Status served = requireServed(action.target); !served) return served;
                fixed_ = latest_ = action.target;
                leading_ = true;
                for (const OpOutput& output : graph_.ops[action.target].outputs)
                    if (output.makesStorage) appear(graph_.storageOf(output.tensor), fixed_);
                return {};
            case ActionKind::Recompute:
                return recompute(action);
            case ActionKind::Free:
                free(action.target);
                return {};
            case ActionKind::Encode:
                return encode(action);
            case ActionKind::Decode:
                decode(action.target);
                return {};
            case ActionKind::Offload:
                offload(action.target);
                return {};
            case ActionKind::Prefetch:
                prefetch(action.target);
                return {};
        }
        return {};
    }

    /// Signs are not the storage's elements: only what compares with 0 may take them for these.
    Status requireServed(OpIndex op) const {
        for (const Use& use : graph_.ops[op].inputs) {
            const StorageIndex s = graph_.storageOf(use.tensor);
            if (life_[s].signs && !life_[s].encoded && !codecServes(graph_, kSignCodec, op, s))
                return badInput("the plan has op " + std::to_string(op) + " (" +
                                    graph_.ops[op].name + ") read signs for elements",
                                "plan again; a plan file should not be edited by hand");
        }
        return {};
    }

    Status encode(const Action& action) {
        const StorageIndex s = action.target;
        const auto codec = codecOf(action.encoding->codec);
        if (!codec || graph_.storages[s].isConstant())
            return badInput("the plan encodes storage " + std::to_string(s) + " as '" +
                                action.encoding->codec +
                                "', which a running program cannot be given",
                            "plan again without encodings: --options encodings=off");
        Life& life = life_[s];
        const OpIndex next = nextFixed(fixed_);
        hold(s, leading_ ? fixed_ : next);
        const OpIndex at = leading_ ? std::max(latest_, OpIndex{0}) : next;
        auto& list = here();
        life.dropBefore = !leading_;
        life.drop = {at, list.size()};
        list.push_back({LiveAction::Encode, s, {}, false, *codec, action.encoding->bytes});
        life.resident = life.held = false;
        life.encoded = true;
        life.signs = *codec == wire::LiveCodec::Sign;
        if (!life.signs) return {};
        // What the program might ask for cannot be had from signs.
        const auto end = static_cast<OpIndex>(graph_.ops.size());
        draft_.drops.push_back(
            {s, life.dropBefore, life.drop, std::min(end, draft_.releasedAt[s])});
        return {};
    }

    void decode(StorageIndex s) {
        const OpIndex next = nextFixed(fixed_);
        leading_ = false;
        placed_.before[next].push_back({LiveAction::Decode, s});
        const bool signs = life_[s].signs;
        appear(s, next);
        life_[s].signs = signs;
    }

    /// Where an action belongs that may come at once: the list after the op that runs now, or the
    /// one before the next.
    std::vector<PlacedAction>& here() {
        return leading_ ? placed_.after[std::max(latest_, OpIndex{0})]
                        : placed_.before[nextFixed(fixed_)];
    }

    void offload(StorageIndex s) {
        if (costsNothing(s)) return;
        here().push_back({LiveAction::Offload, s});
        life_[s].leaving = true;
    }

    /// What the plan holds it goes on to hold, without its bytes.
    void leave(StorageIndex s) {
        hold(s, leading_ ? fixed_ : nextFixed(fixed_));
        here().push_back({LiveAction::Leave, s});
        life_[s].resident = life_[s].leaving = false;
        life_[s].offloaded = true;
    }

    void prefetch(StorageIndex s) {
        if (!life_[s].offloaded) return;  // it has not left
        const OpIndex next = nextFixed(fixed_);
        leading_ = false;
        placed_.before[next].push_back({LiveAction::Prefetch, s});
        appear(s, next);
    }

    void appear(StorageIndex s, OpIndex at) {
        Life& life = life_[s];
        life.resident = true;
        life.encoded = life.signs = life.offloaded = false;
        life.since = at;
        if (!graph_.storages[s].isConstant() && draft_.releasedAt[s] <= at) life.held = true;
    }

    Status recompute(const Action& action) {
        const Op& op = graph_.ops[action.target];
        if (op.viewOnly) return {};
        const OpIndex next = nextFixed(fixed_);
        leading_ = false;
        placed_.before[next].push_back({LiveAction::Recompute, action.target, action.outputs});
        ++placed_.recomputes;
        for (const std::int32_t output : action.outputs) {
            const StorageIndex s = graph_.storageOf(op.outputs[output].tensor);
            if (!op.outputs[output].makesStorage || life_[s].resident) continue;
            if (lastWriter(s, next) == kNone) endDrop(s, next);
            appear(s, next);
        }
        for (const Write& write : op.writes)
            if (lastWriter(write.storage, next) == action.target) endDrop(write.storage, next);
        return {};
    }

    /// What has brought a storage to its version before op `end`: until it has run again, too, the
    /// storage is not what the program left.
    OpIndex lastWriter(StorageIndex s, OpIndex end) const {
        OpIndex last = kNone;
        for (const OpIndex writer : graph_.storages[s].writers)
            if (writer < end) last = writer;
        return last;
    }

    /// A few bytes, such as those of a scalar, or none at all: without them nothing that was made
    /// from them could be restored, and much may be.
    bool costsNothing(StorageIndex s) const {
        return graph_.storages[s].isConstant() && graph_.storages[s].bytes <= kSmallConstant;
    }

    void free(StorageIndex s) {
        if (costsNothing(s) || readUntil_[s] > fixed_) return;
        Life& life = life_[s];
        if (life.leaving && life.resident) return leave(s);
        const OpIndex next = nextFixed(fixed_);
        auto& list = here();
        if (life.resident || (life.offloaded && life.held)) {
            hold(s, leading_ ? fixed_ : next);
            if (life.held) {
                list.push_back({LiveAction::Release, s});
                draft_.expiry[s] = leading_ ? latest_ : next;
            } else if (draft_.releasedAt[s] > next && !isSource(graph_, s)) {
                life.dropped = true;
                life.dropBefore = !leading_;
                life.drop = {leading_ ? std::max(latest_, OpIndex{0}) : next, list.size()};
                list.push_back({LiveAction::Drop, s});
            }
        }
        if (life.encoded || (life.offloaded && !life.held)) list.push_back({LiveAction::Drop, s});
        life.resident = life.held = life.encoded = life.signs = life.offloaded = false;
    }

    /// The plan keeps the storage until op `until`; the program may have released it before.
    void hold(StorageIndex s, OpIndex until) {
        Life& life = life_[s];
        if (life.held || draft_.releasedAt[s] > until || draft_.releasedAt[s] <= life.since) return;
        life.held = true;
        const Storage& storage = graph_.storages[s];
        if (storage.isConstant()) return;  // held from the start: holdSources()
        OpIndex last = life.since;
        for (const auto& touchers : {storage.readers, storage.writers})
            for (const OpIndex op : touchers)
                if (op < draft_.releasedAt[s]) last = std::max(last, op);
        draft_.holds.push_back({last, s});
    }

    /// The storage is back, or the program has released it: until op `at` it had to be restorable.
    void endDrop(StorageIndex s, OpIndex at) {
        Life& life = life_[s];
        if (!std::exchange(life.dropped, false)) return;
        draft_.drops.push_back({s, life.dropBefore, life.drop, std::min(at, draft_.releasedAt[s])});
    }

    void closeAll() {
        const auto end = static_cast<OpIndex>(graph_.ops.size());
        for (StorageIndex s = 0; s < static_cast<StorageIndex>(life_.size()); ++s) {
            endDrop(s, end);
            if (!life_[s].resident) continue;
            hold(s, end);
            if (life_[s].held) draft_.expiry[s] = kStepEnd;
        }
    }

    const TrainingGraph& graph_;
    const Schedule schedule_;
    std::vector<OpIndex> readUntil_;  // last op without results that a plan has had before it
    std::vector<Life> life_;
    OpIndex fixed_ = -1, latest_ = -1;
    bool leading_ = true;
    DraftPlacement draft_;
    Placement& placed_ = draft_.placement;
};

}  // namespace

Result<DraftPlacement> placeActions(const TrainingGraph& graph, const Plan& plan) {
    return Placer(graph, plan).run();
}

}  // namespace hw::live
