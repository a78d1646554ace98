// SPDX-License-Identifier: MIT
#include "planners/mimose/mimose.h"

#include <algorithm>

#include "core/memory/rebuild.h"
#include "planners/mimose/layers.h"

namespace hw::planners {
namespace {

using namespace hw::core;

RecomputeSet storagesOf(const TrainingGraph& graph, const std::vector<MimoseLayer>& layers,
                        const LayerChoice& choice) {
    RecomputeSet set(graph.storages.size(), false);
    for (const int layer : choice)
        for (const StorageIndex s : layers[layer].storages) set[s] = true;
    return set;
}

}  // namespace

PlannerInfo Mimose::info() {
    return {.name = "mimose",
            .description = "Mimose (2022), whole layers dropped by the bucketed greedy scheduler",
            .colour = 5,
            .plansSizes = true,
            .make = [] { return std::make_unique<Mimose>(); }};
}

Proposal Mimose::plan(const TrainingGraph& graph, const PlanRequest& request,
                      const Progress& progress) const {
    const RebuildInfo info = rebuildInfo(graph);
    const ForwardPass forward(graph, info);
    const std::vector<MimoseLayer> layers = mimoseLayers(graph, info, forward);
    std::vector<Bytes> bytes;
    bytes.reserve(layers.size());
    for (const MimoseLayer& layer : layers) bytes.push_back(layer.bytes);

    Proposal proposal;
    proposal.schedule = baselineSchedule(graph);
    Bytes lowest = evaluate(graph, proposal.schedule).peak;
    Bytes excess = lowest - request.budget;
    if (excess <= Bytes(0)) {
        proposal.status = PlanStatus::Ok;
        return proposal;
    }
    for (Bytes taken(-1);;) {
        if (progress.cancelled()) return {PlanStatus::Cancelled, "cancelled", {}, {}, {}};
        const LayerChoice choice = chooseLayers(bytes, excess);
        Bytes sum;
        for (const int layer : choice) sum += bytes[layer];
        if (sum <= taken) break;  // nothing is left to drop
        taken = sum;
        progress.report(static_cast<double>(choice.size()) /
                            static_cast<double>(std::max<std::size_t>(layers.size(), 1)),
                        "dropping layers");
        Schedule schedule = forward.recompute(storagesOf(graph, layers, choice));
        const Evaluation result = evaluate(graph, schedule);
        lowest = std::min(lowest, result.peak);
        if (result.valid && result.peak <= request.budget) {
            proposal.status = PlanStatus::Ok;
            proposal.schedule = std::move(schedule);
            proposal.figures["layers_dropped"] = static_cast<std::int64_t>(choice.size());
            return proposal;
        }
        // Half of what is missing at a time, since a recomputation takes room of its own.
        const Bytes over = result.peak - request.budget;
        excess = taken + std::max(Bytes(over.count() / 2), Bytes(1));
    }
    proposal.schedule.clear();
    proposal.reason = "dropping whole layers leaves at least " + humanBytes(lowest);
    return proposal;
}

InputAwarePlanner::InputAwarePlanner(MimoseEstimator estimator, Bytes budget, double tolerance)
    : estimator_(std::move(estimator)), budget_(budget), cache_(tolerance) {}

std::optional<LayerChoice> InputAwarePlanner::choose(double size) {
    if (const LayerChoice* known = cache_.find(size)) return *known;
    auto choice = layersWithin(estimator_.bytesAt(size),
                               estimator_.restAt(size) + estimator_.residual(), budget_);
    if (choice) cache_.insert(size, *choice);
    return choice;
}

Schedule dropLayers(const TrainingGraph& graph, const LayerChoice& choice) {
    if (choice.empty()) return baselineSchedule(graph);
    const RebuildInfo info = rebuildInfo(graph);
    const ForwardPass forward(graph, info);
    return forward.recompute(storagesOf(graph, mimoseLayers(graph, info, forward), choice));
}

}  // namespace hw::planners
