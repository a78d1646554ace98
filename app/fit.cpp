// SPDX-License-Identifier: GPL-3.0-or-later
// How large a batch fits: records at some sizes answer for all others.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "app/cli.h"
#include "core/family/load_family.h"
#include "core/family/predicted_session.h"
#include "core/import/import.h"
#include "core/memory/evaluate.h"
#include "planners/largest_size.h"
#include "planners/registry.h"
#include "planners/smallest_budget.h"

namespace hw::app {
namespace {

using namespace hw::core;
using planners::itemsPerSecond;
using planners::LargestSize;

struct FitArguments {
    std::vector<std::string> files, planners;
    std::optional<std::int64_t> batch;
    std::string budget, deviceMemory, besides, output, plan;
    std::optional<int> vary;
    std::optional<double> timeLimit;
};

/// What a device has left for the step.
Result<Bytes> budgetOf(const FitArguments& arguments) {
    if (!arguments.budget.empty()) return parseBytes(arguments.budget);
    auto memory = parseBytes(arguments.deviceMemory);
    if (!memory || arguments.besides.empty()) return memory;
    const auto besides = parseBytes(arguments.besides);
    if (!besides) return besides.error();
    if (*besides >= *memory)
        return Error{ErrorCode::Usage, "--besides leaves nothing of the device's memory",
                     "it is what the framework and the driver take, often below 1 GB"};
    return *memory - *besides;
}

Result<std::vector<Session>> openSessions(const FitArguments& arguments) {
    std::vector<Session> sessions;
    for (const std::string& file : arguments.files) {
        auto session = openAny(file);
        if (!session) return session.error();
        sessions.push_back(std::move(*session));
    }
    return sessions;
}

Json writtenJson(const FitArguments& arguments, std::int64_t size,
                 const planners::Outcome* outcome) {
    if (arguments.output.empty() && arguments.plan.empty()) return nullptr;
    Json json{{"batch", size}};
    if (!arguments.output.empty()) json["session"] = arguments.output;
    if (!arguments.plan.empty()) json["plan"] = arguments.plan, json["planner"] = outcome->planner;
    return json;
}

void printWritten(const FitArguments& arguments, std::int64_t size,
                  const planners::Outcome* outcome) {
    if (!arguments.output.empty())
        std::printf("written: the program at size %lld to %s\n", static_cast<long long>(size),
                    arguments.output.c_str());
    if (!arguments.plan.empty())
        std::printf("written: the plan of %s at size %lld to %s\n", outcome->planner.c_str(),
                    static_cast<long long>(size), arguments.plan.c_str());
}

/// -o and --plan: the program at `size` as a session, and the plan for it. Says so in `answer` or,
/// without one, in words.
Status writeAt(const FitArguments& arguments, const std::vector<Session>& sessions,
               std::int64_t size, const planners::Outcome* outcome, Json* answer) {
    if (!arguments.output.empty())
        HW_TRY(writeSession(arguments.output, [&](SessionWriter& out) {
            return writePredicted(sessions, arguments.vary, size, out);
        }));
    if (!arguments.plan.empty()) {
        if (outcome == nullptr || !outcome->plan)
            return Error{ErrorCode::NoPlan, "no planner has a plan at size " + std::to_string(size),
                         "give a larger budget, or name other --planners"};
        HW_TRY(writePlanFile(*outcome->plan, arguments.plan));
    }
    if (answer != nullptr)
        (*answer)["written"] = writtenJson(arguments, size, outcome);
    else
        printWritten(arguments, size, outcome);
    return {};
}

double off(auto predicted, auto recorded) {
    return recorded.count() == 0 ? 0 : ratio(predicted - recorded, recorded);
}

/// How far the fits are from records that they do not know; null where too few were recorded.
Json errorJson(const std::vector<Family::LeftOut>& rows) {
    if (rows.empty()) return nullptr;
    double peak = 0, time = 0;
    Json records = Json::array();
    for (const Family::LeftOut& row : rows) {
        const double peakOff = off(row.predictedPeak, row.recordedPeak),
                     timeOff = off(row.predictedTime, row.recordedTime);
        peak = std::max(peak, std::abs(peakOff)), time = std::max(time, std::abs(timeOff));
        records.push_back({{"batch", row.size},
                           {"predicted_peak_bytes", row.predictedPeak.count()},
                           {"recorded_peak_bytes", row.recordedPeak.count()},
                           {"peak", peakOff},
                           {"predicted_time_ns", row.predictedTime.count()},
                           {"recorded_time_ns", row.recordedTime.count()},
                           {"time", timeOff}});
    }
    return {{"peak", peak}, {"time", time}, {"records", records}};
}

/// What both answers have in common.
Json familyJson(const Family& family, const std::vector<Family::LeftOut>& leftOut) {
    return {{"sizes", family.sizes()},
            {"batch_shape", family.batchShape()},
            {"dimension", family.dimension()},
            {"error", errorJson(leftOut)}};
}

void printFamily(const Family& family, const std::vector<Family::LeftOut>& leftOut) {
    std::string sizes;
    for (const std::int64_t size : family.sizes())
        sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
    std::printf("recorded: sizes %s (dimension %d of the batch)\n", sizes.c_str(),
                family.dimension());
    for (const Family::LeftOut& row : leftOut)
        std::printf("  size %lld from the others: peak %+.2f %%, time %+.1f %%\n",
                    static_cast<long long>(row.size),
                    off(row.predictedPeak, row.recordedPeak) * 100,
                    off(row.predictedTime, row.recordedTime) * 100);
}

/// Null where the records do not tell times of that size.
Json speedJson(const Family& family, std::int64_t size, Nanoseconds time) {
    return family.tellsTimes(size) ? Json(itemsPerSecond(size, time)) : Json(nullptr);
}

std::string speedText(const Family& family, std::int64_t size, Nanoseconds time) {
    if (!family.tellsTimes(size)) return "-";
    char text[32];
    std::snprintf(text, sizeof text, "%.1f", itemsPerSecond(size, time));
    return text;
}

Json rowJson(const std::string& planner, std::optional<std::int64_t> size,
             const planners::Outcome* outcome, const Family& family) {
    Json row{{"planner", planner}, {"batch", size ? Json(*size) : Json(nullptr)}};
    if (size) {
        row["items_per_second"] = speedJson(family, *size, outcome->time);
        row["extrapolated"] = family.extrapolates(*size);
    }
    if (outcome != nullptr) row.update(outcomeJson(*outcome));
    return row;
}

void printHead() {
    std::printf("%-14s %9s %12s %10s %12s %10s\n", "planner", "size", "peak", "time", "step",
                "items/s");
}

void printRow(const std::string& planner, std::optional<std::int64_t> size,
              const planners::Outcome* outcome, const Family& family, const std::string& note) {
    if (!size) {
        std::printf("%-14s %9s no plan%s\n", planner.c_str(), "-", note.c_str());
        return;
    }
    std::printf("%-14s %8lld%s %12s %10s %12s %10s%s\n", planner.c_str(),
                static_cast<long long>(*size), family.extrapolates(*size) ? "*" : " ",
                humanBytes(outcome->peak).c_str(), percent(outcome->overhead).c_str(),
                family.tellsTimes(*size) ? humanTime(outcome->time).c_str() : "-",
                speedText(family, *size, outcome->time).c_str(), note.c_str());
}

/// What the mark behind a size means.
void printNote(const Family& family) {
    const auto [least, most] = std::pair(family.sizes().front(), family.sizes().back());
    std::printf("* beyond the sizes recorded (%lld to %lld)\n", static_cast<long long>(least),
                static_cast<long long>(most));
    if (!family.tellsTimes(most + 1))
        std::printf(
            "no speed is told beyond them: steps of size %lld and of size %lld take as "
            "long, but for noise; record a larger size\n",
            static_cast<long long>(least), static_cast<long long>(most));
}

/// Planners with the plan within the least memory that each finds one for.
using LeastMemory = std::vector<std::pair<std::string, std::optional<planners::Outcome>>>;

Result<LeastMemory> leastMemory(const FitArguments& arguments, const TrainingGraph& graph) {
    planners::PlanRequest request;
    request.timeLimitSeconds = arguments.timeLimit;
    LeastMemory least;
    for (const std::string& planner : arguments.planners) {
        std::optional<planners::Outcome> outcome;
        if (const auto enough =
                planners::smallestBudget(planner, graph, request, terminalProgress())) {
            request.budget = *enough;
            auto made = planners::planWith(planner, graph, request, terminalProgress());
            if (!made) return made.error();
            if (made->status == planners::PlanStatus::Ok) outcome = std::move(*made);
        }
        least.emplace_back(planner, std::move(outcome));
    }
    return least;
}

/// A step of a size that was predicted.
struct PredictedStep {
    std::int64_t size = 0;
    TrainingGraph graph;
    Evaluation baseline;
    LeastMemory least;
};

Json predictedJson(const PredictedStep& step, const Family& family) {
    Json json{{"batch", step.size}, {"extrapolated", family.extrapolates(step.size)}};
    json.update(familyJson(family, family.leaveOneOut()));
    json["baseline"] = baselineJson(step.graph, step.baseline);
    json["items_per_second"] = speedJson(family, step.size, step.graph.totalTime());
    json["categories"] = categoriesJson(categoriesAtPeak(step.graph, step.baseline));
    json["fingerprint"] = step.graph.fingerprint();
    json["rows"] = Json::array();
    for (const auto& [planner, outcome] : step.least)
        json["rows"].push_back(rowJson(planner, outcome ? std::optional(step.size) : std::nullopt,
                                       outcome ? &*outcome : nullptr, family));
    return json;
}

void printPredicted(const PredictedStep& step, const Family& family) {
    printFamily(family, family.leaveOneOut());
    const Nanoseconds time = step.graph.totalTime();
    std::printf("at size %lld%s: peak %s, op time %s, %s items/s\n  at the peak:",
                static_cast<long long>(step.size), family.extrapolates(step.size) ? "*" : "",
                humanBytes(step.baseline.peak).c_str(),
                family.tellsTimes(step.size) ? humanTime(time).c_str() : "-",
                speedText(family, step.size, time).c_str());
    for (const auto& [name, bytes] : categoriesAtPeak(step.graph, step.baseline))
        std::printf(" %s %s;", name.c_str(), humanBytes(bytes).c_str());
    std::printf("\n");
    if (!step.least.empty()) {
        std::printf("least memory with each planner:\n");
        printHead();
    }
    for (const auto& [planner, outcome] : step.least)
        printRow(planner, outcome ? std::optional(step.size) : std::nullopt,
                 outcome ? &*outcome : nullptr, family, "");
    if (family.extrapolates(step.size)) printNote(family);
}

int atSize(const FitArguments& arguments, const std::vector<Session>& sessions,
           const Family& family, const Common& common) {
    PredictedStep step;
    step.size = *arguments.batch;
    step.graph = family.graphAt(step.size);
    step.baseline = evaluate(step.graph, baselineSchedule(step.graph));
    auto least = leastMemory(arguments, step.graph);
    clearProgress();
    if (!least) return fail(least.error());
    step.least = std::move(*least);
    const auto cheapest =
        std::min_element(step.least.begin(), step.least.end(), [](const auto& a, const auto& b) {
            return a.second && (!b.second || a.second->peak < b.second->peak);
        });
    const bool any = cheapest != step.least.end() && cheapest->second;
    Json answer;
    if (common.json)
        answer = predictedJson(step, family);
    else
        printPredicted(step, family);
    if (const Status done =
            writeAt(arguments, sessions, step.size, any ? &*cheapest->second : nullptr,
                    common.json ? &answer : nullptr);
        !done)
        return fail(done.error());
    if (common.json) answerWith(answer);
    return 0;
}

double timeOf(const LargestSize& row) {
    return row.outcome ? static_cast<double>(row.outcome->time.count()) : 0;
}

std::string noteOf(const LargestSize& row) {
    std::string note;
    if (row.fastest && row.fastest != row.size) {
        char text[80];
        std::snprintf(text, sizeof text, "  (most at %lld: %.1f)",
                      static_cast<long long>(*row.fastest), row.itemsPerSecond);
        note = text;
    }
    return note + (row.timedOut ? "  (its time ran out)" : "");
}

Json triedJson(const LargestSize& row, const Family& family) {
    Json tried = Json::array();
    for (const planners::TriedSize& each : row.tried)
        tried.push_back({{"batch", each.size},
                         {"peak_bytes", each.peak.count()},
                         {"time_ns", each.time.count()},
                         {"items_per_second", speedJson(family, each.size, each.time)}});
    return tried;
}

const planners::Outcome* outcomeOf(const LargestSize& row) {
    return row.outcome ? &*row.outcome : nullptr;
}

Json withinJson(const planners::LargestSizes& found, const Family& family, Bytes budget) {
    Json json{{"budget_bytes", budget.count()}};
    json.update(familyJson(family, family.leaveOneOut()));
    json["most_of_other_kinds"] = found.mostOfOthers ? Json(*found.mostOfOthers) : Json(nullptr);
    json["rows"] = Json::array();
    for (const LargestSize& row : found.rows) {
        Json made = rowJson(row.planner, row.size, outcomeOf(row), family);
        made["timed_out"] = row.timedOut;
        made["fastest_batch"] = row.fastest ? Json(*row.fastest) : Json(nullptr);
        made["fastest_items_per_second"] = row.fastest ? Json(row.itemsPerSecond) : Json(nullptr);
        made["tried"] = triedJson(row, family);
        json["rows"].push_back(std::move(made));
    }
    return json;
}

void printWithin(const planners::LargestSizes& found, const Family& family, Bytes budget) {
    printFamily(family, family.leaveOneOut());
    std::printf("largest size within %s:\n", humanBytes(budget).c_str());
    printHead();
    for (const LargestSize& row : found.rows)
        printRow(row.planner, row.size, outcomeOf(row), family, noteOf(row));
    printNote(family);
    if (found.mostOfOthers)
        std::printf(
            "beyond size %lld another kind of step, such as the first one, has no plan "
            "within the budget\n",
            static_cast<long long>(*found.mostOfOthers));
}

int within(const FitArguments& arguments, const std::vector<Session>& sessions,
           const StepFamilies& families, Bytes budget, const Common& common) {
    planners::PlanRequest request;
    request.budget = budget;
    request.timeLimitSeconds = arguments.timeLimit;
    std::vector<std::string> names = arguments.planners;
    if (names.empty())
        for (const auto& info : planners::plannerList())
            if (info.preselected) names.push_back(info.name);
    const auto found = planners::largestSizes(families, names, request, terminalProgress());
    clearProgress();
    if (!found) return fail(found.error());
    Json answer;
    if (common.json)
        answer = withinJson(*found, families.usual, budget);
    else
        printWithin(*found, families.usual, budget);
    const auto largest = std::max_element(
        found->rows.begin(), found->rows.end(), [](const LargestSize& a, const LargestSize& b) {
            return std::pair(a.size, -timeOf(a)) < std::pair(b.size, -timeOf(b));
        });
    const bool any = largest != found->rows.end() && largest->size;
    if (any)
        if (const Status done = writeAt(arguments, sessions, *largest->size, outcomeOf(*largest),
                                        common.json ? &answer : nullptr);
            !done)
            return fail(done.error());
    if (common.json) answerWith(answer);
    if (any) return 0;
    return fail(
        {ErrorCode::NoPlan, "not even size 1 fits into " + humanBytes(budget),
         "no plan at all fits below " + humanBytes(families.usual.graphAt(1).floorBytes())});
}

int run(const FitArguments& arguments, const Common& common) {
    const int given = static_cast<int>(arguments.batch.has_value()) +
                      static_cast<int>(!arguments.budget.empty()) +
                      static_cast<int>(!arguments.deviceMemory.empty());
    if (given != 1)
        return fail({ErrorCode::Usage,
                     "exactly one of --batch, --budget and --device-memory is needed",
                     "for example --budget 4GiB, or --batch 64"});
    if (arguments.batch && *arguments.batch < 1)
        return fail({ErrorCode::Usage, "the batch must be at least 1", "for example --batch 64"});
    if (!arguments.besides.empty() && arguments.deviceMemory.empty())
        return fail({ErrorCode::Usage, "--besides goes with --device-memory",
                     "leave it out: a budget is what the step itself may take"});
    for (const std::string& planner : arguments.planners)
        if (const auto known = planners::makePlanner(planner); !known) return fail(known.error());
    std::optional<Bytes> budget;
    if (!arguments.batch) {
        const auto parsed = budgetOf(arguments);
        if (!parsed) return fail(parsed.error());
        budget = *parsed;
    }
    if (arguments.batch && !arguments.plan.empty() && arguments.planners.empty())
        return fail({ErrorCode::Usage, "--plan with --batch needs --planners",
                     "the plan with the least memory of theirs is written"});
    const auto sessions = openSessions(arguments);
    if (!sessions) return fail(sessions.error());
    const auto families = loadFamilies(*sessions, arguments.vary);
    if (!families) return fail(families.error());
    return budget ? within(arguments, *sessions, *families, *budget, common)
                  : atSize(arguments, *sessions, families->usual, common);
}

}  // namespace

void addFit(CLI::App& app, Common& common) {
    auto* command =
        addCommand(app, common, "fit",
                   "How large a batch fits into a budget, from records at two sizes or more");
    auto arguments = std::make_shared<FitArguments>();
    command
        ->add_option("SESSIONS", arguments->files,
                     "Records of one program at different sizes, or one in which sizes vary")
        ->required();
    command->add_option("--batch", arguments->batch, "What this size needs");
    command->add_option("--budget", arguments->budget,
                        "The largest size within it for each planner, as 4GiB, 500MB or bytes");
    command->add_option("--device-memory", arguments->deviceMemory,
                        "The same, within the memory of a device");
    command->add_option(
        "--besides", arguments->besides,
        "What the framework and the driver take of the device's memory (default: nothing)");
    command
        ->add_option("--planners", arguments->planners,
                     "Planners, separated by commas (default: those of the window)")
        ->delimiter(',');
    command->add_option("--vary", arguments->vary,
                        "The dimension of the batch that is the size, from 0, where several vary");
    command
        ->add_option("--time-limit", arguments->timeLimit,
                     "Seconds that one planner may take for all sizes that it tries (default: 10)")
        ->check(positive(kMostSeconds));
    command->add_option("-o,--output", arguments->output,
                        "Write the program at that size as a session, which is planned, looked at "
                        "and trained like a recorded one; with a budget, at the largest size");
    command->add_option(
        "--plan", arguments->plan,
        "Write the plan for that size; with --batch, the one with the least memory");
    command->callback([arguments, &common] { common.exitCode = run(*arguments, common); });
}

}  // namespace hw::app
