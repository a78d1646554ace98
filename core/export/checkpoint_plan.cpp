// SPDX-License-Identifier: MIT
#include "core/export/checkpoint_plan.h"

#include <algorithm>
#include <map>
#include <set>

#include <nlohmann/json.hpp>

namespace hw::core {
namespace {

constexpr std::int64_t kSmallestShare = 10;  // a region holds at least 1/10 of what is dropped

// What the plan holds when forward has ended and what it frees right then is gone.
std::vector<bool> residentAtBackward(const TrainingGraph& graph, const Schedule& schedule) {
    std::vector<bool> resident(graph.storages.size(), false);
    bool forwardDone = false;
    OpIndex lastForward = kNone;
    for (OpIndex op = 0; op < static_cast<OpIndex>(graph.ops.size()); ++op) {
        if (graph.ops[op].phase == Phase::Backward) break;
        if (graph.ops[op].phase == Phase::Forward) lastForward = op;
    }
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

/// By forward op: what it leaves for backward is held by the plan.
struct Decisions {
    std::vector<bool> saves, recomputed;
    std::vector<bool> retained, baseline;  // storages between forward and backward
};

Decisions decide(const TrainingGraph& graph, const Schedule& schedule) {
    Decisions made;
    made.retained = residentAtBackward(graph, schedule);
    made.saves.assign(graph.ops.size(), false);
    made.recomputed = made.saves;
    for (const Action& action : schedule)
        if (action.kind == ActionKind::Recompute) made.recomputed[action.target] = true;
    // Read in backward by the captured order: what matters.
    made.baseline.assign(graph.storages.size(), false);
    for (std::size_t s = 0; s < graph.storages.size(); ++s) {
        const Storage& storage = graph.storages[s];
        if (storage.isConstant() || graph.ops[storage.creator].phase != Phase::Forward) continue;
        made.baseline[s] =
            storage.aliveAtEnd ||
            std::any_of(storage.readers.begin(), storage.readers.end(),
                        [&](OpIndex op) { return graph.ops[op].phase == Phase::Backward; });
        if (made.retained[s]) made.saves[storage.creator] = true;
    }
    // PyTorch refuses to cache what is written later: an op with such a result runs again.
    for (std::size_t s = 0; s < graph.storages.size(); ++s)
        for (const OpIndex op : graph.storages[s].writers)
            if (graph.ops[op].phase == Phase::Forward && !graph.storages[s].isConstant())
                made.saves[graph.storages[s].creator] = false;
    return made;
}

bool within(const TrainingGraph& graph, LayerIndex layer, LayerIndex ancestor) {
    for (; layer != kNone; layer = graph.layers[layer].parent)
        if (layer == ancestor) return true;
    return false;
}

bool isModule(const TrainingGraph& graph, LayerIndex layer) {
    const std::string& path = graph.layers[layer].path;
    return !path.empty() && path.front() != '(';
}

constexpr const char* kModuleText = R"PY(
import torch
from torch.utils.checkpoint import (CheckpointPolicy, checkpoint,
                                    create_selective_checkpoint_contexts)


class _Policy:
    """Counts the calls of every op, in forward and in recomputation, and looks them up."""

    def __init__(self, saved):
        self.saved = saved
        self.calls = {}

    def __call__(self, ctx, op, *args, **kwargs):
        name = op._schema.name
        key = (ctx.is_recompute, name)
        call = self.calls[key] = self.calls.get(key, -1) + 1
        if call in self.saved.get(name, ()) and not op._schema.is_mutable:
            return CheckpointPolicy.MUST_SAVE
        return CheckpointPolicy.PREFER_RECOMPUTE


def contexts(path):
    """What torch.utils.checkpoint.checkpoint takes as context_fn for the module `path`."""
    saved = {name: frozenset(calls) for name, calls in REGIONS[path].items()}
    return lambda: create_selective_checkpoint_contexts(_Policy(saved))


def apply(model):
    """Wraps the modules of the plan in their checkpoints; returns the model. Training only."""
    for path in REGIONS:
        module = model.get_submodule(path)
        module.forward = _wrapped(module, module.forward, contexts(path))
    return model


def _wrapped(module, forward, context_fn):
    def checkpointed(*args, **kwargs):
        if not (module.training and torch.is_grad_enabled()):
            return forward(*args, **kwargs)
        return checkpoint(forward, *args, use_reentrant=False, context_fn=context_fn, **kwargs)

    return checkpointed
)PY";

}  // namespace

std::vector<LayerPlan> layerPlans(const TrainingGraph& graph, const Schedule& schedule) {
    const Decisions made = decide(graph, schedule);
    std::vector<LayerPlan> plans(graph.layers.size());
    for (std::size_t i = 0; i < plans.size(); ++i) plans[i].layer = static_cast<LayerIndex>(i);
    const auto upwards = [&](LayerIndex layer, auto change) {
        for (; layer != kNone; layer = graph.layers[layer].parent) change(plans[layer]);
    };
    std::vector<std::int64_t> again(graph.ops.size(), 0);
    for (const Action& action : schedule)
        if (action.kind == ActionKind::Recompute) ++again[action.target];
    for (std::size_t i = 0; i < graph.ops.size(); ++i) {
        const Op& op = graph.ops[i];
        if (op.phase != Phase::Forward) continue;
        upwards(op.layer, [&](LayerPlan& plan) {
            ++plan.forwardOps;
            if (again[i] > 0) ++plan.recomputedOps;
            plan.recomputeTime += op.time * again[i];
        });
    }
    for (std::size_t s = 0; s < graph.storages.size(); ++s) {
        const Storage& storage = graph.storages[s];
        if (storage.isConstant() || !made.baseline[s]) continue;
        upwards(graph.ops[storage.creator].layer, [&](LayerPlan& plan) {
            (made.retained[s] ? plan.retained : plan.dropped) += storage.bytes;
        });
    }
    return plans;
}

std::vector<LayerIndex> checkpointRegions(const TrainingGraph& graph,
                                          const std::vector<LayerPlan>& layers) {
    Bytes total;
    std::vector<std::vector<LayerIndex>> children(graph.layers.size());
    std::vector<LayerIndex> open, regions;
    for (std::size_t i = 0; i < layers.size(); ++i) {
        const LayerIndex parent = graph.layers[i].parent;
        if (parent == kNone) {
            total += layers[i].dropped;
            // "(root)" is the model itself: its children are what can be wrapped.
            open.push_back(static_cast<LayerIndex>(i));
        } else {
            children[parent].push_back(static_cast<LayerIndex>(i));
        }
    }
    while (!open.empty()) {
        const LayerIndex layer = open.back();
        open.pop_back();
        if (layers[layer].dropped == Bytes(0)) continue;
        // Split where the children hold all that is dropped here, or where this is not a module.
        Bytes below;
        bool large = true;
        for (const LayerIndex child : children[layer]) {
            below += layers[child].dropped;
            if (layers[child].dropped > Bytes(0))
                large &= layers[child].dropped * kSmallestShare >= total;
        }
        const bool split = below == layers[layer].dropped && large && !children[layer].empty();
        if (isModule(graph, layer) && !split)
            regions.push_back(layer);
        else
            open.insert(open.end(), children[layer].rbegin(), children[layer].rend());
    }
    std::sort(regions.begin(), regions.end());
    return regions;
}

std::string layerListCsv(const TrainingGraph& graph, const Plan& plan) {
    const std::vector<LayerPlan> layers = layerPlans(graph, plan.schedule);
    const std::vector<LayerIndex> regions = checkpointRegions(graph, layers);
    std::string text =
        "layer,type,forward_ops,recomputed_ops,recompute_ns,retained_bytes,dropped_bytes,"
        "checkpoint\n";
    for (const LayerPlan& row : layers) {
        const Layer& layer = graph.layers[row.layer];
        const bool region = std::find(regions.begin(), regions.end(), row.layer) != regions.end();
        text += layer.path + "," + layer.type + "," + std::to_string(row.forwardOps) + "," +
                std::to_string(row.recomputedOps) + "," +
                std::to_string(row.recomputeTime.count()) + "," +
                std::to_string(row.retained.count()) + "," + std::to_string(row.dropped.count()) +
                (region ? ",1\n" : ",0\n");
    }
    return text;
}

Result<std::string> torchPolicy(const TrainingGraph& graph, const Plan& plan) {
    const std::vector<LayerPlan> layers = layerPlans(graph, plan.schedule);
    const std::vector<LayerIndex> regions = checkpointRegions(graph, layers);
    if (regions.empty())
        return badInput(
            "the plan drops nothing that a checkpoint of a layer could give back",
            graph.layers.empty() ? "its source names no layers" : "plan with a smaller budget");
    const Decisions made = decide(graph, plan.schedule);
    nlohmann::ordered_json table = nlohmann::ordered_json::object();
    for (const LayerIndex region : regions) {
        std::map<std::string, std::int64_t> calls;
        std::map<std::string, std::vector<std::int64_t>> saved;
        for (std::size_t i = 0; i < graph.ops.size(); ++i) {
            const Op& op = graph.ops[i];
            if (op.phase != Phase::Forward || !within(graph, op.layer, region)) continue;
            const std::string name = op.name.substr(0, op.name.find('.'));
            const std::int64_t call = calls[name]++;
            if (made.saves[i]) saved[name].push_back(call);
        }
        auto& entry = table[graph.layers[region].path] = nlohmann::ordered_json::object();
        for (const auto& [name, list] : saved) entry[name] = list;
    }
    return "# Selective checkpoints of a Highwater plan (" + plan.planner + ", budget " +
           std::to_string(plan.budget.count()) +
           " bytes), for torch 2.5 and later:\n"
           "#     import THIS_FILE; THIS_FILE.apply(model)\n"
           "# REGIONS: module -> op -> numbers of its calls, from 0, whose results are kept for "
           "backward.\nREGIONS = " +
           table.dump(1) + "\n" + kModuleText;
}

}  // namespace hw::core
