// SPDX-License-Identifier: MIT
#include "planners/chen.h"

#include <algorithm>
#include <cmath>

#include "planners/chen_search.h"
#include "planners/chen_segments.h"

namespace hw::planners {
namespace {

using namespace hw::core;
using namespace hw::planners::chen;

// Everything kept, freed at its last use rather than at the program's release; the baseline itself
// where that is not lower.
Schedule keepEverything(const TrainingGraph& graph, const RebuildInfo& info,
                        const ForwardPass& forward) {
    Schedule kept =
        dropSchedule(graph, info, forward, std::vector<bool>(graph.storages.size(), true));
    Schedule baseline = baselineSchedule(graph);
    const Evaluation judged = evaluate(graph, kept);
    return judged.valid && judged.peak <= evaluate(graph, baseline).peak ? kept : baseline;
}

// The plan of these cuts, or everything kept where its peak is above that.
Proposal whateverTheBudget(const TrainingGraph& graph, const RebuildInfo& info,
                           const ForwardPass& forward, const std::vector<Cut>& cuts) {
    Schedule kept = keepEverything(graph, info, forward);
    Schedule cut = segmentSchedule(graph, info, forward, cuts);
    const Evaluation judged = evaluate(graph, cut);
    const bool lower = judged.valid && judged.peak < evaluate(graph, kept).peak;
    Proposal proposal;
    proposal.status = PlanStatus::Ok;
    proposal.schedule = lower ? std::move(cut) : std::move(kept);
    return proposal;
}

// Values of a bound on bytes, evenly spaced in the logarithm, highest first.
std::vector<std::int64_t> logarithmicGrid(std::int64_t low, std::int64_t high, int count) {
    std::vector<std::int64_t> grid;
    const double ratio =
        static_cast<double>(high) / static_cast<double>(std::max<std::int64_t>(low, 1));
    for (int i = 0; i < count; ++i)
        grid.push_back(std::llround(static_cast<double>(high) *
                                    std::pow(ratio, -static_cast<double>(i) / (count - 1))));
    return grid;
}

}  // namespace

Proposal ChenSqrt::plan(const TrainingGraph& graph, const PlanRequest&,
                        const Progress& progress) const {
    if (progress.cancelled()) return cancelledProposal();
    const RebuildInfo info = rebuildInfo(graph);
    const ForwardPass forward = forwardPass(graph, info);
    const int parts =
        std::max(1, static_cast<int>(std::lround(std::sqrt(forward.effectiveLength))));
    return whateverTheBudget(graph, info, forward, equalCuts(forward, parts));
}

Proposal ChenRecursive::plan(const TrainingGraph& graph, const PlanRequest&,
                             const Progress& progress) const {
    if (progress.cancelled()) return cancelledProposal();
    const RebuildInfo info = rebuildInfo(graph);
    const ForwardPass forward = forwardPass(graph, info);
    return whateverTheBudget(graph, info, forward, splitFurther(forward, {}, 0));
}

Proposal ChenGreedy::plan(const TrainingGraph& graph, const PlanRequest& request,
                          const Progress& progress) const {
    constexpr int kBounds = 40;      // values of B
    constexpr int kInnerBounds = 8;  // of b, below each of some values of B
    const RebuildInfo info = rebuildInfo(graph);
    const ForwardPass forward = forwardPass(graph, info);
    std::int64_t largest = 0;
    for (StorageIndex s = 0; s < static_cast<StorageIndex>(graph.storages.size()); ++s)
        if (forward.saved[s]) largest = std::max(largest, graph.storages[s].bytes.count());
    Search search(graph, request.budget);
    search.consider(keepEverything(graph, info, forward));
    const std::int64_t total = forward.savedBytes(0, forward.end);
    std::vector<std::vector<Cut>> tried{{}};
    auto attempt = [&](std::vector<Cut> cuts) {
        if (std::find(tried.begin(), tried.end(), cuts) != tried.end()) return;
        search.consider(segmentSchedule(graph, info, forward, cuts));
        tried.push_back(std::move(cuts));
    };
    const std::vector<std::int64_t> bounds = logarithmicGrid(largest, total, kBounds);
    for (int i = 0; i < kBounds && total > 0 && !search.free(); ++i) {
        if (progress.cancelled()) return cancelledProposal();
        progress.report(static_cast<double>(i) / (2 * kBounds), "searching the segment size");
        attempt(greedyCuts(forward, bounds[i]));
    }
    for (int i = 0; i < kBounds && total > 0 && !search.found(); i += 4) {
        for (const std::int64_t inner : logarithmicGrid(largest, bounds[i], kInnerBounds)) {
            if (progress.cancelled()) return cancelledProposal();
            attempt(splitFurther(forward, greedyCuts(forward, bounds[i]), inner));
        }
        progress.report(0.5 + static_cast<double>(i) / (2 * kBounds), "splitting the segments");
    }
    return search.proposal("its segments, whatever their size,");
}

}  // namespace hw::planners
