// SPDX-License-Identifier: MIT
#include "core/export/checkpoint_plan.h"

#include <algorithm>
#include <iomanip>
#include <map>
#include <sstream>

#include <nlohmann/json.hpp>

#include "core/base/csv.h"
#include "core/memory/evaluate.h"
#include "core/memory/held_by_plan.h"

namespace hw::core {
namespace {

constexpr const char* kModuleText = R"PY(
import contextlib

import torch
from torch.utils.checkpoint import (CheckpointPolicy, checkpoint,
                                    create_selective_checkpoint_contexts)


class _Policy:
    """Counts the calls of every op in one run of a module, forward and again, and looks them up.

    `forward` counts on over the runs of a step; recomputation starts where its own run did.
    """

    def __init__(self, calls, forward):
        self.calls = calls
        self.forward = forward
        self.again = dict(forward)

    def __call__(self, ctx, op, *args, **kwargs):
        name = op._schema.name
        counts = self.again if ctx.is_recompute else self.forward
        call = counts[name] = counts.get(name, -1) + 1
        total, saved = self.calls.get(name, (1, ()))
        # What returns one of its arguments, or a view of it, has nothing to save.
        fresh = all(each.alias_info is None for each in op._schema.returns)
        if call % total in saved and fresh:
            return CheckpointPolicy.MUST_SAVE
        return CheckpointPolicy.PREFER_RECOMPUTE


def contexts(path):
    """What torch.utils.checkpoint.checkpoint takes as context_fn for the module `path`."""
    calls = {name: (total, frozenset(saved)) for name, (total, saved) in REGIONS[path].items()}
    forward = {}
    return lambda: create_selective_checkpoint_contexts(_Policy(calls, forward))


@contextlib.contextmanager
def _statistics_stay(module, context):
    """What runs again leaves the running statistics of norms as they are."""
    kept = [(norm, name, norm._buffers[name]) for norm in module.modules()
            for name in ("running_mean", "running_var", "num_batches_tracked") if norm._buffers.get(name) is not None]
    for norm, name, value in kept:
        norm._buffers[name] = value.clone()
    try:
        with context:
            yield
    finally:
        for norm, name, value in kept:
            norm._buffers[name] = value


def apply(model):
    """Wraps the modules of the plan in their checkpoints; returns the model. Training only."""
    for path in REGIONS:
        module = model.get_submodule(path)
        module.forward = _wrapped(module, module.forward, contexts(path))
    return model


def _both(module, context_fn):
    forward, again = context_fn()
    return forward, _statistics_stay(module, again)


def _wrapped(module, forward, context_fn):
    def checkpointed(*args, **kwargs):
        if not (module.training and torch.is_grad_enabled()):
            return forward(*args, **kwargs)
        return checkpoint(forward, *args, use_reentrant=False, context_fn=lambda: _both(module, context_fn), **kwargs)

    return checkpointed
)PY";

}  // namespace

std::vector<LayerPlan> layerPlans(const TrainingGraph& graph, const Schedule& schedule) {
    const HeldByPlan held = heldByPlan(graph, schedule);
    std::vector<LayerPlan> plans(graph.layers.size());
    for (std::size_t i = 0; i < plans.size(); ++i) plans[i].layer = static_cast<LayerIndex>(i);
    const auto upwards = [&](LayerIndex layer, auto change) {
        for (; layer != kNone; layer = graph.layers[layer].parent) change(plans[layer]);
    };
    std::vector<std::int64_t> again(graph.ops.size(), 0);
    for (const Action& action : schedule)
        if (action.recomputes()) ++again[action.target];
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
        if (storage.isConstant() || !held.wanted[s]) continue;
        upwards(graph.ops[storage.creator].layer, [&](LayerPlan& plan) {
            (held.retained[s] ? plan.retained : plan.dropped) += storage.bytes;
        });
    }
    return plans;
}

std::string layerListCsv(const TrainingGraph& graph, const Plan& plan,
                         const std::optional<CheckpointChoice>& chosen) {
    std::string text =
        "layer,type,forward_ops,recomputed_ops,recompute_ns,retained_bytes,dropped_bytes,"
        "checkpoint\n";
    for (const LayerPlan& row : layerPlans(graph, plan.schedule)) {
        const Layer& layer = graph.layers[row.layer];
        const bool region = chosen && std::any_of(chosen->regions.begin(), chosen->regions.end(),
                                                  [&](const CheckpointRegion& of) {
                                                      return of.layer == row.layer;
                                                  });
        appendCsv(text, layer.path);
        text += ',';
        appendCsv(text, layer.type);
        text += "," + std::to_string(row.forwardOps) + "," + std::to_string(row.recomputedOps) +
                "," + std::to_string(row.recomputeTime.count()) + "," +
                std::to_string(row.retained.count()) + "," + std::to_string(row.dropped.count()) +
                (region ? ",1\n" : ",0\n");
    }
    return text;
}

Result<TorchPolicy> torchPolicy(const TrainingGraph& graph, const Plan& plan,
                                const std::optional<CheckpointChoice>& chosen) {
    if (!chosen)
        return badInput(
            "no checkpoint of a layer would lower the peak as this plan does",
            graph.layers.empty() ? "its source names no layers" : "plan with a smaller budget");
    const HeldByPlan held = heldByPlan(graph, plan.schedule);
    nlohmann::ordered_json table = nlohmann::ordered_json::object();
    for (const CheckpointRegion& region : chosen->regions) {
        std::map<std::string, std::int64_t> calls;
        std::map<std::string, std::vector<std::int64_t>> saved;
        for (std::size_t i = 0; i < graph.ops.size(); ++i) {
            const Op& op = graph.ops[i];
            if (op.phase != Phase::Forward || !isWithin(graph, op.layer, region.layer)) continue;
            const std::string name = op.name.substr(0, op.name.find('.'));
            const std::int64_t call = calls[name]++;
            if (region.keepsPlan && held.saves[i]) saved[name].push_back(call);
        }
        auto& entry = table[graph.layers[region.layer].path] = nlohmann::ordered_json::object();
        for (const auto& [name, list] : saved) entry[name] = {calls[name], list};
    }
    const Evaluation baseline = evaluate(graph, baselineSchedule(graph));
    if (chosen->forecast.peak > plan.budget)
        return Error{ErrorCode::NoPlan,
                     "checkpoints of modules would take " + humanBytes(chosen->forecast.peak) +
                         ", the plan's budget is " + humanBytes(plan.budget),
                     "'highwater train' carries the plan itself out; or plan with a larger budget"};
    std::ostringstream head;
    head << "# Selective checkpoints of a Highwater plan (" << plan.planner << ", budget "
         << plan.budget.count() << " bytes), for torch 2.5 and later:\n"
         << "#     import THIS_FILE; THIS_FILE.apply(model)\n"
         << "# Expected peak: " << chosen->forecast.peak.count() << " bytes of "
         << baseline.peak.count() << "; expected step time: " << std::fixed << std::setprecision(3)
         << static_cast<double>(chosen->forecast.time.count()) /
                static_cast<double>(baseline.time.count())
         << " of the recorded one.\n"
         << "# REGIONS: module -> op -> its calls in a step, and the numbers of those, from 0, "
            "whose "
            "results are kept\n# for backward.\nREGIONS = "
         << table.dump(1) << "\n"
         << kModuleText;
    return TorchPolicy{head.str(), chosen->forecast.peak, chosen->forecast.time, baseline.peak,
                       baseline.time};
}

}  // namespace hw::core
