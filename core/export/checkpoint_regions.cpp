// SPDX-License-Identifier: MIT
#include "core/export/checkpoint_regions.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "core/memory/evaluate.h"
#include "core/memory/rebuild.h"
#include "core/plan/schedule_builder.h"

namespace hw::core {
namespace {

constexpr int kMostForecasts = 400;

OpIndex lastForwardOp(const TrainingGraph& graph) {
    OpIndex last = kNone;
    for (OpIndex op = 0; op < static_cast<OpIndex>(graph.ops.size()); ++op) {
        if (graph.ops[op].phase == Phase::Backward) break;
        if (graph.ops[op].phase == Phase::Forward) last = op;
    }
    return last;
}

// What the plan holds when forward has ended and what it frees right then is gone.
std::vector<bool> residentAtBackward(const TrainingGraph& graph, const Schedule& schedule) {
    std::vector<bool> resident(graph.storages.size(), false);
    bool forwardDone = false;
    const OpIndex lastForward = lastForwardOp(graph);
    for (const Action& action : schedule) {
        if (forwardDone && action.kind != ActionKind::Free) break;
        switch (action.kind) {
            case ActionKind::Compute:
                for (const OpOutput& output : graph.ops[action.target].outputs)
                    if (output.makesStorage) resident[graph.storageOf(output.tensor)] = true;
                break;
            case ActionKind::Recompute:
                for (const std::int32_t i : action.outputs)
                    resident[graph.storageOf(graph.ops[action.target].outputs[i].tensor)] = true;
                break;
            case ActionKind::Free:
                resident[action.target] = false;
                break;
            case ActionKind::Encode:
            case ActionKind::Decode:
                break;  // held, in another form
        }
        forwardDone |= action.kind == ActionKind::Compute && action.target == lastForward;
    }
    return resident;
}

// Whether it is a module that is called: lists of modules only hold some.
bool isModule(const TrainingGraph& graph, LayerIndex layer) {
    const auto& [path, type, parent] = graph.layers[layer];
    return !path.empty() && path.front() != '(' && type != "ModuleList" && type != "ModuleDict";
}

// The regions of one forecast, by op and storage.
class Simulation {
public:
    Simulation(const TrainingGraph& graph, const RebuildInfo& info, const HeldByPlan& held,
               const std::vector<CheckpointRegion>& regions)
        : graph_(graph), info_(info), held_(held), regions_(regions), builder_(graph, info) {
        placeOps();
        placeStorages();
    }

    std::optional<CheckpointForecast> run() {
        if (!allowed()) return std::nullopt;
        builder_.setStay([this](StorageIndex s) {
            return callOf_[s] == kNone && readInside_[s] ? ScheduleBuilder::Stay::Rebuilds
                                                         : ScheduleBuilder::Stay::LastUse;
        });
        const OpIndex last = lastForwardOp(graph_);
        while (!builder_.done()) {
            const OpIndex op = builder_.next();
            if (op > last) restoreFor(op);
            builder_.computeNext();
            for (const StorageIndex s : lastUsedBy_[op]) releaseIfUnneeded(s);
            if (op > last) continue;
            for (const StorageIndex s : droppedAfter_[op])
                if (builder_.resident(s)) builder_.drop(s);
        }
        const Evaluation judged = evaluate(graph_, builder_.finish());
        if (!judged.valid) return std::nullopt;
        return CheckpointForecast{judged.peak, judged.time};
    }

private:
    // PyTorch runs a call again on the inputs that it held: none may have been written since.
    bool allowed() const {
        std::vector<OpIndex> begin(end_.size(), kNone);
        for (std::size_t i = graph_.ops.size(); i-- > 0;)
            if (call_[i] != kNone) begin[call_[i]] = static_cast<OpIndex>(i);
        for (std::size_t call = 0; call < end_.size(); ++call)
            for (const StorageIndex s : readBy_[call]) {
                const Storage& storage = graph_.storages[s];
                if (storage.isConstant() || call_[storage.creator] == static_cast<int>(call))
                    continue;
                for (const OpIndex writer : storage.writers)
                    if (writer >= begin[call] && graph_.ops[writer].phase != Phase::Optimizer)
                        return false;
            }
        return true;
    }

