// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>

#include "planners/chen/chen.h"
#include "planners/chen/search.h"
#include "planners/chen/segments.h"
#include "planners/windows/plan_windows.h"

namespace hw::planners {
namespace {

using namespace hw::core;
using namespace hw::planners::chen;

// Time per byte: of an op over what it makes or writes, of a storage over its rebuild.
double perByte(Nanoseconds time, std::int64_t bytes) {
    return static_cast<double>(std::max<std::int64_t>(time.count(), 1)) /
           static_cast<double>(std::max<std::int64_t>(bytes, 1));
}

struct Weighted {
    double value;
    double weight;
};

// Otsu: the bound between two classes for which weight x weight x (difference of means)^2 is
// largest; above every value when there is only one.
double classBound(std::vector<Weighted> points) {
    std::sort(points.begin(), points.end(),
              [](const Weighted& a, const Weighted& b) { return a.value < b.value; });
    double weight = 0, sum = 0;
    for (const Weighted& point : points) weight += point.weight, sum += point.weight * point.value;
    double lowWeight = 0, lowSum = 0, widest = 0;
    double bound = points.empty() ? 0 : points.back().value + 1;
    for (std::size_t i = 0; i + 1 < points.size(); ++i) {
        lowWeight += points[i].weight;
        lowSum += points[i].weight * points[i].value;
        if (points[i + 1].value <= points[i].value) continue;
        const double gap = (sum - lowSum) / (weight - lowWeight) - lowSum / lowWeight;
        const double variance = lowWeight * (weight - lowWeight) * gap * gap;
        if (variance > widest)
            widest = variance, bound = (points[i].value + points[i + 1].value) / 2;
    }
    return bound;
}

// Time per byte from which results are dear.
double dearFrom(const TrainingGraph& graph, const RebuildInfo& info, const ForwardPass& forward) {
    std::vector<Weighted> points;
    for (StorageIndex s = 0; s < static_cast<StorageIndex>(graph.storages.size()); ++s) {
        const std::int64_t bytes = graph.storages[s].bytes.count();
        if (forward.lastUse[s] == kNone || bytes == 0) continue;
        points.push_back({std::log(perByte(makingTime(graph, info, forward, s), bytes)),
                          static_cast<double>(bytes)});
    }
    return std::exp(classBound(std::move(points)));
}

// Per storage: time to rebuild it when everything is kept that is dear to rebuild; and what is.
struct Rebuilds {
    std::vector<Nanoseconds> time;
    std::vector<bool> dear;
};

Rebuilds rebuildTimes(const TrainingGraph& graph, const RebuildInfo& info,
                      const ForwardPass& forward, double bound) {
    Rebuilds rebuilds{std::vector<Nanoseconds>(graph.storages.size()),
                      std::vector<bool>(graph.storages.size(), true)};
    // Storages come in the order of their creators: inputs first, except what writers read.
    for (StorageIndex s = 0; s < static_cast<StorageIndex>(graph.storages.size()); ++s) {
        if (forward.lastUse[s] == kNone || !info.rematerializable[s]) continue;
        rebuilds.time[s] = makingTime(graph, info, forward, s);
        std::vector<StorageIndex> inputs;
        for (const OpIndex op : info.chain[s]) {
            if (op >= forward.end) break;
            for (const Use& use : graph.ops[op].inputs)
                inputs.push_back(graph.storageOf(use.tensor));
        }
        std::sort(inputs.begin(), inputs.end());
        inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
        for (const StorageIndex input : inputs) {
            const bool gone = forward.lastUse[input] != kNone && input != s &&
                              (!forward.saved[input] || !rebuilds.dear[input]);
            if (gone && info.rematerializable[input]) rebuilds.time[s] += rebuilds.time[input];
        }
        rebuilds.dear[s] = perByte(rebuilds.time[s], graph.storages[s].bytes.count()) >= bound;
    }
    return rebuilds;
}

}  // namespace

PlannerInfo ChenCheap::info() {
    return {.name = "chen-cheap",
            .description = "Chen et al. 2016, section 4.2: drops the results of cheap ops",
            .options = {"all=0|1"},
            .family = PlannerFamily::Chen,
            .colour = 1,
            .quick = true,
            .make = [] { return std::make_unique<ChenCheap>(); }};
}

Proposal ChenCheap::plan(const TrainingGraph& graph, const PlanRequest& request,
                         const Progress& progress) const {
    if (auto passes = planPasses(*this, graph, request, progress)) return std::move(*passes);
    constexpr int kGrid = 32;  // shares of the cheap bytes that are dropped
    const RebuildInfo info = rebuildInfo(graph);
    const ForwardPass forward = forwardPass(graph, info);
    const Rebuilds rebuilds = rebuildTimes(graph, info, forward, dearFrom(graph, info, forward));
    std::vector<StorageIndex> cheap;
    std::int64_t total = 0;
    for (StorageIndex s = 0; s < static_cast<StorageIndex>(graph.storages.size()); ++s)
        if (forward.saved[s] && !rebuilds.dear[s])
            cheap.push_back(s), total += graph.storages[s].bytes.count();
    const auto density = [&](StorageIndex s) {
        return perByte(rebuilds.time[s], graph.storages[s].bytes.count());
    };
    std::stable_sort(cheap.begin(), cheap.end(),
                     [&](StorageIndex a, StorageIndex b) { return density(a) < density(b); });

    std::vector<bool> keep(graph.storages.size(), true);
    if (const auto all = request.options.find("all");
        all != request.options.end() && all->second == "1") {
        for (const StorageIndex s : cheap) keep[s] = false;
        return {PlanStatus::Ok, {}, dropSchedule(graph, info, forward, keep), {}, {}};
    }
    Search search(graph, request.budget);
    search.consider(baselineSchedule(graph));
    auto next = cheap.begin();
    std::int64_t dropped = 0;
    for (int i = 0; i <= kGrid && !search.free(); ++i) {
        if (progress.cancelled()) return cancelledProposal();
        progress.report(static_cast<double>(i) / kGrid, "dropping cheap results");
        const auto before = next;
        for (; next != cheap.end() && dropped < total * i / kGrid; ++next)
            keep[*next] = false, dropped += graph.storages[*next].bytes.count();
        if (i == 0 || next != before) search.consider(dropSchedule(graph, info, forward, keep));
    }
    return search.proposal("plans that keep the results of dear ops");
}

}  // namespace hw::planners
