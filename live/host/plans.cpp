// SPDX-License-Identifier: MIT
#include "live/host/plans.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/import/load_step.h"
#include "core/memory/keep_nondeterministic.h"
#include "core/session/step_environment.h"
#include "planners/plan_with.h"

namespace hw::live {
namespace {

using namespace hw::core;

constexpr double kOtherStepSeconds = 5;  // to plan a step that the given plan is not for
constexpr std::size_t kMostPrograms = 8;

/// What ops make that are not deterministic stays where the plan's budget has room for it.
Status keepWhatVaries(const LoadedStep& step, Plan& plan) {
    const auto devices = step.session.storageDevices();
    if (!devices) return devices.error();
    const bool onGpu = std::any_of(devices->begin(), devices->end(), [](const std::string& each) {
        return each.starts_with("cuda");
    });
    auto kept = keepNondeterministic(step.graph, plan.schedule, plan.budget, onGpu);
    if (!kept) return {};
    const Evaluation judged = evaluate(step.graph, *kept);
    plan.overhead *= static_cast<double>(judged.time.count()) /
                     static_cast<double>(std::max<std::int64_t>(1, plan.predictedTime.count()));
    plan.predictedPeak = judged.peak;
    plan.predictedTime = judged.time;
    plan.schedule = std::move(*kept);
    plan.layout.reset();
    return {};
}

Result<LiveProgram> compile(const LoadedStep& step, Plan& plan) {
    if (const Status kept = keepWhatVaries(step, plan); !kept) return kept.error();
    const auto tensors = step.session.tensors();
    if (!tensors) return tensors.error();
    auto program = liveProgram(step.graph, plan, *tensors);
    if (program) program->step = step.graph.sessionStep;
    return program;
}

/// A plan for another recorded step by the given one's planner: within its peak, or at least within
/// its budget.
Result<Plan> planLike(const Plan& plan, const LoadedStep& step,
                      const planners::Progress& progress) {
    planners::PlanRequest request;
    request.seed = plan.seed;
    request.timeLimitSeconds = kOtherStepSeconds;
    std::string why;
    for (const Bytes budget : {plan.predictedPeak, plan.budget}) {
        request.budget = budget;
        const auto outcome = planners::planWith(plan.planner, step.graph, request, progress);
        if (!outcome) return outcome.error();
        if (outcome->plan) return *outcome->plan;
        why = outcome->reason;
    }
    return Error{ErrorCode::NoPlan,
                 "step " + std::to_string(step.graph.sessionStep) + " has no plan within " +
                     humanBytes(plan.budget) + ": " + why,
                 "leave out --from-start, or plan with a larger budget"};
}

/// Steps differ: optimizers make their states in the first one, gradients are made or zeroed, the
/// last batch is smaller. Each kind that was recorded gets a plan of its own. `firstStep`: why the
/// first one has none.
Status addOtherSteps(const std::string& session, const LoadedStep& planned, const Plan& plan,
                     const planners::Progress& progress, LivePlan& prepared, Status& firstStep) {
    const auto steps = planned.session.steps();
    if (!steps) return steps.error();
    const auto own = std::find_if(steps->begin(), steps->end(), [&](const StepRow& row) {
        return row.id == planned.graph.sessionStep;
    });
    std::set<std::string> known{plan.fingerprint};
    bool first = true;
    for (const StepRow& row : *steps) {
        if (prepared.programs.programs.size() == kMostPrograms) break;
        if (own == steps->end() || row.process != own->process) continue;
        Status unplanned;
        Status& outcome = std::exchange(first, false) ? firstStep : unplanned;
        auto step = loadStep(session, row.id, plan.costs);
        if (!step) {
            outcome = step.error();
            continue;
        }
        if (!known.insert(step->graph.fingerprint()).second) continue;
        auto other = planLike(plan, *step, progress);
        if (!other) {
            ++prepared.unplannedKinds;
            prepared.whyUnplanned = other.error().what;
            outcome = other.error();
            continue;
        }
        auto program = compile(*step, *other);
        if (!program) return program.error();
        prepared.kept = std::max(prepared.kept, program->kept);
        prepared.programs.programs.push_back(std::move(*program));
    }
    return {};
}

/// Of each process its last step, then all others, so that the step of a plan is found soon.
Result<std::vector<StepRow>> likelySteps(const Session& session) {
    auto steps = session.steps();
    if (!steps) return steps.error();
    std::reverse(steps->begin(), steps->end());
    std::set<std::int64_t> seen;
    std::stable_partition(steps->begin(), steps->end(),
                          [&](const StepRow& row) { return seen.insert(row.process).second; });
    return steps;
}

Result<std::int64_t> rankOf(const Session& session, std::int64_t process) {
    const auto processes = session.processes();
    if (!processes) return processes.error();
    for (const ProcessRow& row : *processes)
        if (row.id == process) return row.rank;
    return 0;
}

/// A step that the plan is for, and whose: of a rank that has no plan yet, where there is one.
struct PlannedStep {
    LoadedStep step;
    std::int64_t rank = 0;
};
Result<PlannedStep> stepOf(const LivePlanFrom& from, const Plan& plan,
                           const std::set<std::int64_t>& planned) {
    auto last = loadStep(from.session, from.step, plan.costs);
    if (!last) return last.error();
    const Status same = requireSameGraph(plan, last->graph);
    if (from.step) {
        if (!same) return same.error();
        return PlannedStep{std::move(*last), 0};
    }
    const auto rows = likelySteps(last->session);
    if (!rows) return rows.error();
    for (const StepRow& row : *rows) {
        const auto rank = rankOf(last->session, row.process);
        if (!rank) return rank.error();
        if (planned.count(*rank) != 0) continue;
        auto step = loadStep(from.session, row.id, plan.costs);
        if (step && requireSameGraph(plan, step->graph))
            return PlannedStep{std::move(*step), *rank};
    }
    if (!same) return same.error();
    return Error{ErrorCode::Verification, "each rank that the plan could be for has one already",
                 "give one plan a rank"};
}

Result<LivePlan> prepareOne(const LivePlanFrom& from, Plan plan, const PlannedStep& bound,
                            const planners::Progress& progress, const profiler::Progress& note) {
    LivePlan prepared;
    const Evaluation judged = evaluate(bound.step.graph, plan.schedule);
    if (!judged.valid)
        return Error{ErrorCode::Verification, "the plan is invalid: " + judged.why,
                     "plan again; a plan file should not be edited by hand"};
    auto program = compile(bound.step, plan);
    if (!program) return program.error();
    prepared.session = from.session;
    prepared.step = bound.step.graph.sessionStep;
    if (const auto steps = bound.step.session.steps(); steps)
        for (const StepRow& row : *steps)
            if (row.id == prepared.step)
                prepared.stableSources = stepEnvironment(row).stableSources;
    prepared.recomputedOps =
        std::count_if(plan.schedule.begin(), plan.schedule.end(),
                      [](const Action& action) { return action.recomputes(); });
    prepared.kept = program->kept;
    prepared.programs.programs.push_back(std::move(*program));
    Status firstStep;
    if (Status done = addOtherSteps(from.session, bound.step, plan, progress, prepared, firstStep);
        !done)
        return done.error();
    if (prepared.kept > Bytes(0))
        note(humanBytes(prepared.kept) +
             " that the plan drops could not be restored at any time, and stay");
    if (!firstStep && from.fromStart) return firstStep.error();
    if (prepared.unplannedKinds > 0)
        note("no plan of their own for " + std::to_string(prepared.unplannedKinds) +
             " of the recorded kinds of steps: " + prepared.whyUnplanned);
    prepared.plan = std::move(plan);
    return prepared;
}

}  // namespace

Result<std::vector<LivePlan>> prepareLive(const LivePlanFrom& from,
                                          const planners::Progress& progress,
                                          const profiler::Progress& note) {
    std::vector<LivePlan> all;
    std::set<std::int64_t> planned;
    for (const std::string& path : from.plans) {
        auto plan = readPlanFile(path);
        if (!plan) return plan.error();
        const auto bound = stepOf(from, *plan, planned);
        if (!bound) return bound.error();
        auto prepared = prepareOne(from, std::move(*plan), *bound, progress, note);
        if (!prepared) return prepared.error();
        planned.insert(bound->rank);
        if (from.plans.size() > 1) prepared->programs.rank = bound->rank;
        all.push_back(std::move(*prepared));
    }
    return all;
}

}  // namespace hw::live
