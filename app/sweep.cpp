// SPDX-License-Identifier: GPL-3.0-or-later
#include <cstdio>
#include <fstream>

#include "app/cli.h"
#include "app/menu.h"
#include "planners/registry.h"
#include "planners/sweep.h"

namespace hw::app {
namespace {

using namespace hw::core;

struct SweepArguments {
    std::string file, csv, costs, dealloc;
    std::vector<std::string> planners;
    std::vector<double> ratios{1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2};
    double thrashLimit = 2.0;
    std::optional<double> timeLimit;
    std::optional<std::int64_t> step;
    MenuArguments menu;
};

struct Row {
    double ratio;
    planners::Outcome outcome;
};

Result<std::vector<Row>> sweep(const SweepArguments& arguments, LoadedStep& step) {
    planners::PlanRequest choosing;
    if (const Status set = requestMenu(arguments.menu, step, choosing); !set) return set.error();
    std::vector<planners::SweepPoint> points;
    for (const std::string& planner : arguments.planners) {
        const planners::PlannerInfo& info = *planners::findPlanner(planner);
        for (const double ratio : arguments.ratios) {
            planners::PlanRequest request = info.takesMenu ? choosing : planners::PlanRequest{};
            request.budget = Bytes(
                static_cast<std::int64_t>(static_cast<double>(step.baseline.peak.count()) * ratio));
            request.thrashLimit = arguments.thrashLimit;
            request.timeLimitSeconds = arguments.timeLimit;
            if (!arguments.dealloc.empty() && info.takesOption("dealloc"))
                request.options["dealloc"] = arguments.dealloc;
            points.push_back({planner, std::move(request)});
        }
    }
    auto outcomes = planners::planSweep(step.graph, points, false, terminalProgress());
    clearProgress();
    if (!outcomes) return outcomes.error();
    std::vector<Row> rows;
    for (std::size_t i = 0; i < outcomes->size(); ++i)
        rows.push_back({arguments.ratios[i % arguments.ratios.size()], std::move((*outcomes)[i])});
    return rows;
}

Status writeCsv(const std::string& path, const std::vector<Row>& rows) {
    std::ofstream file(path, std::ios::trunc);
    file << "planner,ratio,status,budget_bytes,peak_bytes,time_ns,overhead,recomputed_ops,"
            "lower_bound_ns,gap,solve_seconds\n";
    for (const auto& [ratio, row] : rows)
        file << row.planner << ',' << ratio << ',' << planners::planStatusName(row.status) << ','
             << row.budget.count() << ',' << row.peak.count() << ',' << row.time.count() << ','
             << row.overhead << ',' << row.recomputedOps << ','
             << (row.lowerBound ? std::to_string(row.lowerBound->count()) : "") << ','
             << (row.gap ? std::to_string(*row.gap) : "") << ',' << row.solveSeconds << '\n';
    file.flush();
    if (!file)
        return badInput("cannot write '" + path + "'", "check that the folder exists and has room");
    return {};
}

int run(const SweepArguments& arguments, const Common& common) {
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
    auto step = loadStep(arguments.file, arguments.step, costs);
    if (!step) return fail(step.error());
    const auto rows = sweep(arguments, *step);
    if (!rows) return fail(rows.error());
    if (!arguments.csv.empty())
        if (const Status written = writeCsv(arguments.csv, *rows); !written)
            return fail(written.error());
    if (common.json) {
        Json list = Json::array();
        for (const auto& [ratio, outcome] : *rows) {
            Json row = outcomeJson(outcome);
            row["ratio"] = ratio;
            list.push_back(std::move(row));
        }
        printJson({{"baseline",
                    {{"peak_bytes", step->baseline.peak.count()},
                     {"time_ns", step->graph.totalTime().count()}}},
                   {"rows", list}});
        return 0;
    }
    std::printf("%-14s %6s %-11s %12s %12s %10s %11s %9s\n", "planner", "ratio", "status", "budget",
                "peak", "time", "recomputed", "planning");
    for (const auto& [ratio, row] : *rows)
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
    for (const auto& info : planners::plannerList()) arguments->planners.push_back(info.name);
    command->add_option("SESSION", arguments->file, "A session or an importable file")->required();
    command->add_option("--planners", arguments->planners, "Planners, separated by commas")
        ->delimiter(',');
    command->add_option("--ratios", arguments->ratios, "Budgets as shares of the baseline's peak")
        ->delimiter(',');
    command->add_option("--thrash-limit", arguments->thrashLimit,
                        "DTR stops above baseline time times this");
    addDealloc(*command, arguments->dealloc);
    addMenu(*command, arguments->menu);
    addUse(*command, arguments->menu);
    command->add_option("--time-limit", arguments->timeLimit, "Seconds that one search may take");
    command->add_option("--step", arguments->step, "The step (default: the last complete one)");
    command->add_option("--costs", arguments->costs,
                        "captured or measured (default: measured where present)");
    command->add_option("--csv", arguments->csv, "Write the rows to this file too");
    command->callback([arguments, &common] { common.exitCode = run(*arguments, common); });
}

}  // namespace hw::app
