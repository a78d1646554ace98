// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/run_sizes.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "core/base/file.h"
#include "core/base/spawn.h"
#include "core/import/import.h"
#include "core/plan/plan.h"
#include "planners/mimose/sizes.h"

namespace hw::app {
namespace {

using namespace hw::core;

// One input size: what was planned for it, and what came of it.
struct SizeRow {
    std::int64_t step = 0;
    double size = 0;
    Bytes peak;
    double overhead = 0;
    planners::SizePlan plan;
    Json run;  // the executor's object

    double measuredOverhead() const {
        return run.at("time_ns").get<double>() / run.at("baseline_time_ns").get<double>();
    }
};

Result<Bytes> budgetOf(const SizesArguments& arguments,
                       const std::vector<planners::ProfiledStep>& recorded) {
    if (!arguments.budget.empty()) return parseBytes(arguments.budget);
    return Bytes(static_cast<std::int64_t>(
        static_cast<double>(planners::highestPeak(recorded).count()) * *arguments.ratio));
}

// The plan of one step, as a file; empty where no choice of layers fits.
Result<std::string> planStep(const Session& session, SizeRow& row,
                             planners::InputAwarePlanner& planner, Bytes budget,
                             const std::filesystem::path& folder) {
    const auto graph = loadGraph(session, row.step);
    if (!graph) return graph.error();
    row.plan = planners::planSize(*graph, row.size, planner);
    if (!row.plan.dropped) return std::string();
    const auto plan = planners::writtenPlan(row.plan, *graph, budget);
    if (!plan) return plan.error();
    row.overhead = plan->overhead;
    const std::string path = (folder / (std::to_string(row.step) + ".plan.json")).string();
    if (const Status written = writePlanFile(*plan, path); !written) return written.error();
    return path;
}

// What a command prints, and its exit status; its errors go where ours go.
Result<std::pair<std::string, int>> outputOf(const std::vector<std::string>& command) {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0)
        return Error{ErrorCode::Internal, "cannot make a pipe", "close other programs"};
    core::Spawn program{command, {}};
    program.output = ends[1];
    const core::Spawned child = core::spawn(program);
    close(ends[1]);
    std::string text;
    std::array<char, 65536> part{};
    for (ssize_t got = 0; child.error == 0 && (got = read(ends[0], part.data(), part.size())) > 0;)
        text.append(part.data(), static_cast<std::size_t>(got));
    close(ends[0]);
    const int status = child.error == 0 ? core::waitFor(child.pid) : -1;
    if (status < 0 || !WIFEXITED(status))
        return Error{ErrorCode::Internal, command.front() + " did not end by itself",
                     "run one of the steps with `highwater run --step`"};
    return std::pair(std::move(text), WEXITSTATUS(status));
}

Json rowJson(const SizeRow& row, const planners::InputAwarePlanner& planner, Bytes budget) {
    Json json{{"step", row.step},
              {"input_bytes", static_cast<std::int64_t>(row.size)},
              {"status", row.plan.dropped ? "ok" : "infeasible"},
              {"within_budget", row.plan.within(budget)},
              {"baseline_peak_bytes", row.peak.count()},
              {"estimated_peak_bytes", row.plan.estimatedPeak.count()}};
    if (!row.plan.dropped) return json;
    json["layers_dropped"] = Json::array();
    for (const int layer : *row.plan.dropped)
        json["layers_dropped"].push_back(
            planner.estimator().layers()[static_cast<std::size_t>(layer)]);
    json["overhead"] = row.overhead;
    for (const char* key :
         {"predicted_peak_bytes", "measured_peak_bytes", "arena_bytes", "time_ns",
          "baseline_time_ns", "outputs_compared", "outputs_different", "outputs_nonfinite",
          "recorded_compared", "recorded_different", "fallbacks", "notes"})
        json[key] = row.run.at(key);
    return json;
}

void printTable(const std::string& planner, const std::vector<SizeRow>& rows, std::int64_t plans,
                Bytes budget) {
    std::printf("%s within %s: %lld plans for %zu input sizes\n\n", planner.c_str(),
                humanBytes(budget).c_str(), static_cast<long long>(plans), rows.size());
    std::printf("%10s %5s %8s %10s %10s %10s %10s %8s %9s %9s %9s\n", "inputs", "step", "dropped",
                "unplanned", "estimated", "predicted", "measured", "extra", "measured", "compared",
                "different");
    for (const SizeRow& row : rows) {
        const auto input = humanBytes(Bytes(static_cast<std::int64_t>(row.size)));
        std::printf("%10s %5lld ", input.c_str(), static_cast<long long>(row.step));
        if (!row.plan.dropped) {
            std::printf("%8s %10s %10s no choice of layers fits\n", "-",
                        humanBytes(row.peak).c_str(), humanBytes(row.plan.estimatedPeak).c_str());
            continue;
        }
        std::printf(
            "%8zu %10s %10s %10s %10s %8s %9s %9lld %9lld%s\n", row.plan.dropped->size(),
            humanBytes(row.peak).c_str(), humanBytes(row.plan.estimatedPeak).c_str(),
            humanBytes(Bytes(row.run.at("predicted_peak_bytes").get<std::int64_t>())).c_str(),
            humanBytes(Bytes(row.run.at("measured_peak_bytes").get<std::int64_t>())).c_str(),
            percent(row.overhead).c_str(), percent(row.measuredOverhead()).c_str(),
            row.run.at("outputs_compared").get<long long>(),
            row.run.at("outputs_different").get<long long>(),
            row.plan.within(budget) ? "" : "  above the budget");
    }
}

int verdict(const std::string& planner, const std::vector<SizeRow>& rows, Bytes budget) {
    const auto differs = [](const SizeRow& row) {
        return row.plan.dropped && row.run.at("outputs_different").get<std::int64_t>() > 0;
    };
    if (std::any_of(rows.begin(), rows.end(), differs))
        return fail({ErrorCode::Verification, "results differ from the unplanned run",
                     "the table says at which input sizes"});
    if (std::all_of(rows.begin(), rows.end(),
                    [&](const SizeRow& row) { return row.plan.within(budget); }))
        return 0;
    return fail({ErrorCode::NoPlan,
                 planner + " has no plan within " + humanBytes(budget) + " for every input size",
                 "raise the budget; the table says at which sizes"});
}

}  // namespace

