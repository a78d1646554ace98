// SPDX-License-Identifier: MIT
#include "planners/dtr/live_replay.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace hw::planners {

using namespace hw::core;

namespace {

/// Creators and writers: views are looked through in a program, and never made again.
RebuildInfo chainsOf(const TrainingGraph& graph) {
    RebuildInfo info;
    for (const Storage& storage : graph.storages) {
        std::vector<OpIndex> chain;
        if (storage.creator != kNone) chain.push_back(storage.creator);
        for (const OpIndex writer : storage.writers) chain.push_back(writer);
        info.chain.append(chain);
    }
    return info;
}

DtrSettings settingsOf(DtrHeuristic heuristic) {
    DtrSettings settings;
    settings.heuristic = heuristic;
    settings.some = true;
    settings.recordSchedule = false;
    return settings;
}

}  // namespace

LiveReplay::LiveReplay(const LiveStretch& stretch, DtrHeuristic heuristic,
                       const PlanRequest& request, const Progress& progress)
    : DtrRuntime(stretch.graph, request, progress, settingsOf(heuristic), chainsOf(stretch.graph)),
      stretch_(stretch),
      wrote_(stretch.graph.storages.size(), 0),
      finished_(stretch.graph.ops.size(), false),
      forgotten_(stretch.graph.storages.size(), false),
      needed_(stretch.graph.storages.size(), false),
      made_(stretch.graph.storages.size(), false),
      atAnyPrice_(stretch.atAnyPrice) {
    for (StorageIndex s = 0; s < static_cast<StorageIndex>(made_.size()); ++s)
        made_[s] = graph_.storages[s].creator >= stretch.carried;
}

Replayed replay(const LiveStretch& stretch, DtrHeuristic heuristic) {
    PlanRequest request;
    request.budget = Bytes(std::numeric_limits<std::int64_t>::max());
    request.thrashLimit = std::numeric_limits<double>::infinity();
    const Progress progress;
    LiveReplay replay(stretch, heuristic, request, progress);
    const Proposal proposal = replay.run();
    return {replay.evicted(), proposal.status == PlanStatus::Ok ? "" : proposal.reason};
}

// --- the program

void LiveReplay::play() {
    begin();
    while (cursor_ < stretch_.entries.size()) take(stretch_.entries[cursor_++]);
}

/// What is known from before.
void LiveReplay::begin() {
    evictor_.state().clock = stretch_.clock;
    for (OpIndex i = 0; i < stretch_.carried; ++i) {
        connect(i);
        for (const Write& write : graph_.ops[i].writes) ++wrote_[write.storage];
        finished_[i] = true;
        now_ = i;
    }
    for (const LiveStretch::Kept& kept : stretch_.kept) {
        const StorageIndex s = kept.storage;
        DtrStorage before;
        before.size = at(s).size;
        before.compute = kept.compute;
        before.lastAccess = kept.lastAccess;
        before.material = !kept.evicted;
        before.pinned = kept.pinned;
        before.deferred = kept.deferred;
        evictor_.takeOver(s, before);
        needed_[s] = kept.needed;
        made_[s] = kept.made;
        if (kept.evicted) continue;
        at(s).version = wrote_[s];
        defined_.add(current(s).tensor);
    }
}

void LiveReplay::computeOnce(OpIndex op) {
    now_ = op;
    unlocks_ = 0;
    if (stretch_.views[op]) {
        makeRoom(0, op);
        Frame frame;
        frame.op = op;
        execute(frame, 0);
    } else {
        materialize(op, kNone, false);
    }
    for (const OpOutput& output : graph_.ops[op].outputs)
        at(graph_.storageOf(output.tensor)).lastAccess = evictor_.state().clock;
}

/// What the program and the framework do while the op runs; then it is a part of the graph.
void LiveReplay::makeRoom(std::int64_t /*size*/, OpIndex forOp) {
    if (forOp == kNone) return;
    const bool again = depth_ > 0 && frames_[depth_ - 1].again;
    if (again) hear();
    if (again && next(Kind::Again) == nullptr)
        throw Stop{PlanStatus::Infeasible, "op " + std::to_string(forOp) +
                                               " ran again here only, before entry " +
                                               std::to_string(cursor_)};
    takeUntil(Kind::Made);
    if (again) return;
    for (const Write& write : graph_.ops[forOp].writes) ++wrote_[write.storage];
    if (stretch_.failed[forOp]) return;
    connect(forOp);
    finished_[forOp] = true;
    for (const Write& write : graph_.ops[forOp].writes) needed_[write.storage] = false;
}

