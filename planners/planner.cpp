// SPDX-License-Identifier: MIT
#include "planners/planner.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "planners/chen/chen.h"
#include "planners/dtr/dtr.h"
#include "planners/echo/echo.h"
#include "planners/mimose/mimose.h"
#include "planners/monet/menu.h"
#include "planners/monet/monet.h"
#include "planners/none.h"
#include "planners/program/checkmate.h"
#include "planners/search/highwater.h"

namespace hw::planners {
namespace {

using namespace hw::core;

struct Entry {
    const char* name;
    const char* description;
    std::unique_ptr<Planner> (*make)();
    std::vector<std::string> options = {};
};

template <Dtr::Heuristic heuristic>
std::unique_ptr<Planner> makeDtr() {
    return std::make_unique<Dtr>(heuristic);
}
const char* const kDealloc = "dealloc=eager|banish";
const char* const kFrees = "frees=early|late";

const std::array kRegistry{
    Entry{"none", "the baseline: captured order, nothing recomputed",
          +[]() -> std::unique_ptr<Planner> { return std::make_unique<None>(); }},
    Entry{"chen-sqrt", "Chen et al. 2016, section 4.3: sqrt(n) segments, whatever the budget",
          +[]() -> std::unique_ptr<Planner> { return std::make_unique<ChenSqrt>(); }},
    Entry{"chen-greedy", "Chen et al. 2016, Algorithm 3 with the search over the segment size",
          +[]() -> std::unique_ptr<Planner> { return std::make_unique<ChenGreedy>(); }},
    Entry{"chen-cheap",
          "Chen et al. 2016, section 4.2: drops the results of cheap ops",
          +[]() -> std::unique_ptr<Planner> { return std::make_unique<ChenCheap>(); },
          {"all=0|1"}},
    Entry{"chen-recursive", "Chen et al. 2016, section 4.4: segments of segments, least memory",
          +[]() -> std::unique_ptr<Planner> { return std::make_unique<ChenRecursive>(); }},
    Entry{"echo",
          "Echo (ISCA 2020), recomputation behind cheap ops and one-bit encodings",
          +[]() -> std::unique_ptr<Planner> { return std::make_unique<Echo>(); },
          {"encodings=on|off"}},
    Entry{"dtr:full",
          "DTR (ICLR 2021): the evicted neighbourhood, size and staleness",
          makeDtr<Dtr::Heuristic::Full>,
          {kDealloc, kFrees}},
    Entry{"dtr:eqclass",
          "DTR (ICLR 2021): classes of evicted neighbours, size and staleness",
          makeDtr<Dtr::Heuristic::EqClass>,
          {kDealloc, kFrees}},
    Entry{"dtr:local",
          "DTR (ICLR 2021): own compute, size and staleness",
          makeDtr<Dtr::Heuristic::Local>,
          {kDealloc, kFrees}},
    Entry{"dtr:lru",
          "DTR (ICLR 2021): least recently used first",
          makeDtr<Dtr::Heuristic::Lru>,
          {kDealloc, kFrees}},
    Entry{"dtr:largest",
          "DTR (ICLR 2021): largest first",
          makeDtr<Dtr::Heuristic::Largest>,
          {kDealloc, kFrees}},
    Entry{"dtr:msps",
          "DTR (ICLR 2021): compute of the evicted ancestors by size",
          makeDtr<Dtr::Heuristic::Msps>,
          {kDealloc, kFrees}},
    Entry{"dtr:random",
          "DTR (ICLR 2021): at random, from the seed",
          makeDtr<Dtr::Heuristic::Random>,
          {kDealloc, kFrees}},
    Entry{"checkmate", "Checkmate (MLSys 2020), the optimal integer program or its LP rounding",
          +[]() -> std::unique_ptr<Planner> { return std::make_unique<Checkmate>(); }},
    Entry{"monet", "MONeT (ICLR 2021): recomputation and implementations of ops, chosen jointly",
          +[]() -> std::unique_ptr<Planner> { return std::make_unique<Monet>(); }},
    Entry{"mimose", "Mimose (2022), whole layers dropped by the bucketed greedy scheduler",
          +[]() -> std::unique_ptr<Planner> { return std::make_unique<Mimose>(); }},
    Entry{"highwater",
          "ours: near-optimal within seconds, with a proven lower bound",
          +[]() -> std::unique_ptr<Planner> { return std::make_unique<HighwaterPlanner>(); },
          {"search=full|first"}},
};

Plan describe(const TrainingGraph& graph, std::string_view planner, const PlanRequest& request,
              const Outcome& outcome, Schedule schedule) {
    Plan plan;
    plan.fingerprint = graph.fingerprint();
    plan.ops = static_cast<std::int64_t>(graph.ops.size());
    plan.storages = static_cast<std::int64_t>(graph.storages.size());
    plan.planner = planner;
    plan.options = request.options;
    plan.seed = request.seed;
    plan.budget = request.budget;
    plan.predictedPeak = outcome.peak;
    plan.predictedTime = outcome.time;
    plan.overhead = outcome.overhead;
    plan.lowerBound = outcome.lowerBound;
    plan.schedule = std::move(schedule);
    plan.costs = graph.costs;
    return plan;
}

Result<Evaluation> judge(const TrainingGraph& graph, const Menu& menu, const Proposal& proposal) {
    if (proposal.implementations.empty()) return evaluate(graph, proposal.schedule);
    const auto chosen = applyImplementations(graph, menu, proposal.implementations);
    if (!chosen) return chosen.error();
    return evaluate(*chosen, proposal.schedule);
}

// A plan carries what it chose of a menu, so that it can be judged without the file.
void keepChoice(Plan& plan, const Menu& menu, ImplementationChoice choice) {
    plan.options.erase("menu");
    if (!choice.empty()) plan.options["menu"] = writeMenu(onlyChosen(menu, choice));
    plan.implementations = std::move(choice);
}

double threadCpuSeconds() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace

std::string_view planStatusName(PlanStatus status) {
    switch (status) {
        case PlanStatus::Ok:
            return "ok";
        case PlanStatus::Infeasible:
            return "infeasible";
        case PlanStatus::Thrash:
            return "thrash";
        case PlanStatus::TimeLimit:
            return "time_limit";
        case PlanStatus::Cancelled:
            return "cancelled";
    }
    return "infeasible";
}

std::vector<PlannerInfo> plannerList() {
    std::vector<PlannerInfo> list;
    list.reserve(kRegistry.size());
    for (const Entry& entry : kRegistry)
        list.push_back({entry.name, entry.description, entry.options});
    return list;
}

Status checkOptions(std::string_view planner, const std::map<std::string, std::string>& options) {
    const auto entry = std::find_if(kRegistry.begin(), kRegistry.end(),
                                    [&](const Entry& known) { return planner == known.name; });
    if (entry == kRegistry.end()) return makePlanner(planner).error();
    std::string known;
    for (const std::string& option : entry->options) known += (known.empty() ? "" : ", ") + option;
    for (const auto& given : options) {
        const bool fits = std::any_of(
            entry->options.begin(), entry->options.end(), [&](const std::string& option) {
                const std::size_t equals = option.find('=');
                std::string values = "|", value = "|";
                values.append(option.substr(equals + 1)).append("|");
                value.append(given.second).append("|");
                return option.compare(0, equals, given.first) == 0 && !given.second.empty() &&
                       values.find(value) != std::string::npos;
            });
        if (!fits)
            return Error{
                ErrorCode::Usage,
                std::string(planner) + " has no option '" + given.first + "=" + given.second + "'",
                known.empty() ? std::string(planner) + " has no options" : "its options: " + known};
    }
    return {};
}

Result<std::unique_ptr<Planner>> makePlanner(std::string_view name) {
    std::string known;
    for (const Entry& entry : kRegistry) {
        if (entry.name == name) return entry.make();
        known += (known.empty() ? "" : ", ") + std::string(entry.name);
    }
    return Error{ErrorCode::Usage, "there is no planner '" + std::string(name) + "'",
                 "planners: " + known};
}

Result<Outcome> planWith(std::string_view name, const TrainingGraph& graph,
                         const PlanRequest& request, const Progress& progress) {
    auto planner = makePlanner(name);
    if (!planner) return planner.error();
    const auto menu = requestedMenu(request.options, graph);
    if (!menu) return menu.error();
    const auto begin = std::chrono::steady_clock::now();
    const double cpuBegin = threadCpuSeconds();
    Proposal proposal = (*planner)->plan(graph, request, progress);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;

    Outcome outcome;
    outcome.planner = name;
    outcome.status = proposal.status;
    outcome.reason = std::move(proposal.reason);
    outcome.budget = request.budget;
    outcome.lowerBound = proposal.lowerBound;
    outcome.solveSeconds = elapsed.count();
    outcome.solveCpuSeconds = threadCpuSeconds() - cpuBegin;
    outcome.figures = std::move(proposal.figures);
    const Nanoseconds baseline = graph.totalTime();
    if (outcome.status != PlanStatus::Ok) {
        // A simulated runtime that stopped reports how far it came.
        if (const auto peak = outcome.figures.find("peak"); peak != outcome.figures.end())
            outcome.peak = Bytes(peak->second);
        if (const auto clock = outcome.figures.find("clock"); clock != outcome.figures.end())
            outcome.time = Nanoseconds(clock->second - 1);
        outcome.overhead = ratio(outcome.time, baseline);
        return outcome;
    }
    const auto evaluation = judge(graph, *menu, proposal);
    if (!evaluation) return evaluation.error();
    const Evaluation& judged = *evaluation;
    if (!judged.valid)
        return Error{ErrorCode::Internal,
                     "planner '" + std::string(name) + "' made an invalid schedule: entry " +
                         std::to_string(judged.action) + ": " + judged.why,
                     "this is a fault of Highwater: please report it with the session"};
    outcome.peak = judged.peak;
    outcome.time = judged.time;
    outcome.overhead = ratio(judged.time, baseline);
    outcome.recomputedOps = judged.recomputedOps;
    if (outcome.lowerBound) outcome.gap = ratio(judged.time - *outcome.lowerBound, baseline);
    if (judged.peak > request.budget) {
        outcome.status = PlanStatus::Infeasible;
        outcome.reason = "its plan needs " + humanBytes(judged.peak) + ", the budget is " +
                         humanBytes(request.budget);
        return outcome;
    }
    outcome.plan = describe(graph, name, request, outcome, std::move(proposal.schedule));
    keepChoice(*outcome.plan, *menu, std::move(proposal.implementations));
    return outcome;
}

std::optional<Bytes> smallestBudget(std::string_view planner, const TrainingGraph& graph,
                                    PlanRequest request, const Progress& progress) {
    constexpr int kSteps = 16;
    constexpr double kSeconds = 10;  // where no limit is given
    const double seconds = request.timeLimitSeconds.value_or(kSeconds) / 2;
    const auto begin = std::chrono::steady_clock::now();
    const auto left = [&] {
        const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
        return seconds - passed.count();
    };
    if (request.workLimit)
        request.workLimit = std::max<std::int64_t>(1, *request.workLimit / kSteps);
    // Peak of a plan within the budget, when one is found with a part of the time that is left.
    const auto found = [&](Bytes budget, int parts) -> std::optional<Bytes> {
        request.budget = budget;
        if (!request.workLimit) request.timeLimitSeconds = left() / parts;
        const auto outcome = planWith(planner, graph, request, progress);
        if (!outcome || outcome->status != PlanStatus::Ok) return std::nullopt;
        return outcome->peak;
    };
    Bytes low = graph.floorBytes();
    const auto most = found(evaluate(graph, baselineSchedule(graph)).peak, kSteps);
    if (!most) return std::nullopt;
    Bytes high = *most;
    // Planners are not monotonic in the budget: the answer is a budget that does, not the least
    // one.
    for (int i = 0; i < kSteps && high.count() - low.count() > high.count() / 500; ++i) {
        if (progress.cancelled() || (!request.workLimit && left() <= 0)) break;
        const Bytes middle((low.count() + high.count()) / 2);
        if (const auto peak = found(middle, std::max(2, kSteps / 2 - i)))
            high = *peak;
        else
            low = middle;
    }
    return high;
}

}  // namespace hw::planners
