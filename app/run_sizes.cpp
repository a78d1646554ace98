// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/run_sizes.h"

#include <algorithm>
#include <cstdio>

#include "core/import/import.h"
#include "executor/host/run_sizes.h"

namespace hw::app {
namespace {

using namespace hw::core;
using executor::SizeRun;

Result<Bytes> budgetOf(const SizesArguments& arguments,
                       const std::vector<planners::ProfiledStep>& recorded) {
    if (!arguments.budget.empty()) return parseBytes(arguments.budget);
    return Bytes(static_cast<std::int64_t>(
        static_cast<double>(planners::highestPeak(recorded).count()) * *arguments.ratio));
}

Json rowJson(const SizeRun& row, Bytes budget) {
    Json json{{"step", row.step},
              {"input_bytes", static_cast<std::int64_t>(row.size)},
              {"status", row.plan.dropped ? "ok" : "infeasible"},
              {"within_budget", row.plan.within(budget)},
              {"baseline_peak_bytes", row.peak.count()},
              {"estimated_peak_bytes", row.plan.estimatedPeak.count()}};
    if (!row.plan.dropped) return json;
    json["layers_dropped"] = row.dropped;
    json["overhead"] = row.overhead;
    for (const char* key :
         {"predicted_peak_bytes", "measured_peak_bytes", "arena_bytes", "time_ns",
          "baseline_time_ns", "outputs_compared", "outputs_different", "outputs_nonfinite",
          "recorded_compared", "recorded_different", "fallbacks", "notes"})
        json[key] = row.run.at(key);
    return json;
}

void printTable(const std::string& planner, const executor::SizesRun& run, Bytes budget) {
    std::printf("%s within %s: %lld plans for %zu input sizes\n\n", planner.c_str(),
                humanBytes(budget).c_str(), static_cast<long long>(run.plans), run.sizes.size());
    std::printf("%10s %5s %8s %10s %10s %10s %10s %8s %9s %9s %9s\n", "inputs", "step", "dropped",
                "unplanned", "estimated", "predicted", "measured", "extra", "measured", "compared",
                "different");
    for (const SizeRun& row : run.sizes) {
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

int verdict(const std::string& planner, const std::vector<SizeRun>& rows, Bytes budget) {
    const auto differs = [](const SizeRun& row) {
        return row.plan.dropped && row.run.at("outputs_different").get<std::int64_t>() > 0;
    };
    if (std::any_of(rows.begin(), rows.end(), differs))
        return fail({ErrorCode::Verification, "results differ from the unplanned run",
                     "the table says at which input sizes"});
    if (std::all_of(rows.begin(), rows.end(),
                    [&](const SizeRun& row) { return row.plan.within(budget); }))
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
    const auto run =
        executor::runEverySize(*session, *recorded, {file, *budget, executor, options});
    if (!run) return fail(run.error());
    if (common.json) {
        Json json{{"planner", arguments.planner},
                  {"budget_bytes", budget->count()},
                  {"plans", run->plans},
                  {"rows", Json::array()}};
        for (const SizeRun& row : run->sizes) json["rows"].push_back(rowJson(row, *budget));
        answerWith(json);
    } else {
        printTable(arguments.planner, *run, *budget);
    }
    return verdict(arguments.planner, run->sizes, *budget);
}

}  // namespace hw::app
