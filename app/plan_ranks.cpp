// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/plan_ranks.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <vector>

#include "core/memory/evaluate.h"

namespace hw::app {
namespace {

using namespace hw::core;

struct Rank {
    int rank = 0;
    std::string host;
    TrainingGraph graph;
    Evaluation baseline;
    planners::Outcome outcome;
    std::optional<int> like;  // the rank whose plan it has
    std::string file;

    bool planned() const { return outcome.status == planners::PlanStatus::Ok; }
};

/// Each process with its last step, by rank.
Result<std::vector<Rank>> loadRanks(const RanksToPlan& what) {
    auto first = loadStep(what.file, {}, what.costs);
    if (!first) return first.error();
    const auto processes = first->session.processes();
    if (!processes) return processes.error();
    const auto steps = first->session.steps();
    if (!steps) return steps.error();
    std::map<std::int64_t, std::int64_t> last;  // by process
    for (const StepRow& step : *steps) last[step.process] = step.id;
    std::vector<Rank> ranks;
    for (const ProcessRow& process : *processes) {
        const auto at = last.find(process.id);
        if (at == last.end()) continue;
        auto step = loadStep(what.file, at->second, what.costs);
        if (!step) return step.error();
        Rank& rank = ranks.emplace_back();
        rank.rank = process.rank, rank.host = process.host;
        rank.graph = std::move(step->graph), rank.baseline = std::move(step->baseline);
    }
    std::stable_sort(ranks.begin(), ranks.end(),
                     [](const Rank& a, const Rank& b) { return a.rank < b.rank; });
    return ranks;
}

/// The plan of another rank with the same graph, where it keeps the budget here too: times and
/// workspaces are the rank's own.
bool takePlanOf(const Rank& other, Rank& rank) {
    if (!other.planned()) return false;
    const Evaluation judged = evaluate(rank.graph, other.outcome.plan->schedule);
    if (!judged.valid || judged.peak > other.outcome.budget) return false;
    rank.outcome = other.outcome;
    rank.outcome.peak = judged.peak, rank.outcome.time = judged.time;
    rank.outcome.overhead = ratio(judged.time, rank.baseline.time);
    rank.outcome.lowerBound.reset(), rank.outcome.gap.reset();
    rank.outcome.solveSeconds = rank.outcome.solveCpuSeconds = 0;
    Plan& plan = *rank.outcome.plan;
    plan.predictedPeak = judged.peak, plan.predictedTime = judged.time;
    plan.overhead = rank.outcome.overhead;
    plan.lowerBound.reset();
    rank.like = other.rank;
    return true;
}

Status planAll(const RanksToPlan& what, Bytes budget, std::vector<Rank>& ranks) {
    planners::PlanRequest request = what.request;
    request.budget = budget;
    std::multimap<std::string, const Rank*> planned;  // by fingerprint: those planned by themselves
    for (Rank& rank : ranks) {
        const std::string fingerprint = rank.graph.fingerprint();
        const auto [from, to] = planned.equal_range(fingerprint);
        if (std::any_of(from, to, [&](const auto& each) { return takePlanOf(*each.second, rank); }))
            continue;
        auto outcome = planners::planWith(what.planner, rank.graph, request, terminalProgress());
        clearProgress();
        if (!outcome) return outcome.error();
        rank.outcome = std::move(*outcome);
        planned.emplace(fingerprint, &rank);
    }
    return {};
}

Status writeAll(const std::string& folder, std::vector<Rank>& ranks) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error)
        return badInput("cannot make the folder '" + folder + "': " + error.message(),
                        "choose another one with -o");
    for (Rank& rank : ranks) {
        rank.file =
            (std::filesystem::path(folder) / ("rank" + std::to_string(rank.rank) + ".plan.json"))
                .string();
        HW_TRY(writePlanFile(*rank.outcome.plan, rank.file));
    }
    return {};
}

/// The step lasts as long as its slowest rank.
const Rank& slowest(const std::vector<Rank>& ranks) {
    return *std::max_element(ranks.begin(), ranks.end(), [](const Rank& a, const Rank& b) {
        return a.outcome.time < b.outcome.time;
    });
}
Nanoseconds baselineTime(const std::vector<Rank>& ranks) {
    Nanoseconds longest;
    for (const Rank& rank : ranks) longest = std::max(longest, rank.baseline.time);
    return longest;
}