void LiveReplay::pinWhatStays() {
    takeUntil(Kind::Done);
}

/// Nothing that the runtime in the program has heard of only after its next eviction.
void LiveReplay::hear() {
    while (cursor_ < stretch_.entries.size() &&
           stretch_.entries[cursor_].evictions <= evicted_.size()) {
        const LiveEntry* const freed = next(Kind::Freed);
        if (freed == nullptr) return;
        released(freed->storage);
    }
}

/// The next entry, if it is of that kind.
const LiveEntry* LiveReplay::next(Kind kind) {
    if (cursor_ == stretch_.entries.size() || stretch_.entries[cursor_].kind != kind)
        return nullptr;
    return &stretch_.entries[cursor_++];
}

void LiveReplay::takeUntil(Kind kind) {
    while (next(kind) == nullptr) {
        if (cursor_ == stretch_.entries.size())
            throw Stop{PlanStatus::Cancelled, ""};  // the log ends within an op
        take(stretch_.entries[cursor_++]);
    }
}

void LiveReplay::take(const LiveEntry& entry) {
    const StorageIndex s = entry.storage;
    switch (entry.kind) {
        case Kind::Op:
            return computeOnce(entry.op);
        case Kind::Constant:
            return addConstant(s);
        case Kind::Unwanted:
            at(s).dead = true;
            return;
        case Kind::Lost:
            return lose(s);
        case Kind::Freed:
            return released(s);
        case Kind::Keep:
            return keep(s);
        case Kind::Pin:
            return evictor_.pin(s);
        case Kind::Unpin:
            return evictor_.unpin(s);
        case Kind::Bring:
            return bringBack(s);
        case Kind::Change:
            return aboutToChange(entry.storages);
        case Kind::Room:
            return makeOneRoom();
        case Kind::Beside:
            for (const Write& write : graph_.ops[entry.op].writes) {
                ++wrote_[write.storage];
                ++at(write.storage).version;
            }
            return;
        case Kind::Stuck:
        case Kind::Shared:
        case Kind::Again:
        case Kind::Made:
        case Kind::Done:
            throw Stop{PlanStatus::Infeasible,
                       "entry " + std::to_string(cursor_ - 1) + " has no place here"};
    }
}

// --- what is there

Use LiveReplay::current(StorageIndex s) const {
    return {graph_.storages[s].tensors.front(), wrote_[s]};
}

bool LiveReplay::canMake(StorageIndex s) const {
    return graph_.storages[s].creator != kNone && finished_[graph_.storages[s].creator] &&
           !forgotten_[s];
}

bool LiveReplay::unwantedSibling(StorageIndex s) const {
    return !canMake(s) || wrote_[s] > 0 || (at(s).dead && !waitedFor(s));
}

void LiveReplay::lose(StorageIndex s) {
    defined_.forget(s);
}

void LiveReplay::released(StorageIndex s) {
    at(s).dead = true;
    noteFreed(s);
    if (!canMake(s)) {
        evictor_.banished(s);
        loseWith({s});
        return;
    }
    evictor_.unpin(s);
    if (at(s).locks == 0) evictor_.evicted(s);
}

void LiveReplay::keep(StorageIndex s) {
    forgotten_[s] = true;
    if (at(s).material) evictor_.pin(s);
}

void LiveReplay::bringBack(StorageIndex s) {
    hear();
    std::size_t cursor = 0;
    while (const auto step = nextRebuild(current(s), cursor))
        materialize(step->op, step->wanted, true);
}

// --- evictions

/// An allocation asks again after each one.
void LiveReplay::makeOneRoom() {
    const std::size_t before = evicted_.size();
    while (evicted_.size() == before) {
        const StorageIndex victim = evictor_.choose();
        if (victim == kNone && evictor_.takeDeferred()) {
            atAnyPrice_ = true;
            continue;
        }
        if (victim == kNone && unlockWaiting()) continue;
        if (victim == kNone) return;
        chosen(victim);
    }
}

/// An op that waits for what it reads, the oldest one: as in the program. What is on its way from
/// one version to the next stays.
bool LiveReplay::unlockWaiting() {
    for (std::size_t i = outer_; i + 1 < depth_ && unlocks_ < kUnlocks; ++i) {
        Frame& frame = frames_[i];
        if (frame.locked.empty() || (frame.again && !graph_.ops[frame.op].writes.empty())) continue;
        unlock(frame);
        ++unlocks_;
        return true;
    }
    return false;
}

