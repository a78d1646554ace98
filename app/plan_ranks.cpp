// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/plan_ranks.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <vector>

#include "core/import/import.h"
#include "core/memory/evaluate.h"
#include "core/ranks/rank_steps.h"

namespace hw::app {
namespace {

using namespace hw::core;

/// The ranks of a session with what is planned for each, in the same order.
struct Ranks {
    std::vector<LoadedRank> loaded;
    planners::RankPoint point;
    std::vector<planners::RankOutcome> outcomes;
    std::vector<Bytes> spared;  // by recomputing while they would wait
    std::vector<std::string> files;

    StepTime time() const { return planners::plannedTime(loaded, outcomes); }
};

Status writeAll(const std::string& folder, Ranks& ranks) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error)
        return badInput("cannot make the folder '" + folder + "': " + error.message(),
                        "choose another one with -o");
    for (std::size_t r = 0; r < ranks.loaded.size(); ++r) {
        const std::string name = "rank" + std::to_string(ranks.loaded[r].rank) + ".plan.json";
        ranks.files[r] = (std::filesystem::path(folder) / name).string();
        HW_TRY(writePlanFile(*ranks.outcomes[r].outcome.plan, ranks.files[r]));
    }
    return {};
}

Json ranksJsonOf(const Ranks& ranks, const StepTime& before, const StepTime& after) {
    Json list = Json::array();
    for (std::size_t r = 0; r < ranks.loaded.size(); ++r) {
        const LoadedRank& rank = ranks.loaded[r];
        Json json = rankOutcomeJson(rank, ranks.outcomes[r]);
        json["step"] = rank.graph.sessionStep;
        json["baseline_waiting_ns"] = before.ranks[r].waiting.count();
        json["waiting_ns"] =
            after.ranks.empty() ? Json(nullptr) : Json(after.ranks[r].waiting.count());
        json["spared_bytes"] = ranks.spared[r].count();
        if (!ranks.files[r].empty()) json["file"] = ranks.files[r];
        list.push_back(std::move(json));
    }
    return list;
}

std::string noteOf(const Ranks& ranks, std::size_t r, bool decides) {
    std::string note;
    if (ranks.outcomes[r].like) note += ", as rank " + std::to_string(*ranks.outcomes[r].like);
    if (ranks.spared[r] > Bytes(0))
        note += ", spares " + humanBytes(ranks.spared[r]) + " while it waits";
    if (decides) note += ", sets the step";
    return note;
}

void printTable(const Ranks& ranks, const StepTime& before, const StepTime& after,
                const std::string& folder) {
    std::printf("%5s  %-16s %12s %12s %12s %12s %12s  %s\n", "rank", "host", "peak", "planned",
                "ops take", "extra", "waits", "recomputed");
    for (std::size_t r = 0; r < ranks.loaded.size(); ++r) {
        const LoadedRank& rank = ranks.loaded[r];
        const planners::Outcome& planned = ranks.outcomes[r].outcome;
        std::printf("%5d  %-16s %12s %12s %12s %12s %12s  %lld of %zu ops%s\n", rank.rank,
                    rank.host.c_str(), humanBytes(rank.baseline.peak).c_str(),
                    humanBytes(planned.peak).c_str(), humanTime(planned.time).c_str(),
                    percent(planned.overhead).c_str(), humanTime(after.ranks[r].waiting).c_str(),
                    static_cast<long long>(planned.recomputedOps), rank.graph.ops.size(),
                    noteOf(ranks, r, r == after.decides).c_str());
    }
    std::printf("the step takes %s, %s (op times, and waiting for each other; rank %d decides)\n",
                humanTime(after.time).c_str(), percent(ratio(after.time, before.time)).c_str(),
                ranks.loaded[after.decides].rank);
    if (!after.matched)
        std::printf(
            "some collectives have no counterpart in these steps: they are not waited for\n");
    std::printf("written to %s\n", folder.c_str());
}

