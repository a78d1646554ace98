// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/plan_ranks.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <vector>

#include "core/import/import.h"
#include "core/memory/evaluate.h"
#include "core/ranks/rank_steps.h"

namespace hw::app {
namespace {

using namespace hw::core;

struct Rank : LoadedRank {
    Bytes budget;
    planners::Outcome outcome;
    Bytes spared;             // by recomputing while it would wait
    std::optional<int> like;  // the rank whose plan it has
    std::string file;

    bool planned() const { return outcome.status == planners::PlanStatus::Ok; }
};

/// How long the step takes: under the plans, or as it is.
StepTime timeOf(const std::vector<Rank>& ranks, bool planned) {
    std::vector<RankStep> steps;
    for (const Rank& rank : ranks)
        steps.push_back({rank.rank, &rank.graph,
                         planned ? &rank.outcome.plan->schedule : &rank.captured, &rank.exchanges});
    return simulateStep(steps);
}

/// The plan of another rank with the same graph, where it keeps the budget here too: times and
/// workspaces are the rank's own.
bool takePlanOf(const Rank& other, Rank& rank) {
    if (!other.planned()) return false;
    const Evaluation judged = evaluate(rank.graph, other.outcome.plan->schedule);
    if (!judged.valid || judged.peak > rank.budget) return false;
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

Status planAll(const RanksToPlan& what, std::vector<Rank>& ranks) {
    planners::PlanRequest request = what.request;
    std::multimap<std::string, const Rank*> planned;  // by fingerprint: those planned by themselves
    for (Rank& rank : ranks) {
        request.budget = rank.budget;
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

/// A rank that waits for others takes less memory for the same step time.
Status spareMemory(const RanksToPlan& what, std::vector<Rank>& ranks) {
    constexpr int kProbes = 5;
    constexpr std::int64_t kTolerance = 1000;  // of the step's time
    const StepTime before = timeOf(ranks, true);
    const Nanoseconds limit = before.time + Nanoseconds(before.time.count() / kTolerance);
    planners::PlanRequest request = what.request;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
        if (r == before.decides) continue;
        Rank& rank = ranks[r];
        Bytes fits = rank.outcome.peak, least = rank.graph.floorBytes();
        const Bytes planned = fits;
        for (int probe = 0; probe < kProbes && least < fits; ++probe) {
            request.budget = Bytes((least + fits).count() / 2);
            auto outcome =
                planners::planWith(what.planner, rank.graph, request, terminalProgress());
            clearProgress();
            if (!outcome) return outcome.error();
            const Bytes tried = request.budget;
            if (outcome->status == planners::PlanStatus::Ok) {
                std::swap(rank.outcome, *outcome);
                if (timeOf(ranks, true).time <= limit) {
                    fits = rank.outcome.peak;
                    rank.like.reset();
                    continue;
                }
                std::swap(rank.outcome, *outcome);
            }
            least = tried;
        }
        rank.spared = planned - fits;
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

Json ranksJsonOf(const std::vector<Rank>& ranks, const StepTime& before, const StepTime& after) {
    Json list = Json::array();
    for (std::size_t r = 0; r < ranks.size(); ++r) {
        const Rank& rank = ranks[r];
        Json json = outcomeJson(rank.outcome);
        json["rank"] = rank.rank, json["host"] = rank.host, json["step"] = rank.graph.sessionStep;
        json["baseline_peak_bytes"] = rank.baseline.peak.count();
        json["baseline_time_ns"] = rank.baseline.time.count();
        json["baseline_waiting_ns"] = before.ranks[r].waiting.count();
        json["waiting_ns"] =
            after.ranks.empty() ? Json(nullptr) : Json(after.ranks[r].waiting.count());
        json["spared_bytes"] = rank.spared.count();
        json["planned_as_rank"] = rank.like ? Json(*rank.like) : Json(nullptr);
        if (!rank.file.empty()) json["file"] = rank.file;
        list.push_back(std::move(json));
    }
    return list;
}

std::string noteOf(const Rank& rank, bool decides) {
    std::string note;
    if (rank.like) note += ", as rank " + std::to_string(*rank.like);
    if (rank.spared > Bytes(0)) note += ", spares " + humanBytes(rank.spared) + " while it waits";
    if (decides) note += ", sets the step";
    return note;
}

void printTable(const std::vector<Rank>& ranks, const StepTime& before, const StepTime& after,
                const std::string& folder) {
    std::printf("%5s  %-16s %12s %12s %12s %12s %12s  %s\n", "rank", "host", "peak", "planned",
                "ops take", "extra", "waits", "recomputed");
    for (std::size_t r = 0; r < ranks.size(); ++r) {
        const Rank& rank = ranks[r];
        std::printf("%5d  %-16s %12s %12s %12s %12s %12s  %lld of %zu ops%s\n", rank.rank,
                    rank.host.c_str(), humanBytes(rank.baseline.peak).c_str(),
                    humanBytes(rank.outcome.peak).c_str(), humanTime(rank.outcome.time).c_str(),
                    percent(rank.outcome.overhead).c_str(),
                    humanTime(after.ranks[r].waiting).c_str(),
                    static_cast<long long>(rank.outcome.recomputedOps), rank.graph.ops.size(),
                    noteOf(rank, r == after.decides).c_str());
    }
    std::printf("the step takes %s, %s (op times, and waiting for each other; rank %d decides)\n",
                humanTime(after.time).c_str(), percent(ratio(after.time, before.time)).c_str(),
                ranks[after.decides].rank);
    if (!after.matched)
        std::printf("some collectives have no counterpart in these steps: nobody waits for them\n");
    std::printf("written to %s\n", folder.c_str());
}

int report(const RanksToPlan& what, const std::vector<Rank>& ranks, const Common& common) {
    const auto lacking =
        std::find_if(ranks.begin(), ranks.end(), [](const Rank& rank) { return !rank.planned(); });
    const bool all = lacking == ranks.end();
    const StepTime before = timeOf(ranks, false);
    const StepTime after = all ? timeOf(ranks, true) : StepTime();
    Bytes budget;
    for (const Rank& rank : ranks) budget = std::max(budget, rank.budget);
    if (common.json) {
        Json json{{"planner", what.planner},
                  {"status", all ? "ok" : planners::planStatusName(lacking->outcome.status)},
                  {"budget_bytes", budget.count()},
                  {"baseline_time_ns", before.time.count()}};
        json["slowest_rank"] = all ? Json(ranks[after.decides].rank) : Json(nullptr);
        json["time_ns"] = all ? Json(after.time.count()) : Json(nullptr);
        json["exchanges_matched"] = before.matched;
        json["ranks"] = ranksJsonOf(ranks, before, after);
        printJson(json);
    } else if (all) {
        printTable(ranks, before, after, what.folder);
    }
    if (all) return 0;
    return fail({ErrorCode::NoPlan,
                 what.planner + " has no plan for rank " + std::to_string(lacking->rank) +
                     " within " + humanBytes(lacking->budget) + " (" +
                     std::string(planners::planStatusName(lacking->outcome.status)) +
                     "): " + lacking->outcome.reason,
                 "give a larger budget; no plan at all for this rank fits below " +
                     humanBytes(lacking->graph.floorBytes())});
}

}  // namespace

int planRanks(const RanksToPlan& what, const Common& common) {
    const auto session = openAny(what.file);
    if (!session) return fail(session.error());
    auto loaded = loadRanks(*session, what.costs);
    if (!loaded) return fail(loaded.error());
    if (loaded->empty()) return fail(session->lastStep().error());
    std::vector<Rank> ranks;
    for (LoadedRank& rank : *loaded) ranks.push_back({std::move(rank), {}, {}, {}, {}, {}});
    Bytes highest;
    for (const Rank& rank : ranks) highest = std::max(highest, rank.baseline.peak);
    for (Rank& rank : ranks) {
        const auto budget = what.budget(what.each ? rank.baseline.peak : highest);
        if (!budget) return fail(budget.error());
        rank.budget = *budget;
    }
    if (const Status planned = planAll(what, ranks); !planned) return fail(planned.error());
    const bool all =
        std::all_of(ranks.begin(), ranks.end(), [](const Rank& rank) { return rank.planned(); });
    if (all && what.spare)
        if (const Status spared = spareMemory(what, ranks); !spared) return fail(spared.error());
    if (all)
        if (const Status written = writeAll(what.folder, ranks); !written)
            return fail(written.error());
    return report(what, ranks, common);
}

}  // namespace hw::app