    void placeOps() {
        call_.assign(graph_.ops.size(), kNone);
        std::vector<std::int32_t> ofLayer(graph_.layers.size(), kNone);
        for (std::size_t i = 0; i < graph_.layers.size(); ++i) {
            const LayerIndex parent = graph_.layers[i].parent;
            if (parent != kNone) ofLayer[i] = ofLayer[parent];
            for (std::size_t r = 0; r < regions_.size(); ++r)
                if (regions_[r].layer == static_cast<LayerIndex>(i))
                    ofLayer[i] = static_cast<std::int32_t>(r);
        }
        // A module that runs several times is as many checkpoints: one for every unbroken run of
        // its ops.
        std::int32_t last = kNone;
        for (std::size_t i = 0; i < graph_.ops.size(); ++i) {
            const Op& op = graph_.ops[i];
            if (op.phase != Phase::Forward) continue;
            const std::int32_t region = op.layer == kNone ? kNone : ofLayer[op.layer];
            if (region != kNone && region != last) {
                keepsPlan_.push_back(regions_[region].keepsPlan);
                end_.push_back(kNone);
            }
            last = region;
            if (region == kNone) continue;
            call_[i] = static_cast<std::int32_t>(end_.size()) - 1;
            end_.back() = static_cast<OpIndex>(i);
        }
    }

    // A storage is dropped when its region's forward is over, if only that region's forward reads
    // it: what others read is the region's result.
    void placeStorages() {
        callOf_.assign(graph_.storages.size(), kNone);
        readInside_.assign(graph_.storages.size(), false);
        droppedAfter_.resize(graph_.ops.size());
        needs_.resize(end_.size());
        readBy_.resize(end_.size());
        for (std::size_t s = 0; s < graph_.storages.size(); ++s) {
            const Storage& storage = graph_.storages[s];
            for (const OpIndex reader : storage.readers) {
                if (call_[reader] == kNone) continue;
                readInside_[s] = true;
                std::vector<StorageIndex>& read = readBy_[call_[reader]];
                if (read.empty() || read.back() != static_cast<StorageIndex>(s))
                    read.push_back(static_cast<StorageIndex>(s));
            }
            if (storage.isConstant() || storage.aliveAtEnd || !info_.rematerializable[s]) continue;
            const std::int32_t call = call_[storage.creator];
            if (call == kNone) continue;
            if (keepsPlan_[call] && held_.saves[storage.creator]) continue;
            const bool outside =
                std::any_of(storage.readers.begin(), storage.readers.end(), [&](OpIndex reader) {
                    return graph_.ops[reader].phase == Phase::Forward && call_[reader] != call;
                });
            if (outside) continue;
            callOf_[s] = call;
            droppedAfter_[end_[call]].push_back(static_cast<StorageIndex>(s));
        }
        for (OpIndex op = lastForwardOp(graph_) + 1; op < static_cast<OpIndex>(graph_.ops.size());
             ++op)
            for (const Use& use : graph_.ops[op].inputs)
                if (const auto call = callOf_[graph_.storageOf(use.tensor)]; call != kNone)
                    needs_[call].emplace_back(op, use);
        // What stays only for calls to come may go with the last of them.
        pending_.assign(graph_.storages.size(), 0);
        lastUsedBy_.resize(graph_.ops.size());
        for (std::size_t call = 0; call < needs_.size(); ++call)
            if (!needs_[call].empty())
                for (const StorageIndex s : readBy_[call]) ++pending_[s];
        for (std::size_t s = 0; s < graph_.storages.size(); ++s)
            if (readInside_[s] && callOf_[s] == kNone && info_.rematerializable[s] &&
                info_.lastUse[s] < static_cast<OpIndex>(graph_.ops.size()))
                lastUsedBy_[info_.lastUse[s]].push_back(static_cast<StorageIndex>(s));
    }

    void releaseIfUnneeded(StorageIndex s) {
        if (pending_[s] == 0 && info_.rematerializable[s] && info_.lastUse[s] < builder_.next() &&
            callOf_[s] == kNone && builder_.resident(s))
            builder_.drop(s);
    }

    void restoreFor(OpIndex op) {
        std::set<std::int32_t> missing;
        for (const Use& use : graph_.ops[op].inputs) {
            const StorageIndex s = graph_.storageOf(use.tensor);
            if (callOf_[s] != kNone && !builder_.resident(s)) missing.insert(callOf_[s]);
        }
        for (const std::int32_t call : missing) {
            std::vector<Use> uses;
            for (const auto& [reader, use] : needs_[call])
                if (reader >= op && !builder_.resident(graph_.storageOf(use.tensor)))
                    uses.push_back(use);
            builder_.rebuild(uses);
            for (const StorageIndex s : readBy_[call]) {
                --pending_[s];
                releaseIfUnneeded(s);
            }
        }
    }

