// SPDX-License-Identifier: MIT
#include "core/ranks/rank_steps.h"

#include <algorithm>
#include <map>
#include <utility>

namespace hw::core {

Result<std::vector<LoadedRank>> loadRanks(const Session& session, std::optional<CostSet> costs) {
    const auto processes = session.processes();
    if (!processes) return processes.error();
    const auto steps = session.steps();
    if (!steps) return steps.error();
    std::map<std::int64_t, StepRow> last;  // by process
    for (const StepRow& step : *steps) last[step.process] = step;
    std::vector<LoadedRank> ranks;
    for (const ProcessRow& process : *processes) {
        const auto at = last.find(process.id);
        if (at == last.end()) continue;
        auto graph = loadGraph(session, at->second.id, costs);
        if (!graph) return graph.error();
        auto exchanges = exchangesOf(session, at->second);
        if (!exchanges) return exchanges.error();
        LoadedRank& rank = ranks.emplace_back();
        rank.rank = process.rank, rank.host = process.host;
        rank.graph = std::move(*graph), rank.exchanges = std::move(*exchanges);
        rank.captured = baselineSchedule(rank.graph);
        rank.baseline = evaluate(rank.graph, rank.captured);
        if (!rank.baseline.valid)
            return badInput("'" + session.path() + "', rank " + std::to_string(rank.rank) +
                                ": the captured order does not replay: " + rank.baseline.why,
                            "the recording contradicts itself; record again");
    }
    std::stable_sort(ranks.begin(), ranks.end(),
                     [](const LoadedRank& a, const LoadedRank& b) { return a.rank < b.rank; });
    return ranks;
}

StepTime recordedTime(const std::vector<LoadedRank>& ranks) {
    std::vector<RankStep> steps;
    for (const LoadedRank& rank : ranks)
        steps.push_back({rank.rank, &rank.graph, &rank.captured, &rank.exchanges});
    return simulateStep(steps);
}

}  // namespace hw::core