Json ranksJsonOf(const std::vector<Rank>& ranks) {
    Json list = Json::array();
    for (const Rank& rank : ranks) {
        Json json = outcomeJson(rank.outcome);
        json["rank"] = rank.rank, json["host"] = rank.host, json["step"] = rank.graph.sessionStep;
        json["baseline_peak_bytes"] = rank.baseline.peak.count();
        json["baseline_time_ns"] = rank.baseline.time.count();
        json["planned_as_rank"] = rank.like ? Json(*rank.like) : Json(nullptr);
        if (!rank.file.empty()) json["file"] = rank.file;
        list.push_back(std::move(json));
    }
    return list;
}

void printTable(const std::vector<Rank>& ranks, const std::string& folder) {
    std::printf("%5s  %-16s %12s %12s %12s %12s  %s\n", "rank", "host", "peak", "planned",
                "step time", "extra", "recomputed");
    const Rank& last = slowest(ranks);
    for (const Rank& rank : ranks)
        std::printf("%5d  %-16s %12s %12s %12s %12s  %lld of %zu ops%s%s\n", rank.rank,
                    rank.host.c_str(), humanBytes(rank.baseline.peak).c_str(),
                    humanBytes(rank.outcome.peak).c_str(), humanTime(rank.outcome.time).c_str(),
                    percent(rank.outcome.overhead).c_str(),
                    static_cast<long long>(rank.outcome.recomputedOps), rank.graph.ops.size(),
                    rank.like ? (", as rank " + std::to_string(*rank.like)).c_str() : "",
                    &rank == &last ? ", sets the step" : "");
    const Nanoseconds before = baselineTime(ranks);
    std::printf("the step takes %s, %s (op times; rank %d is the slowest)\n",
                humanTime(last.outcome.time).c_str(),
                percent(ratio(last.outcome.time, before)).c_str(), last.rank);
    std::printf("written to %s\n", folder.c_str());
}

int report(const RanksToPlan& what, Bytes budget, const std::vector<Rank>& ranks,
           const Common& common) {
    const auto lacking =
        std::find_if(ranks.begin(), ranks.end(), [](const Rank& rank) { return !rank.planned(); });
    const bool all = lacking == ranks.end();
    if (common.json) {
        Json json{{"planner", what.planner},
                  {"status", all ? "ok" : planners::planStatusName(lacking->outcome.status)},
                  {"budget_bytes", budget.count()},
                  {"baseline_time_ns", baselineTime(ranks).count()}};
        json["slowest_rank"] = all ? Json(slowest(ranks).rank) : Json(nullptr);
        json["time_ns"] = all ? Json(slowest(ranks).outcome.time.count()) : Json(nullptr);
        json["ranks"] = ranksJsonOf(ranks);
        printJson(json);
    } else if (all) {
        printTable(ranks, what.folder);
    }
    if (all) return 0;
    return fail({ErrorCode::NoPlan,
                 what.planner + " has no plan for rank " + std::to_string(lacking->rank) +
                     " within " + humanBytes(budget) + " (" +
                     std::string(planners::planStatusName(lacking->outcome.status)) +
                     "): " + lacking->outcome.reason,
                 "give a larger budget; no plan at all for this rank fits below " +
                     humanBytes(lacking->graph.floorBytes())});
}

}  // namespace

int planRanks(const RanksToPlan& what, const Common& common) {
    auto ranks = loadRanks(what);
    if (!ranks) return fail(ranks.error());
    Bytes highest;
    for (const Rank& rank : *ranks) highest = std::max(highest, rank.baseline.peak);
    const auto budget = what.budget(highest);
    if (!budget) return fail(budget.error());
    if (const Status planned = planAll(what, *budget, *ranks); !planned)
        return fail(planned.error());
    if (std::all_of(ranks->begin(), ranks->end(), [](const Rank& rank) { return rank.planned(); }))
        if (const Status written = writeAll(what.folder, *ranks); !written)
            return fail(written.error());
    return report(what, *budget, *ranks, common);
}

}  // namespace hw::app