    const TrainingGraph& graph_;
    const RebuildInfo& info_;
    const HeldByPlan& held_;
    const std::vector<CheckpointRegion>& regions_;
    ScheduleBuilder builder_;
    // A call is one run of a region's module.
    std::vector<std::int32_t> call_;                 // by op; kNone: outside
    std::vector<bool> keepsPlan_;                    // by call
    std::vector<OpIndex> end_;                       // by call: its last forward op
    std::vector<std::int32_t> callOf_;               // by storage: the call that drops it
    std::vector<bool> readInside_;                   // by storage: an op of a region reads it
    std::vector<std::vector<StorageIndex>> readBy_;  // by call
    std::vector<int> pending_;  // by storage: calls that read it and are still to be restored
    std::vector<std::vector<StorageIndex>> lastUsedBy_;        // by op: what calls read
    std::vector<std::vector<StorageIndex>> droppedAfter_;      // by op
    std::vector<std::vector<std::pair<OpIndex, Use>>> needs_;  // by call: its uses in backward
};

class Search {
public:
    Search(const TrainingGraph& graph, const Schedule& schedule)
        : graph_(graph),
          info_(rebuildInfo(graph)),
          held_(heldByPlan(graph, schedule)),
          goal_(evaluate(graph, schedule).peak),
          children_(graph.layers.size()) {
        for (std::size_t i = 0; i < graph.layers.size(); ++i)
            if (graph.layers[i].parent != kNone)
                children_[graph.layers[i].parent].push_back(static_cast<LayerIndex>(i));
        const Evaluation none = evaluate(graph, baselineSchedule(graph));
        bestScore_ = score({none.peak, none.time});
    }

    std::optional<CheckpointChoice> run() {
        for (const std::vector<LayerIndex>& cut : cuts())
            for (const bool keepsPlan : {true, false}) {
                std::vector<CheckpointRegion> regions;
                regions.reserve(cut.size());
                for (const LayerIndex layer : cut) regions.push_back({layer, keepsPlan});
                consider(std::move(regions));
            }
        for (bool better = true; better && forecasts_ < kMostForecasts;) better = improve();
        return best_;
    }

private:
    using Score = std::tuple<bool, std::int64_t, std::int64_t>;
    // Within the plan's peak the time counts, above it the peak.
    Score score(const CheckpointForecast& of) const {
        const bool over = of.peak > goal_;
        return {over, over ? of.peak.count() : of.time.count(),
                over ? of.time.count() : of.peak.count()};
    }

    // Cuts through the tree: the largest modules that make at most a share of what backward wants;
    // and for every depth the modules there, with those above that have no children.
    std::vector<std::vector<LayerIndex>> cuts() const {
        std::vector<std::vector<LayerIndex>> found;
        std::vector<Bytes> made(graph_.layers.size());
        for (std::size_t s = 0; s < graph_.storages.size(); ++s)
            if (held_.wanted[s])
                for (LayerIndex layer = graph_.ops[graph_.storages[s].creator].layer;
                     layer != kNone; layer = graph_.layers[layer].parent)
                    made[layer] += graph_.storages[s].bytes;
        for (int share = 2; share <= 64; share *= 2) {
            std::vector<LayerIndex>& cut = found.emplace_back();
            std::vector<bool> covered(graph_.layers.size(), false);  // parents come first
            for (std::size_t i = 0; i < graph_.layers.size(); ++i) {
                const LayerIndex layer = static_cast<LayerIndex>(i),
                                 parent = graph_.layers[i].parent;
                covered[i] = parent != kNone && covered[parent];
                const bool small = made[i] * share <= goal_ || children_[i].empty();
                if (covered[i] || !isModule(graph_, layer) || !small) continue;
                covered[i] = true;
                if (made[i] > Bytes(0)) cut.push_back(layer);
            }
        }
        std::vector<LayerIndex> level;
        for (std::size_t i = 0; i < graph_.layers.size(); ++i)
            if (graph_.layers[i].parent == kNone) level.push_back(static_cast<LayerIndex>(i));
        for (bool deeper = true; deeper;) {
            std::vector<LayerIndex> modules, next;
            deeper = false;
            for (const LayerIndex layer : level) {
                if (isModule(graph_, layer)) modules.push_back(layer);
                if (children_[layer].empty()) {
                    next.push_back(layer);
                    continue;
                }
                deeper = true;
                next.insert(next.end(), children_[layer].begin(), children_[layer].end());
            }
            if (!modules.empty()) found.push_back(std::move(modules));
            level = std::move(next);
        }
        return found;
    }

