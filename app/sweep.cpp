// SPDX-License-Identifier: GPL-3.0-or-later
#include <cstdio>
#include <sstream>

#include "app/cli.h"
#include "app/host_memory.h"
#include "app/menu.h"
#include "app/plan_ranks.h"
#include "core/base/file.h"
#include "core/base/freed_memory.h"
#include "planners/registry.h"
#include "planners/sweep.h"

namespace hw::app {
namespace {

using namespace hw::core;

struct SweepArguments {
    std::string file, csv, costs, dealloc, ranks;
    std::vector<std::string> planners;
    std::vector<double> ratios{1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2};
    double thrashLimit = 2.0;
    unsigned jobs = 0;
    std::optional<double> timeLimit;
    std::optional<std::int64_t> step;
    MenuArguments menu;
    HostMemoryWords hostMemory;
};

struct SweepRow {
    std::optional<int> rank;
    double ratio;
    planners::Outcome outcome;
};

/// A planner's request at a share of a peak.
planners::PlanRequest requestOf(const SweepArguments& arguments, const std::string& planner,
                                double ratio, Bytes peak, const planners::PlanRequest& choosing) {
    const planners::PlannerInfo& info = *planners::findPlanner(planner);
    planners::PlanRequest request = info.takesMenu ? choosing : planners::PlanRequest{};
    request.budget = Bytes(static_cast<std::int64_t>(static_cast<double>(peak.count()) * ratio));
    request.thrashLimit = arguments.thrashLimit;
    request.timeLimitSeconds = arguments.timeLimit;
    if (!arguments.dealloc.empty() && info.takesOption("dealloc"))
        request.options["dealloc"] = arguments.dealloc;
    return request;
}

Result<std::vector<SweepRow>> sweep(const SweepArguments& arguments, LoadedStep& step) {
    planners::PlanRequest choosing;
    if (const Status set = requestMenu(arguments.menu, step, choosing); !set) return set.error();
    std::vector<planners::SweepPoint> points;
    for (const std::string& planner : arguments.planners) {
        HostMemoryWords words = arguments.hostMemory;
        if (!planners::findPlanner(planner)->offloads) words = {};
        for (const double ratio : arguments.ratios) {
            auto request = requestOf(arguments, planner, ratio, step.baseline.peak, choosing);
            if (Status set = requestHostMemory(words, planner, step.graph, request); !set)
                return set.error();
            points.push_back({&step.graph, planner, std::move(request)});
        }
    }
    auto outcomes = planners::planSweep(points, {false, arguments.jobs}, terminalProgress());
    clearProgress();
    if (!outcomes) return outcomes.error();
    std::vector<SweepRow> rows;
    for (std::size_t i = 0; i < outcomes->size(); ++i)
        rows.push_back(
            {{}, arguments.ratios[i % arguments.ratios.size()], std::move((*outcomes)[i])});
    return rows;
}

Status writeCsv(const std::string& path, const std::vector<SweepRow>& rows) {
    std::ostringstream file;
    const bool ranks = !rows.empty() && rows.front().rank;
    file << (ranks ? "rank," : "")
         << "planner,ratio,status,budget_bytes,peak_bytes,time_ns,overhead,recomputed_ops,"
            "lower_bound_ns,gap,solve_seconds\n";
    for (const auto& [rank, ratio, row] : rows) {
        if (rank) file << *rank << ',';
        file << row.planner << ',' << ratio << ',' << planners::planStatusName(row.status) << ','
             << row.budget.count() << ',' << row.peak.count() << ',' << row.time.count() << ','
             << row.overhead << ',' << row.recomputedOps << ','
             << (row.lowerBound ? std::to_string(row.lowerBound->count()) : "") << ','
             << (row.gap ? std::to_string(*row.gap) : "") << ',' << row.solveSeconds << '\n';
    }
    return writeFileAtomically(path, file.str());
}

/// One planner at one budget, over all ranks.
struct StepRow {
    std::string planner;
    double ratio = 0;
    Bytes budget, peak;                                      // the highest of any rank
    std::optional<StepTime> time;                            // with a plan for each rank
    planners::PlanStatus status = planners::PlanStatus::Ok;  // of the first rank without one
    std::int64_t recomputedOps = 0;                          // of all ranks
    double seconds = 0;
};

StepRow stepRowOf(const std::vector<LoadedRank>& ranks,
                  const std::vector<planners::RankOutcome>& outcomes) {
    StepRow row;
    row.planner = outcomes.front().outcome.planner;
    bool all = true;
    for (const planners::RankOutcome& rank : outcomes) {
        row.budget = std::max(row.budget, rank.outcome.budget);
        row.peak = std::max(row.peak, rank.outcome.peak);
        row.recomputedOps += rank.outcome.recomputedOps;
        row.seconds += rank.outcome.solveSeconds;
        if (all && !rank.planned()) row.status = rank.outcome.status, all = false;
    }
    if (all) row.time = planners::plannedTime(ranks, outcomes);
    return row;
}

Json stepJson(const StepRow& row, const std::vector<LoadedRank>& ranks,
              const std::vector<planners::RankOutcome>& outcomes) {
    Json json{{"planner", row.planner},
              {"ratio", row.ratio},
              {"status", planners::planStatusName(row.status)},
              {"budget_bytes", row.budget.count()},
              {"peak_bytes", row.peak.count()}};
    json["time_ns"] = row.time ? Json(row.time->time.count()) : Json(nullptr);
    json["slowest_rank"] = row.time ? Json(ranks[row.time->decides].rank) : Json(nullptr);
    Json& each = json["ranks"] = Json::array();
    for (std::size_t r = 0; r < ranks.size(); ++r)
        each.push_back(rankOutcomeJson(ranks[r], outcomes[r]));
    return json;
}

void printSteps(const std::vector<StepRow>& rows, const std::vector<LoadedRank>& ranks,
                Nanoseconds before) {
    std::printf("%zu ranks; the step takes %s (op times, and waiting for each other)\n",
                ranks.size(), humanTime(before).c_str());
    std::printf("%-14s %6s %-11s %12s %12s %10s %7s %11s %9s\n", "planner", "ratio", "status",
                "budget", "highest", "step", "decides", "recomputed", "planning");
    for (const StepRow& row : rows)
        std::printf("%-14s %6.2f %-11s %12s %12s %10s %7s %11lld %7.3f s\n", row.planner.c_str(),
                    row.ratio, std::string(planners::planStatusName(row.status)).c_str(),
                    humanBytes(row.budget).c_str(), humanBytes(row.peak).c_str(),
                    row.time ? percent(ratio(row.time->time, before)).c_str() : "-",
                    row.time ? std::to_string(ranks[row.time->decides].rank).c_str() : "-",
                    static_cast<long long>(row.recomputedOps), row.seconds);
}

int runRanks(const SweepArguments& arguments, std::optional<CostSet> costs, const Common& common) {
    if (arguments.step || !(arguments.menu.file + arguments.menu.use).empty())
        return fail({ErrorCode::Usage, "--ranks sweeps the last step of each rank, without a menu",
                     "leave out --step, --menu and --use, or sweep the steps one by one"});
    const auto ranks = openRanks(arguments.file, costs);
    if (!ranks) return fail(ranks.error());
    const Bytes peak = highestPeak(*ranks);
    std::vector<planners::RankPoint> points;
    for (const std::string& planner : arguments.planners)
        for (const double ratio : arguments.ratios)
            points.push_back(
                {planner, {ranks->size(), requestOf(arguments, planner, ratio, peak, {})}});
    const auto outcomes = planners::planRanks(*ranks, points, arguments.jobs, terminalProgress());
    clearProgress();
    if (!outcomes) return fail(outcomes.error());
    const StepTime before = recordedTime(*ranks);
    std::vector<StepRow> steps;
    std::vector<SweepRow> rows;
    Json list = Json::array();
    for (std::size_t i = 0; i < outcomes->size(); ++i) {
        const double ratio = arguments.ratios[i % arguments.ratios.size()];
        StepRow& step = steps.emplace_back(stepRowOf(*ranks, (*outcomes)[i]));
        step.ratio = ratio;
        list.push_back(stepJson(step, *ranks, (*outcomes)[i]));
        for (std::size_t r = 0; r < ranks->size(); ++r) {
            rows.push_back({(*ranks)[r].rank, ratio, (*outcomes)[i][r].outcome});
            rows.back().outcome.plan.reset();
        }
    }
    if (!arguments.csv.empty())
        if (const Status written = writeCsv(arguments.csv, rows); !written)
            return fail(written.error());
    if (common.json)
        answerWith({{"baseline", {{"peak_bytes", peak.count()}, {"time_ns", before.time.count()}}},
                    {"rows", std::move(list)}});
    else
        printSteps(steps, *ranks, before.time);
    return 0;
}

/// Those that have a use for what was asked for.
std::vector<std::string> allPlanners(const HostMemoryWords& words) {
    std::vector<std::string> names;
    for (const auto& info : planners::plannerList())
        if (!info.needsHostMemory || words.offload == "on") names.push_back(info.name);
    return names;
}

int run(SweepArguments& arguments, const Common& common) {
    if (arguments.planners.empty()) arguments.planners = allPlanners(arguments.hostMemory);
    for (const std::string& planner : arguments.planners)
        if (const auto known = planners::makePlanner(planner); !known) return fail(known.error());
    for (const double ratio : arguments.ratios)
        if (!(ratio > 0))
            return fail(
                {ErrorCode::Usage, "ratios must be above 0", "for example --ratios 1.0,0.8,0.6"});
    std::optional<CostSet> costs;
    if (!arguments.costs.empty()) {
        const auto parsed = parseCosts(arguments.costs);
        if (!parsed) return fail(parsed.error());
        costs = *parsed;
    }
    keepFreedMemory();
    if (!arguments.ranks.empty()) return runRanks(arguments, costs, common);
    auto step = loadStep(arguments.file, arguments.step, costs);
    if (!step) return fail(step.error());
    const auto rows = sweep(arguments, *step);
    if (!rows) return fail(rows.error());
    if (!arguments.csv.empty())
        if (const Status written = writeCsv(arguments.csv, *rows); !written)
            return fail(written.error());
    if (common.json) {
        Json list = Json::array();
        for (const auto& [rank, ratio, outcome] : *rows) {
            Json row = outcomeJson(outcome);
            row["ratio"] = ratio;
            list.push_back(std::move(row));
        }
        answerWith({{"baseline",
                     {{"peak_bytes", step->baseline.peak.count()},
                      {"time_ns", step->graph.totalTime().count()}}},
                    {"rows", list}});
        return 0;
    }
    std::printf("%-14s %6s %-11s %12s %12s %10s %11s %9s\n", "planner", "ratio", "status", "budget",
                "peak", "time", "recomputed", "planning");
    for (const auto& [rank, ratio, row] : *rows)
        std::printf("%-14s %6.2f %-11s %12s %12s %10s %11lld %7.3f s\n", row.planner.c_str(), ratio,
                    std::string(planners::planStatusName(row.status)).c_str(),
                    humanBytes(row.budget).c_str(), humanBytes(row.peak).c_str(),
                    row.status == planners::PlanStatus::Ok ? percent(row.overhead).c_str() : "-",
                    static_cast<long long>(row.recomputedOps), row.solveSeconds);
    return 0;
}

}  // namespace

void addSweep(CLI::App& app, Common& common) {
    auto* command = addCommand(app, common, "sweep", "Every planner at every budget, as a table");
    auto arguments = std::make_shared<SweepArguments>();
    command->add_option("SESSION", arguments->file, "A session or an importable file")->required();
    command
        ->add_option("--planners", arguments->planners,
                     "Planners, separated by commas (default: all)")
        ->delimiter(',');
    command
        ->add_option("--ratios", arguments->ratios,
                     "Budgets as shares of the baseline's peak (default: 1,0.9,…,0.2)")
        ->delimiter(',')
        ->check(positive(kMostRatio));
    command
        ->add_option("--thrash-limit", arguments->thrashLimit,
                     "DTR stops above baseline time times this (default: 2)")
        ->check(positive(kMostSeconds));
    addDealloc(*command, arguments->dealloc);
    addHostMemory(*command, arguments->hostMemory);
    addMenu(*command, arguments->menu);
    addUse(*command, arguments->menu);
    command
        ->add_option("--time-limit", arguments->timeLimit,
                     "Seconds that one search may take (default: 10; DTR: no limit)")
        ->check(positive(kMostSeconds));
    command->add_option("--step", arguments->step, "The step (default: the last complete one)");
    command->add_option("--costs", arguments->costs,
                        "captured or measured (default: measured where present)");
    command
        ->add_option("--ranks", arguments->ranks,
                     "all: the last step of each rank, within one budget for each; a ratio is of "
                     "the highest peak")
        ->check(CLI::IsMember({"all"}));
    command
        ->add_option("--jobs", arguments->jobs,
                     "Plans that are made at once (default: as many as there are cores)")
        ->check(CLI::Range(1U, 1024U));
    command->add_option("--csv", arguments->csv, "Write the rows to this file too");
    command->callback([arguments, &common] { common.exitCode = run(*arguments, common); });
}

}  // namespace hw::app
