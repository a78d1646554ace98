// SPDX-License-Identifier: MIT
#include "planners/plan_with.h"

#include <time.h>

#include <chrono>

#include "core/plan/implementations.h"
#include "planners/registry.h"

namespace hw::planners {
namespace {

using namespace hw::core;

Plan describe(const TrainingGraph& graph, std::string_view planner, const PlanRequest& request,
              const Outcome& outcome, Schedule schedule) {
    Plan plan = emptyPlan(graph);
    plan.planner = planner;
    plan.options = request.options;
    plan.seed = request.seed;
    plan.budget = request.budget;
    plan.predictedPeak = outcome.peak;
    plan.predictedTime = outcome.time;
    plan.overhead = outcome.overhead;
    plan.lowerBound = outcome.lowerBound;
    plan.schedule = std::move(schedule);
    if (outcome.offloadedBytes > Bytes(0)) {
        plan.link = graph.link;
        plan.hostMemory = request.hostMemory;
    }
    return plan;
}

Result<Evaluation> judge(const TrainingGraph& graph, const Menu& menu, const Proposal& proposal) {
    if (proposal.implementations.empty()) return evaluate(graph, proposal.schedule);
    const auto chosen = applyImplementations(graph, menu, proposal.implementations);
    if (!chosen) return chosen.error();
    return evaluate(*chosen, proposal.schedule);
}

double threadCpuSeconds() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace

Result<Outcome> planWith(std::string_view name, const TrainingGraph& graph,
                         const PlanRequest& request, const Progress& progress) {
    auto planner = makePlanner(name);
    if (!planner) return planner.error();
    if (const Status usable = checkMenu(request.menu, graph); !usable) return usable.error();
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
    const auto evaluation = judge(graph, request.menu, proposal);
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
    outcome.hostPeak = judged.hostPeak;
    outcome.offloadedBytes = judged.offloadedBytes;
    outcome.waited = judged.waited;
    if (outcome.lowerBound) outcome.gap = ratio(judged.time - *outcome.lowerBound, baseline);
    if (judged.peak > request.budget) {
        outcome.status = PlanStatus::Infeasible;
        outcome.reason = "its plan needs " + humanBytes(judged.peak) + ", the budget is " +
                         humanBytes(request.budget);
        return outcome;
    }
    if (judged.hostPeak > request.hostMemory.value_or(Bytes(0))) {
        outcome.status = PlanStatus::Infeasible;
        outcome.reason = "its plan puts " + humanBytes(judged.hostPeak) +
                         " into host memory, where it may use " +
                         humanBytes(request.hostMemory.value_or(Bytes(0)));
        return outcome;
    }
    outcome.plan = describe(graph, name, request, outcome, std::move(proposal.schedule));
    outcome.plan->chosen = onlyChosen(request.menu, proposal.implementations);
    outcome.plan->implementations = std::move(proposal.implementations);
    return outcome;
}

}  // namespace hw::planners
