// SPDX-License-Identifier: MIT
#include "planners/dtr/runtime.h"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

namespace hw::planners {

using namespace hw::core;

namespace {

HeuristicOptions optionsOf(bool simulated, const PlanRequest& request,
                           const DtrSettings& settings) {
    HeuristicOptions options;
    options.simulated = simulated;
    options.cacheRegions = !settings.banish;
    options.seed = request.seed;
    options.some = settings.some;
    if (simulated) options.largePool = 2048;  // its own logs stay below: accesses are its own, too
    return options;
}

}  // namespace

DtrRuntime::DtrRuntime(const TrainingGraph& graph, const PlanRequest& request,
                       const Progress& progress, const DtrSettings& settings)
    : DtrRuntime(graph, request, progress, settings,
                 graph.framework == "simrd" ? RebuildInfo{} : rebuildInfo(graph)) {
    if (!simulated_) planSourceFrees();
}

DtrRuntime::DtrRuntime(const TrainingGraph& graph, const PlanRequest& request,
                       const Progress& progress, const DtrSettings& settings, RebuildInfo info)
    : graph_(graph),
      request_(request),
      progress_(progress),
      settings_(settings),
      simulated_(graph.framework == "simrd"),
      info_(std::move(info)),
      evictor_(graph.storages.size(), settings.heuristic, optionsOf(simulated_, request, settings)),
      defined_(graph),
      rematLimit_(static_cast<double>(graph.totalTime().count()) * (request.thrashLimit - 1)) {
    for (StorageIndex s = 0; s < static_cast<StorageIndex>(graph.storages.size()); ++s)
        at(s).size = graph.storages[s].bytes.count();
    if (settings.recordSchedule) schedule_.reserve(2 * graph.events.size());
}

Proposal DtrRuntime::run() {
    Proposal proposal;
    try {
        play();
        requireFinals();
        proposal.status = PlanStatus::Ok;
    } catch (Stop& stop) {
        proposal.status = stop.status;
        proposal.reason = std::move(stop.reason);
    }
    const DtrState& state = evictor_.state();
    proposal.figures = {{"clock", state.clock},
                        {"evals", state.evals},
                        {"accesses", state.accesses},
                        {"peak", peak_}};
    if (proposal.status == PlanStatus::Ok) proposal.schedule = std::move(schedule_);
    return proposal;
}

// --- the program

void DtrRuntime::play() {
    for (const Event& event : graph_.events) {
        switch (event.kind) {
            case Event::Kind::Constant:
                addConstant(event.index);
                break;
            case Event::Kind::Compute:
                computeFirst(event.index);
                break;
            case Event::Kind::Release:
                release(event.index);
                break;
        }
    }
}

void DtrRuntime::addConstant(StorageIndex s) {
    makeRoom(at(s).size, kNone);
    memory_ += at(s).size;
    notePeak(memory_);
    defined_.begin(s);
    at(s).material = at(s).everMaterial = true;
    evictor_.materialized({s});
    evictor_.pin(s);
}

void DtrRuntime::computeFirst(OpIndex index) {
    now_ = index;
    if (index % 64 == 0) {
        checkStopped();
        progress_.report(static_cast<double>(index) / static_cast<double>(graph_.ops.size()),
                         "running");
    }
    connect(index);
    materialize(index, kNone, false);
    for (const OpOutput& output : graph_.ops[index].outputs)
        at(graph_.storageOf(output.tensor)).lastAccess = evictor_.state().clock;
    if (!sourceFrees_.empty())
        for (const StorageIndex s : sourceFrees_[index]) freeForGood(s);
}

void DtrRuntime::checkStopped() {
    if (progress_.cancelled()) throw Stop{PlanStatus::Cancelled, "cancelled"};
    if (settings_.time.secondsLeft() <= 0)
        throw Stop{PlanStatus::TimeLimit, "it did not come to the end of the step in time"};
}

// Enters the op's edges into the graph built so far, before anything is evicted for it.
void DtrRuntime::connect(OpIndex index) {
    const Op& op = graph_.ops[index];
    touched_.clear();
    for (const OpOutput& output : op.outputs) touch(graph_.storageOf(output.tensor));
    const auto outputStorages = static_cast<std::ptrdiff_t>(touched_.size());
    for (const Write& write : op.writes) touch(write.storage);
    for (const StorageIndex s : touched_) evictor_.announce(s, op.time.count());
    for (const Use& use : op.inputs) {
        const StorageIndex input = graph_.storageOf(use.tensor);
        for (const OpOutput& output : op.outputs)
            evictor_.link(input, graph_.storageOf(output.tensor));
        for (auto s = touched_.begin() + outputStorages; s != touched_.end(); ++s)
            evictor_.link(input, *s);
    }
}

void DtrRuntime::touch(StorageIndex s) {
    if (std::find(touched_.begin(), touched_.end(), s) == touched_.end()) touched_.push_back(s);
}

void DtrRuntime::release(StorageIndex s) {
    DtrStorage& storage = at(s);
    storage.dead = true;
    if (isSource(s) && !simulated_ && sourceNeeds_[s] <= now_)
        freeForGood(s);
    else if (settings_.banish)
        tryBanish(s);
    else if (!isSource(s)) {
        evictor_.unpin(s);
        if (storage.material) evict(s);
    }
}

void DtrRuntime::requireFinals() {
    for (const TensorIndex tensor : graph_.finalTensors) {
        const StorageIndex s = graph_.storageOf(tensor);
        const Use use{tensor, static_cast<std::int32_t>(graph_.storages[s].writers.size())};
        std::size_t cursor = 0;
        while (const auto step = nextRebuild(use, cursor))
            materialize(step->op, step->wanted, true);
        evictor_.pin(s);
    }
}

// --- materialization

void DtrRuntime::materialize(OpIndex index, TensorIndex wanted, bool again) {
    const std::size_t outer = std::exchange(outer_, depth_);
    begin(index, wanted, again);
    while (depth_ > outer_) advance();
    outer_ = outer;
}

// Locks first on what is there, so that rebuilding one input does not evict another.
void DtrRuntime::begin(OpIndex index, TensorIndex wanted, bool again) {
    if (again && graph_.ops[index].once)
        throw Stop{PlanStatus::Infeasible, "op " + std::to_string(index) + " (" +
                                               graph_.ops[index].name + ") must not run again"};
    if (depth_ == frames_.size()) frames_.emplace_back();
    Frame& frame = frames_[depth_++];
    frame.op = index, frame.wanted = wanted, frame.again = again;
    lockInputs(frame);
}

void DtrRuntime::lockInputs(Frame& frame) {
    frame.begun = true;
    frame.next = frame.cursor = 0;
    frame.locked.clear();
    frame.missing.clear();
    const Op& op = graph_.ops[frame.op];
    access(op);
    for (const Use& use : op.inputs) {
        if (satisfied(use)) {
            evictor_.lock(graph_.storageOf(use.tensor));
            frame.locked.push_back(graph_.storageOf(use.tensor));
        } else {
            frame.missing.push_back(use);
        }
    }
}

// It locks its inputs anew once what it waits for is there.
void DtrRuntime::unlock(Frame& frame) {
    for (const StorageIndex s : frame.locked) evictor_.unlock(s);
    frame.locked.clear();
    frame.begun = false;
}

void DtrRuntime::access(const Op& op) {
    for (const Use& use : op.inputs) {
        DtrStorage& storage = at(graph_.storageOf(use.tensor));
        // With banishing, only what the program still holds counts as used.
        if (!settings_.banish || !storage.dead) storage.lastAccess = evictor_.state().clock;
    }
}

// One step of the innermost op in progress: the next op that it needs, or itself.
void DtrRuntime::advance() {
    Frame& frame = frames_[depth_ - 1];
    while (frame.next < frame.missing.size()) {
        hear();
        const Use& use = frame.missing[frame.next];
        if (const auto step = nextRebuild(use, frame.cursor)) {
            begin(step->op, step->wanted, true);
            return;
        }
        if (!frame.begun) {
            lockInputs(frame);
            continue;
        }
        evictor_.lock(graph_.storageOf(use.tensor));
        frame.locked.push_back(graph_.storageOf(use.tensor));
        ++frame.next;
        frame.cursor = 0;
    }
    // The first of them may have waited long for the others; the simulator counts from when it
    // began.
    if (frame.again && !simulated_ && !frame.missing.empty()) access(graph_.ops[frame.op]);
    finish(frame);
    --depth_;
}

void DtrRuntime::finish(const Frame& frame) {
    const Op& op = graph_.ops[frame.op];
    std::int64_t outputs = 0;
    for (const OpOutput& output : op.outputs)
        if (output.makesStorage) outputs += at(graph_.storageOf(output.tensor)).size;
    makeRoom(outputs + op.workspace.count(), frame.op);
    execute(frame, outputs);
    for (const Use& use : op.inputs) evictor_.unlock(graph_.storageOf(use.tensor));
    if (settings_.banish)
        for (const Use& use : op.inputs) tryBanish(graph_.storageOf(use.tensor));
    if (frame.again) rematTime_ += op.time.count();
    if (static_cast<double>(rematTime_) > rematLimit_)
        throw Stop{PlanStatus::Thrash,
                   "rematerialization took longer than the thrash limit allows"};
    if (++executed_ % 256 == 0) checkStopped();
}

void DtrRuntime::notePeak(std::int64_t memory) {
    if (memory <= peak_) return;
    peak_ = memory;
    peakAction_ = schedule_.size();
}

void DtrRuntime::execute(const Frame& frame, std::int64_t outputBytes) {
    const Op& op = graph_.ops[frame.op];
    evictor_.state().clock += op.time.count();
    memory_ += outputBytes;
    notePeak(memory_ + op.workspace.count());
    const TensorIndex wanted =
        frame.wanted == kNone && !op.outputs.empty() ? op.outputs.front().tensor : frame.wanted;
    ShortList<std::int32_t> kept;
    made_.clear();  // siblings in result order, the wanted one last
    StorageIndex wantedMade = kNone;
    for (std::size_t j = 0; j < op.outputs.size(); ++j) {
        const auto [tensor, makes] = op.outputs[j];
        const StorageIndex s = graph_.storageOf(tensor);
        const bool unwanted = makes && frame.again && tensor != wanted && unwantedSibling(s);
        if (defined_.has(tensor) || unwanted) {
            if (makes) memory_ -= at(s).size;
            continue;
        }
        if (!makes && !at(s).material) continue;
        if (place(s)) {
            if (tensor == wanted)
                wantedMade = s;
            else
                made_.push_back(s);
        }
        defined_.add(tensor);
        if (frame.again && settings_.recordSchedule) kept.push_back(static_cast<std::int32_t>(j));
    }
    if (wantedMade != kNone) made_.push_back(wantedMade);
    for (const Write& write : op.writes) ++at(write.storage).version;
    evictor_.materialized(made_);
    pinWhatStays();
    if (!settings_.recordSchedule) return;
    schedule_.push_back(frame.again ? Action::recompute(frame.op, std::move(kept))
                                    : Action::compute(frame.op));
}

void DtrRuntime::pinWhatStays() {
    if (simulated_) return;
    for (const StorageIndex s : made_)
        if (!info_.rematerializable[s] && !at(s).dead) evictor_.pin(s);
}

// False when it is resident already.
bool DtrRuntime::place(StorageIndex s) {
    DtrStorage& storage = at(s);
    if (storage.material) return false;
    storage.material = storage.everMaterial = true;
    storage.version = 0;
    defined_.begin(s);
    return true;
}

// The simulator brings every sibling back; in a recorded session the dead and the overwritten stay
// away unless the op that waits reads them, and the banished do everywhere.
bool DtrRuntime::unwantedSibling(StorageIndex s) const {
    if (simulated_ || at(s).gone) return at(s).gone;
    return !graph_.storages[s].writers.empty() || (at(s).dead && !waitedFor(s));
}

bool DtrRuntime::waitedFor(StorageIndex s) const {
    if (depth_ < outer_ + 2) return false;
    const ShortList<Use>& inputs = graph_.ops[frames_[depth_ - 2].op].inputs;
    return std::any_of(inputs.begin(), inputs.end(),
                       [&](const Use& use) { return graph_.storageOf(use.tensor) == s; });
}

bool DtrRuntime::satisfied(const Use& use) const {
    return defined_.has(use.tensor) && at(graph_.storageOf(use.tensor)).version == use.version;
}

// The next op on the way to `use`, nothing once it is there: creator and writers of the storage in
// captured order, then the op that made the tensor. `cursor` starts at 0 and is kept between calls.
std::optional<DtrRuntime::Step> DtrRuntime::nextRebuild(const Use& use, std::size_t& cursor) const {
    constexpr std::size_t kLast = std::numeric_limits<std::size_t>::max();
    if (satisfied(use)) return std::nullopt;
    const StorageIndex s = graph_.storageOf(use.tensor);
    const Storage& storage = graph_.storages[s];
    if (!storage.writers.empty() && cursor != kLast) {
        if (cursor == 0 && !at(s).material && storage.creator != kNone) {
            cursor = 1;  // the creator is first in the chain
            return Step{storage.creator, storage.tensors.front()};
        }
        if (const auto op = nextVersion(use, cursor)) return Step{*op, kNone};
    }
    const OpIndex creator = graph_.tensors[use.tensor].creator;
    if (cursor == kLast || creator == kNone || defined_.has(use.tensor))
        throw Stop{PlanStatus::Infeasible, "storage " + std::to_string(s) + " cannot be rebuilt"};
    cursor = kLast;
    return Step{creator, use.tensor};
}

// Writers in captured order, and the views that were taken before each write.
std::optional<OpIndex> DtrRuntime::nextVersion(const Use& use, std::size_t& cursor) const {
    const StorageIndex s = graph_.storageOf(use.tensor);
    const std::span<const OpIndex> chain = info_.chain[s];
    while (at(s).version < use.version && cursor < chain.size()) {
        const OpIndex index = chain[cursor++];
        if (index == graph_.storages[s].creator || index > now_) continue;
        std::int32_t reads = kNone;
        for (const Use& input : graph_.ops[index].inputs)
            if (graph_.storageOf(input.tensor) == s) reads = input.version;
        for (const Write& write : graph_.ops[index].writes)
            if (write.storage == s) reads = write.versionBefore;
        if (reads == at(s).version) return index;
    }
    return std::nullopt;
}

// --- memory

void DtrRuntime::makeRoom(std::int64_t size, OpIndex forOp) {
    while (memory_ + size > request_.budget.count()) {
        const StorageIndex victim = evictor_.choose();
        if (victim == kNone)
            throw Stop{PlanStatus::Infeasible,
                       (forOp == kNone
                            ? std::string("a constant")
                            : "op " + std::to_string(forOp) + " (" + graph_.ops[forOp].name + ")") +
                           " needs " + humanBytes(Bytes(size)) +
                           " more than can be evicted at this point"};
        evict(victim);
    }
}

void DtrRuntime::evict(StorageIndex s) {
    noteFreed(s);
    evictor_.evicted(s);
}

void DtrRuntime::noteFreed(StorageIndex s) {
    memory_ -= at(s).size;
    defined_.forget(s);
    if (settings_.recordSchedule) schedule_.push_back(Action::free(s));
}

}  // namespace hw::planners
