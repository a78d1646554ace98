// SPDX-License-Identifier: MIT
#include "live/host/plans.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "core/base/digest.h"
#include "core/import/load_step.h"
#include "core/memory/keep_nondeterministic.h"
#include "core/session/step_environment.h"
#include "planners/plan_with.h"
#include "planners/registry.h"

namespace hw::live {
namespace {

using namespace hw::core;

constexpr double kOtherStepSeconds = 5;  // to plan a step that the given plan is not for
constexpr std::size_t kMostPrograms = 8;

/// What ops make that are not deterministic stays where the plan's budget has room for it.
void keepWhatVaries(const TrainingGraph& graph, Plan& plan, bool onGpu) {
    auto kept = keepNondeterministic(graph, plan.schedule, plan.budget, onGpu);
    if (!kept) return;
    TrainingGraph linked = graph;
    linked.link = plan.link.value_or(graph.link);
    const Evaluation judged = evaluate(linked, *kept);
    plan.overhead *= static_cast<double>(judged.time.count()) /
                     static_cast<double>(std::max<std::int64_t>(1, plan.predictedTime.count()));
    plan.predictedPeak = judged.peak;
    plan.predictedTime = judged.time;
    plan.schedule = std::move(*kept);
    plan.layout.reset();
}

Result<LiveProgram> compile(const LoadedStep& step, Plan& plan) {
    const auto devices = step.session.storageDevices();
    if (!devices) return devices.error();
    const bool onGpu = std::any_of(devices->begin(), devices->end(), [](const std::string& each) {
        return each.starts_with("cuda");
    });
    // Storages whose addresses a program has given out before the step, or reads in a child that it
    // has forked, must not leave, and the runtime does not know all of them yet.
    if (plan.link)
        return badInput("the plan offloads, which a running program cannot be given yet",
                        "plan again without --offload on; 'highwater run' carries it out");
    keepWhatVaries(step.graph, plan, onGpu);
    const auto tensors = step.session.tensors();
    if (!tensors) return tensors.error();
    auto program = liveProgram(step.graph, plan, *tensors);
    if (program) program->step = step.graph.sessionStep;
    return program;
}

/// A plan for another recorded step by the given one's planner, or by the quick one: within its
/// peak, or at least within its budget. `once`: a step that comes but once is worth no long search.
Result<Plan> planLike(const Plan& plan, const LoadedStep& step, bool once,
                      const planners::Progress& progress) {
    planners::PlanRequest request;
    request.seed = plan.seed;
    request.timeLimitSeconds = kOtherStepSeconds;
    request.hostMemory = plan.hostMemory;
    std::vector<std::string> by{plan.planner};
    by.insert(once ? by.begin() : by.end(), planners::quickPlanner().name);
    std::string why;
    for (const std::string& planner : by)
        for (const Bytes budget : {plan.predictedPeak, plan.budget}) {
            request.budget = budget;
            const auto outcome = planners::planWith(planner, step.graph, request, progress);
            if (!outcome) return outcome.error();
            if (outcome->plan) return *outcome->plan;
            why = outcome->reason;
        }
    return Error{ErrorCode::NoPlan,
                 "step " + std::to_string(step.graph.sessionStep) + " has no plan within " +
                     humanBytes(plan.budget) + ": " + why,
                 "leave out --from-start, or plan with a larger budget"};
}

/// The same for steps of which one plan serves all: tensors are numbered as ops come by them. What
/// is left of the step before has other places among the constants in a program's second step.
std::string kindOf(const TrainingGraph& graph) {
    std::vector<std::int64_t> tensors(graph.tensors.size(), -1),
        storages(graph.storages.size(), -1);
    std::int64_t seenTensors = 0, seenStorages = 0;
    Digest digest;
    const auto addStorage = [&](StorageIndex storage) {
        if (storages[storage] < 0) {
            storages[storage] = seenStorages++;
            digest.add(graph.storages[storage].bytes.count());
            digest.add(graph.storages[storage].creator);
        }
        digest.add(storages[storage]);
    };
    const auto addTensor = [&](TensorIndex tensor) {
        if (tensors[tensor] < 0) tensors[tensor] = seenTensors++;
        digest.add(tensors[tensor]);
        addStorage(graph.storageOf(tensor));
    };
    for (const Op& op : graph.ops) {
        digest.add(op.name);
        for (const std::size_t count : {op.inputs.size(), op.outputs.size(), op.writes.size()})
            digest.add(static_cast<std::int64_t>(count));
        for (const Use& use : op.inputs) addTensor(use.tensor), digest.add(use.version);
        for (const OpOutput& output : op.outputs)
            addTensor(output.tensor), digest.add(output.makesStorage);
        for (const Write& write : op.writes)
            addStorage(write.storage), digest.add(write.versionBefore);
    }
    std::set<std::int64_t> alive;
    for (const TensorIndex tensor : graph.finalTensors) alive.insert(tensors[tensor]);
    for (const std::int64_t tensor : alive) digest.add(tensor);
    return digest.hex();
}

/// Whether more is live at the next step's begin: optimizers have made their states, which comes
/// but once.
bool leavesMore(const StepRow& step, const std::vector<StepRow>& all) {
    const auto next = std::find_if(all.begin(), all.end(), [&](const StepRow& row) {
        return row.process == step.process && row.firstSeq >= step.endSeq;
    });
    return next != all.end() && step.allocatorBeginBytes && next->allocatorBeginBytes &&
           *next->allocatorBeginBytes > *step.allocatorBeginBytes;
}

/// Steps differ: optimizers make their states in the first one, gradients are made or zeroed, the
/// last batch is smaller. Each kind that was recorded gets a plan of its own.
Result<StepKinds> otherKinds(const std::string& session, const LoadedStep& planned,
                             const Plan& plan, const planners::Progress& progress) {
    const auto steps = planned.session.steps();
    if (!steps) return steps.error();
    const auto own = std::find_if(steps->begin(), steps->end(), [&](const StepRow& row) {
        return row.id == planned.graph.sessionStep;
    });
    StepKinds kinds;
    std::set<std::string> known{kindOf(planned.graph)};
    bool first = true;
    for (const StepRow& row : *steps) {
        if (kinds.programs.size() + 1 == kMostPrograms || progress.cancelled()) break;
        if (own == steps->end() || row.process != own->process) continue;
        Status unplanned;
        const bool isFirst = std::exchange(first, false);
        Status& outcome = isFirst ? kinds.firstStep : unplanned;
        auto step = loadStep(session, row.id, plan.costs);
        if (!step) {
            outcome = step.error();
            continue;
        }
        if (!known.insert(kindOf(step->graph)).second) continue;
        auto other = planLike(plan, *step, isFirst && leavesMore(row, *steps), progress);
        if (!other) {
            ++kinds.unplanned;
            kinds.whyUnplanned = other.error().what;
            outcome = other.error();
            continue;
        }
        auto program = compile(*step, *other);
        if (!program) return program.error();
        kinds.programs.push_back(std::move(*program));
    }
    return kinds;
}

void take(StepKinds kinds, LivePlan& prepared, const profiler::Progress& note) {
    for (LiveProgram& program : kinds.programs) {
        prepared.kept = std::max(prepared.kept, program.kept);
        prepared.programs.programs.push_back(std::move(program));
    }
    prepared.unplannedKinds = kinds.unplanned;
    prepared.whyUnplanned = std::move(kinds.whyUnplanned);
    if (prepared.kept > Bytes(0))
        note(humanBytes(prepared.kept) +
             " that the plan drops could not be restored at any time, and stay");
    if (prepared.unplannedKinds > 0)
        note("no plan of their own for " + std::to_string(prepared.unplannedKinds) +
             " of the recorded kinds of steps: " + prepared.whyUnplanned);
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

Result<LivePlan> prepareOne(const LivePlanFrom& from, Plan plan, const PlannedStep& bound) {
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
    prepared.plan = std::move(plan);
    return prepared;
}

/// Of each plan.
Result<std::vector<StepKinds>> otherKinds(const std::vector<LivePlan>& plans,
                                          const planners::Progress& progress) {
    std::vector<StepKinds> all;
    for (const LivePlan& each : plans) {
        const auto step = loadStep(each.session, each.step, each.plan.costs);
        if (!step) return step.error();
        auto kinds = otherKinds(each.session, *step, each.plan, progress);
        if (!kinds) return kinds.error();
        all.push_back(std::move(*kinds));
    }
    return all;
}

}  // namespace

Result<std::vector<LivePlan>> prepareFirst(const LivePlanFrom& from) {
    std::vector<LivePlan> all;
    std::set<std::int64_t> planned;
    for (const std::string& path : from.plans) {
        auto plan = readPlanFile(path);
        if (!plan) return plan.error();
        const auto bound = stepOf(from, *plan, planned);
        if (!bound) return bound.error();
        auto prepared = prepareOne(from, std::move(*plan), *bound);
        if (!prepared) return prepared.error();
        planned.insert(bound->rank);
        if (from.plans.size() > 1) prepared->programs.rank = bound->rank;
        all.push_back(std::move(*prepared));
    }
    return all;
}

Result<std::vector<LivePlan>> prepareLive(const LivePlanFrom& from,
                                          const planners::Progress& progress,
                                          const profiler::Progress& note) {
    auto plans = prepareFirst(from);
    if (!plans) return plans;
    auto kinds = otherKinds(*plans, progress);
    if (!kinds) return kinds.error();
    for (std::size_t i = 0; i < plans->size(); ++i) {
        if (const Status first = (*kinds)[i].firstStep; !first && from.fromStart)
            return first.error();
        take(std::move((*kinds)[i]), (*plans)[i], note);
    }
    return plans;
}

OtherKinds::OtherKinds(std::vector<LivePlan>& plans, profiler::Progress note)
    : plans_(plans), note_(std::move(note)) {
    made_ = std::async(std::launch::async, [this, copies = plans] {
        planners::Progress progress;
        progress.cancelled = [this] { return cancelled_.load(); };
        return otherKinds(copies, progress);
    });
}

OtherKinds::~OtherKinds() {
    cancelled_ = true;
    if (made_.valid()) made_.wait();
}

bool OtherKinds::poll() {
    if (!made_.valid()) return true;
    if (made_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return false;
    auto kinds = made_.get();
    for (std::size_t i = 0; kinds && i < kinds->size(); ++i)
        take(std::move((*kinds)[i]), plans_[i], note_);
    if (!kinds) note_("no plan of their own for the other kinds of steps: " + kinds.error().what);
    return true;
}

std::vector<LivePrograms> OtherKinds::programs() const {
    std::vector<LivePrograms> all;
    for (const LivePlan& plan : plans_) all.push_back(plan.programs);
    return all;
}

}  // namespace hw::live