void LiveReplay::chosen(StorageIndex s) {
    if (needed_[s] || !present(s)) return drop(s);
    switch (holdSources(s)) {
        case Sources::Held:
            return drop(s);
        case Sources::Gone:
            return evictor_.pin(s);
        case Sources::Dear:
            return evictor_.defer(s);
    }
}

void LiveReplay::drop(StorageIndex s) {
    evictor_.unpin(s);
    if (next(Kind::Stuck) != nullptr) return evictor_.pin(s);
    evict(s);
    evicted_.push_back(s);
}

/// What it would be made from stays until then. Dear: that may take more than it gives.
LiveReplay::Sources LiveReplay::holdSources(StorageIndex storage) {
    std::vector<StorageIndex> ahead{storage}, found{storage};
    std::int64_t bytes = 0;
    std::vector<StorageIndex> gone;
    needed_[storage] = true;
    while (!ahead.empty()) {
        const StorageIndex s = ahead.back();
        ahead.pop_back();
        for (const OpIndex op : info_.chain[s]) {
            if (!finished_[op]) continue;
            for (const Use& use : graph_.ops[op].inputs) {
                const StorageIndex input = graph_.storageOf(use.tensor);
                if (needed_[input]) continue;
                needed_[input] = true;
                found.push_back(input);
                if (canMake(input)) {
                    ahead.push_back(input);
                    continue;
                }
                if (!defined_.has(current(input).tensor)) gone.push_back(input);
                if (made_[input]) bytes += at(input).size;  // what is from before is there anyway
            }
        }
    }
    const bool shared = gone.empty() && next(Kind::Shared) != nullptr;
    const bool dear = shared || (bytes > at(storage).size && !atAnyPrice_);
    if (gone.empty() && !dear) return Sources::Held;
    for (const StorageIndex s : found) needed_[s] = false;
    if (gone.empty()) return Sources::Dear;
    hear();
    return loseWith(gone) && canMake(storage) ? holdSources(storage) : Sources::Gone;
}

// --- what can no longer be made again

std::vector<StorageIndex> LiveReplay::lostWith(const std::vector<StorageIndex>& changed) {
    std::vector<StorageIndex> lost, ahead = changed;
    std::vector<bool> known(graph_.storages.size(), false);
    const auto take = [&](StorageIndex s) {
        if (!canMake(s) || known[s]) return;
        known[s] = true;
        lost.push_back(s);
        if (at(s).dead) ahead.push_back(s);
    };
    while (!ahead.empty()) {
        const StorageIndex s = ahead.back();
        ahead.pop_back();
        for (const OpIndex reader : graph_.storages[s].readers) {
            if (!finished_[reader]) continue;
            const Op& op = graph_.ops[reader];
            const bool asItIs =
                std::any_of(op.inputs.begin(), op.inputs.end(), [&](const Use& use) {
                    return graph_.storageOf(use.tensor) == s && use.version == wrote_[s];
                });
            if (!asItIs) continue;
            for (const OpOutput& output : op.outputs)
                if (output.makesStorage) take(graph_.storageOf(output.tensor));
            for (const Write& write : op.writes) take(write.storage);
        }
    }
    std::sort(lost.begin(), lost.end());
    return lost;
}

/// What was made from these, which are gone for good, cannot be recomputed. False: nothing was.
bool LiveReplay::loseWith(const std::vector<StorageIndex>& gone) {
    const std::vector<StorageIndex> lost = lostWith(gone);
    for (const StorageIndex s : lost) giveUp(s);
    return !lost.empty();
}

/// What was made from these and the program still wants is there, for good.
void LiveReplay::aboutToChange(const std::vector<StorageIndex>& changed) {
    const std::vector<StorageIndex> lost = lostWith(changed);
    for (const StorageIndex s : lost)
        if (!at(s).dead && present(s)) evictor_.pin(s);
    for (const StorageIndex s : lost) {
        if (at(s).dead) continue;
        bringBack(s);
        evictor_.pin(s);
    }
    for (const StorageIndex s : lost) giveUp(s);
}

void LiveReplay::giveUp(StorageIndex s) {
    const bool stays = !at(s).dead && present(s);
    if (stays) evictor_.pin(s);
    forgotten_[s] = true;
    if (!stays && present(s) && at(s).locks == 0) drop(s);
}

}  // namespace hw::planners