int runSizes(const std::string& file, const SizesArguments& arguments, const std::string& executor,
             const std::vector<std::string>& options, const Common& common) {
    auto session = openAny(file);
    if (!session) return fail(session.error());
    const auto recorded = planners::profileSteps(*session);
    if (!recorded) return fail(recorded.error());
    const auto budget = budgetOf(arguments, *recorded);
    if (!budget) return fail(budget.error());
    auto estimator = planners::fitSizes(*recorded);
    if (!estimator) return fail(estimator.error());
    planners::InputAwarePlanner planner(std::move(*estimator), *budget);
    const ScratchFolder scratch;
    if (scratch.path().empty())
        return fail({ErrorCode::Internal, "cannot make a folder for plans", "check TMPDIR"});

    std::vector<SizeRow> rows;
    for (const planners::ProfiledStep& one : planners::firstOfEachSize(*recorded)) {
        SizeRow row;
        row.step = one.step;
        row.size = one.profile.size;
        row.peak = one.profile.peak;
        const auto plan = planStep(*session, row, planner, *budget, scratch.path());
        if (!plan) return fail(plan.error());
        if (!plan->empty()) {
            std::vector<std::string> command{
                executor, file, *plan, "--step", std::to_string(row.step), "--json"};
            command.insert(command.end(), options.begin(), options.end());
            const auto ran = outputOf(command);
            if (!ran) return fail(ran.error());
            row.run = Json::parse(ran->first, nullptr, false);
            if (!row.run.is_object()) return ran->second == 0 ? 1 : ran->second;  // it said why
        }
        rows.push_back(std::move(row));
    }
    std::sort(rows.begin(), rows.end(),
              [](const SizeRow& a, const SizeRow& b) { return a.size < b.size; });
    const std::int64_t plans =  // every other size shares one, or has none
        planner.cache().misses() - std::count_if(rows.begin(), rows.end(), [](const SizeRow& row) {
            return !row.plan.dropped;
        });
    if (common.json) {
        Json json{{"planner", arguments.planner},
                  {"budget_bytes", budget->count()},
                  {"plans", plans},
                  {"rows", Json::array()}};
        for (const SizeRow& row : rows) json["rows"].push_back(rowJson(row, planner, *budget));
        answerWith(json);
    } else {
        printTable(arguments.planner, rows, plans, *budget);
    }
    return verdict(arguments.planner, rows, *budget);
}

}  // namespace hw::app