int report(const RanksToPlan& what, const Ranks& ranks, const Common& common) {
    const auto lacking = std::find_if(ranks.outcomes.begin(), ranks.outcomes.end(),
                                      [](const auto& rank) { return !rank.planned(); });
    const bool all = lacking == ranks.outcomes.end();
    const StepTime before = recordedTime(ranks.loaded);
    const StepTime after = all ? ranks.time() : StepTime();
    Bytes budget;
    for (const auto& request : ranks.point.requests) budget = std::max(budget, request.budget);
    if (common.json) {
        Json json{{"planner", what.planner},
                  {"status", all ? "ok" : planners::planStatusName(lacking->outcome.status)},
                  {"budget_bytes", budget.count()},
                  {"baseline_time_ns", before.time.count()}};
        json["slowest_rank"] = all ? Json(ranks.loaded[after.decides].rank) : Json(nullptr);
        json["time_ns"] = all ? Json(after.time.count()) : Json(nullptr);
        json["exchanges_matched"] = before.matched;
        json["ranks"] = ranksJsonOf(ranks, before, after);
        answerWith(json);
    } else if (all) {
        printTable(ranks, before, after, what.folder);
    }
    if (all) return 0;
    const LoadedRank& rank =
        ranks.loaded[static_cast<std::size_t>(lacking - ranks.outcomes.begin())];
    return fail({ErrorCode::NoPlan,
                 what.planner + " has no plan for rank " + std::to_string(rank.rank) + " within " +
                     humanBytes(lacking->outcome.budget) + " (" +
                     std::string(planners::planStatusName(lacking->outcome.status)) +
                     "): " + lacking->outcome.reason,
                 "give a larger budget; no plan at all for this rank fits below " +
                     humanBytes(rank.graph.floorBytes())});
}

}  // namespace

Result<std::vector<LoadedRank>> openRanks(const std::string& file, std::optional<CostSet> costs) {
    const auto session = openAny(file);
    if (!session) return session.error();
    auto ranks = loadRanks(*session, costs);
    if (ranks && ranks->empty()) return session->lastStep().error();
    return ranks;
}

Bytes highestPeak(const std::vector<LoadedRank>& ranks) {
    Bytes highest;
    for (const LoadedRank& rank : ranks) highest = std::max(highest, rank.baseline.peak);
    return highest;
}

Json rankOutcomeJson(const LoadedRank& rank, const planners::RankOutcome& planned) {
    Json json = outcomeJson(planned.outcome);
    json["rank"] = rank.rank, json["host"] = rank.host;
    json["baseline_peak_bytes"] = rank.baseline.peak.count();
    json["baseline_time_ns"] = rank.baseline.time.count();
    json["planned_as_rank"] = planned.like ? Json(*planned.like) : Json(nullptr);
    return json;
}

int planRanks(const RanksToPlan& what, const Common& common) {
    auto loaded = openRanks(what.file, what.costs);
    if (!loaded) return fail(loaded.error());
    Ranks ranks;
    ranks.point.planner = what.planner;
    const Bytes highest = highestPeak(*loaded);
    for (const LoadedRank& rank : *loaded) {
        const auto budget = what.budget(what.each ? rank.baseline.peak : highest);
        if (!budget) return fail(budget.error());
        ranks.point.requests.push_back(what.request);
        ranks.point.requests.back().budget = *budget;
    }
    ranks.loaded = std::move(*loaded);
    ranks.spared.resize(ranks.loaded.size()), ranks.files.resize(ranks.loaded.size());
    auto planned = planners::planRanks(ranks.loaded, {ranks.point}, 0, terminalProgress());
    clearProgress();
    if (!planned) return fail(planned.error());
    ranks.outcomes = std::move(planned->front());
    const bool all = std::all_of(ranks.outcomes.begin(), ranks.outcomes.end(),
                                 [](const auto& rank) { return rank.planned(); });
    if (all && what.spare) {
        auto spared = planners::spareWhileWaiting(ranks.loaded, ranks.point, ranks.outcomes,
                                                  terminalProgress());
        clearProgress();
        if (!spared) return fail(spared.error());
        ranks.spared = std::move(*spared);
    }
    if (all)
        if (const Status written = writeAll(what.folder, ranks); !written)
            return fail(written.error());
    return report(what, ranks, common);
}

}  // namespace hw::app