    // Fewer regions that do as well are better.
    bool consider(std::vector<CheckpointRegion> regions) {
        std::sort(regions.begin(), regions.end(),
                  [](const auto& a, const auto& b) { return a.layer < b.layer; });
        std::vector<std::pair<LayerIndex, bool>> key;
        key.reserve(regions.size());
        for (const CheckpointRegion& region : regions)
            key.emplace_back(region.layer, region.keepsPlan);
        if (!seen_.insert(std::move(key)).second || forecasts_ >= kMostForecasts) return false;
        ++forecasts_;
        const auto outcome = Simulation(graph_, info_, held_, regions).run();
        if (!outcome) return false;
        const bool fewer = best_ && regions.size() < best_->regions.size();
        if (fewer ? score(*outcome) > bestScore_ : score(*outcome) >= bestScore_) return false;
        bestScore_ = score(*outcome);
        best_ = CheckpointChoice{std::move(regions), *outcome};
        return true;
    }

    // One round of moves from the best; the first that helps is taken.
    bool improve() {
        if (!best_) return false;
        const std::vector<CheckpointRegion> base = best_->regions;
        for (std::size_t i = 0; i < base.size(); ++i) {
            std::vector<CheckpointRegion> without = base;
            without.erase(without.begin() + static_cast<std::ptrdiff_t>(i));
            if (consider(without)) return true;
            std::vector<CheckpointRegion> flipped = base;
            flipped[i].keepsPlan = !flipped[i].keepsPlan;
            if (consider(flipped)) return true;
            if (consider(split(without, base[i]))) return true;
            if (consider(joined(base, base[i]))) return true;
        }
        return false;
    }
    std::vector<CheckpointRegion> split(std::vector<CheckpointRegion> rest,
                                        const CheckpointRegion& region) const {
        for (const LayerIndex child : children_[region.layer])
            rest.push_back({child, region.keepsPlan});
        return rest;
    }
    std::vector<CheckpointRegion> joined(std::vector<CheckpointRegion> regions,
                                         const CheckpointRegion& with) const {
        const LayerIndex parent = graph_.layers[with.layer].parent;
        if (parent == kNone || !isModule(graph_, parent)) return regions;
        std::erase_if(regions, [&](const CheckpointRegion& region) {
            return isWithin(graph_, region.layer, parent);
        });
        regions.push_back({parent, with.keepsPlan});
        return regions;
    }

    const TrainingGraph& graph_;
    const RebuildInfo info_;
    const HeldByPlan held_;
    const Bytes goal_;
    std::vector<std::vector<LayerIndex>> children_;
    std::set<std::vector<std::pair<LayerIndex, bool>>> seen_;
    std::optional<CheckpointChoice> best_;
    Score bestScore_;
    int forecasts_ = 0;
};

}  // namespace

bool isWithin(const TrainingGraph& graph, LayerIndex layer, LayerIndex ancestor) {
    for (; layer != kNone; layer = graph.layers[layer].parent)
        if (layer == ancestor) return true;
    return false;
}

HeldByPlan heldByPlan(const TrainingGraph& graph, const Schedule& schedule) {
    HeldByPlan held;
    held.retained = residentAtBackward(graph, schedule);
    held.saves.assign(graph.ops.size(), false);
    held.recomputed = held.saves;
    for (const Action& action : schedule)
        if (action.kind == ActionKind::Recompute) held.recomputed[action.target] = true;
    held.wanted.assign(graph.storages.size(), false);
    for (std::size_t s = 0; s < graph.storages.size(); ++s) {
        const Storage& storage = graph.storages[s];
        if (storage.isConstant() || graph.ops[storage.creator].phase != Phase::Forward) continue;
        held.wanted[s] =
            storage.aliveAtEnd ||
            std::any_of(storage.readers.begin(), storage.readers.end(),
                        [&](OpIndex op) { return graph.ops[op].phase == Phase::Backward; });
        if (held.retained[s]) held.saves[storage.creator] = true;
    }
    // PyTorch refuses to cache what is written later: an op with such a result runs again.
    for (std::size_t s = 0; s < graph.storages.size(); ++s)
        for (const OpIndex op : graph.storages[s].writers)
            if (graph.ops[op].phase == Phase::Forward && !graph.storages[s].isConstant())
                held.saves[graph.storages[s].creator] = false;
    return held;
}

std::optional<CheckpointForecast> forecast(const TrainingGraph& graph, const HeldByPlan& held,
                                           const std::vector<CheckpointRegion>& regions) {
    const RebuildInfo info = rebuildInfo(graph);
    return Simulation(graph, info, held, regions).run();
}

std::optional<CheckpointChoice> chooseCheckpoints(const TrainingGraph& graph,
                                                  const Schedule& schedule) {
    return Search(graph, schedule).run();
}

}  // namespace hw::core
