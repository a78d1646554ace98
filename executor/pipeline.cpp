// SPDX-License-Identifier: MIT
#include "executor/pipeline.h"

#include <algorithm>
#include <chrono>

#include "core/memory/evaluate.h"
#include "core/plan/plan.h"
#include "core/session/session.h"
#include "executor/interpreter.h"

namespace hw::executor {
namespace {

using core::Bytes;
using core::Error;
using core::ErrorCode;
using core::Nanoseconds;
using core::OpIndex;
using core::Status;

constexpr int kTimedPasses = 3;

Nanoseconds median(std::vector<Nanoseconds> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

std::int64_t nowNs() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
}

struct Profile {
    std::vector<OpSignature> signatures;
    std::vector<Bytes> workspaces;
    std::vector<Nanoseconds> times;  // median of the passes
    Bytes peak;
};

class Pipeline {
public:
    Pipeline(const RunRequest& request, const std::function<void(const std::string&)>& progress)
        : request_(request), progress_(progress) {}

    core::Result<Report> run() {
        if (Status ok = open(); !ok) return ok.error();
        if (Status ok = judge(); !ok) return ok.error();
        progress_("preparing " + std::to_string(step_->graph.ops.size()) + " ops");
        auto interpreter = Interpreter::create(*step_, tracker_);
        if (!interpreter) return interpreter.error();
        interpreter_.emplace(std::move(*interpreter));
        for (const std::string& note : interpreter_->notes()) report_.notes.push_back(note);
        if (Status ok = profile(); !ok) return ok.error();
        if (Status ok = verify(); !ok) return ok.error();
        if (Status ok = time(); !ok) return ok.error();
        report_.residentSetPeak = residentSetPeak();
        report_.threads = step_->environment.threads;
        store();
        return report_;
    }

private:
    Status open() {
        auto session = core::Session::open(request_.session, core::Session::Mode::Write);
        if (!session) {
            writable_ = false;
            session = core::Session::open(request_.session, core::Session::Mode::Read);
        }
        if (!session) return session.error();
        session_.emplace(std::move(*session));
        auto id = request_.step ? core::Result<std::int64_t>(*request_.step) : session_->lastStep();
        if (!id) return id.error();
        stepId_ = *id;
        std::optional<core::CostSet> costs;
        if (!request_.plan.empty()) {
            auto plan = core::readPlanFile(request_.plan);
            if (!plan) return plan.error();
            plan_ = std::move(*plan);
            costs = plan_->costs;
        }
        auto step = loadStep(*session_, stepId_, costs);
        if (!step) return step.error();
        step_.emplace(std::move(*step));
        if (plan_ && !plan_->implementations.empty())
            return core::badInput(
                "the plan chooses implementations of ops, which cannot be run yet",
                "plan with --use none, or with another planner");
        return plan_ ? core::requireSameGraph(*plan_, step_->graph) : Status();
    }

    // The prediction comes first, with the costs that the plan was made with.
    Status judge() {
        baseline_ = core::baselineSchedule(step_->graph);
        schedule_ = plan_ ? plan_->schedule : baseline_;
        report_.planner = plan_ ? plan_->planner : "none";
        const core::Evaluation evaluation = core::evaluate(step_->graph, schedule_);
        if (!evaluation.valid)
            return Error{ErrorCode::Verification,
                         "the schedule cannot be run: " + evaluation.why + " (action " +
                             std::to_string(evaluation.action) + ")",
                         "make the plan again"};
        report_.predictedPeak = evaluation.peak;
        recomputed_ = evaluation.recomputedOps;
        if (plan_ && plan_->predictedPeak != evaluation.peak)
            report_.notes.push_back("the plan file predicts a peak of " +
                                    std::to_string(plan_->predictedPeak.count()) +
                                    " bytes, the session's figures have changed since");
        return {};
    }

    // A first run warms caches up; the passes after it are timed and record the signatures.
    Status profile() {
        progress_("running the captured order");
        RunOptions options;
        options.profile = true;
        std::vector<Nanoseconds> totals;
        std::vector<std::vector<Nanoseconds>> times(step_->graph.ops.size());
        for (int pass = 0; pass <= kTimedPasses; ++pass) {
            auto result = interpreter_->run(baseline_, options);
            if (!result) return result.error();
            if (pass == 0) continue;
            totals.push_back(result->time);
            for (std::size_t i = 0; i < times.size(); ++i) times[i].push_back(result->times[i]);
            if (pass > 1) noteChanges(result->signatures);
            profile_.signatures = std::move(result->signatures);
            profile_.workspaces = std::move(result->workspaces);
            profile_.peak = result->peak;
            if (pass == kTimedPasses) noteLeftovers(*result);
        }
        for (auto& values : times) profile_.times.push_back(median(std::move(values)));
        report_.baselineTime = median(std::move(totals));
        report_.baselinePeak = profile_.peak;
        return {};
    }

    void noteChanges(const std::vector<OpSignature>& now) {
        for (std::size_t i = 0; i < now.size(); ++i) {
            const auto& a = now[i].allocations;
            const auto& b = profile_.signatures[i].allocations;
            if (std::equal(
                    a.begin(), a.end(), b.begin(), b.end(),
                    [](const Allocation& x, const Allocation& y) { return x.bytes == y.bytes; }))
                continue;
            report_.notes.push_back("op " + std::to_string(i) + " (" + step_->graph.ops[i].name +
                                    ") allocates differently from run to run");
            return;
        }
    }

    void noteLeftovers(const RunResult& result) {
        if (result.left > Bytes(0))
            report_.notes.push_back(std::to_string(result.left.count()) +
                                    " bytes outlive the step");
        for (const std::string& held : result.held) report_.notes.push_back(held);
    }

    Status verify() {
        progress_("recording the reference");
        Reference reference(step_->graph);
        RunOptions options;
        options.observer = &reference;
        auto unplanned = interpreter_->run(baseline_, options,
                                           [&](const FinalState& state) { reference.keep(state); });
        if (!unplanned) return unplanned.error();
        for (const std::string& note : reference.notes()) report_.notes.push_back(note);

        progress_("running the plan");
        if (plan_ && plan_->layout) {
            auto arena =
                arenaFromLayout(*plan_->layout, step_->graph, schedule_, profile_.signatures);
            if (arena)
                arena_ = std::move(*arena);
            else
                report_.notes.push_back(arena.error().what + "; packed again");
        }
        if (!arena_) arena_ = packSchedule(step_->graph, schedule_, profile_.signatures);
        report_.arena = arena_->bytes;
        report_.arenaLowerBound = arena_->lowerBound;

        Comparison comparison(reference);
        options.observer = &comparison;
        options.arena = &*arena_;
        auto planned = interpreter_->run(
            schedule_, options, [&](const FinalState& state) { comparison.compare(state); });
        if (!planned) return planned.error();
        report_.figures = comparison.figures();
        report_.measuredPeak = planned->peak;
        report_.fallbacks = planned->fallbacks;
        if (plan_) noteLeftovers(*planned);
        return {};
    }

    Status time() {
        progress_("timing the plan");
        RunOptions options;
        options.arena = &*arena_;
        std::vector<Nanoseconds> totals;
        for (int pass = 0; pass < kTimedPasses; ++pass) {
            auto result = interpreter_->run(schedule_, options);
            if (!result) return result.error();
            totals.push_back(result->time);
            report_.measuredPeak = std::max(report_.measuredPeak, result->peak);
        }
        report_.time = median(std::move(totals));
        return {};
    }

    // A run that cannot be stored is still a run: what went wrong becomes a note.
    void store() {
        if (!writable_) {
            report_.notes.emplace_back(
                "the session cannot be written: nothing of this run is kept in it");
            return;
        }
        Status ok = session_->begin();
        if (ok && (request_.remeasure || !session_->hasMeasuredCosts(stepId_))) ok = storeProfile();
        if (ok) ok = storeRun();
        if (ok) ok = session_->commit();
        if (!ok)
            report_.notes.push_back("nothing of this run is kept in the session: " +
                                    ok.error().what);
    }

    Status storeProfile() {
        std::vector<core::SignatureRow> rows;
        for (std::size_t i = 0; i < profile_.signatures.size(); ++i) {
            const std::int64_t op = step_->graph.ops[i].sessionId;
            int position = 0;
            for (const Allocation& allocation : profile_.signatures[i].allocations)
                rows.push_back({op, position++, allocation.bytes, allocation.output,
                                allocation.beginEvent, allocation.endEvent});
            if (Status ok = session_->setMeasured(op, profile_.times[i], profile_.workspaces[i]);
                !ok)
                return ok;
        }
        return session_->replaceSignatures(rows);
    }

    Status storeRun() {
        core::RunRow row;
        if (plan_) {
            auto id = storedPlan();
            if (!id) return id.error();
            row.plan = *id;
        }
        row.step = stepId_;
        row.createdNs = nowNs();
        row.predictedPeak = report_.predictedPeak;
        row.measuredPeak = report_.measuredPeak;
        row.arenaBytes = report_.arena.count();
        row.time = report_.time;
        row.baselineTime = report_.baselineTime;
        row.compared = report_.figures.compared;
        row.different = report_.figures.different;
        row.nonfinite = report_.figures.nonfinite;
        row.details = toJson(report_);
        auto id = session_->insert(row);
        return id ? Status() : Status(id.error());
    }

    core::Result<std::int64_t> storedPlan() {
        auto plans = session_->plans();
        if (!plans) return plans.error();
        const std::string document = core::writePlan(*plan_);
        for (const core::PlanRow& row : *plans)
            if (row.step == stepId_ && core::writePlan(row.plan) == document) return row.id;
        core::PlanRow row;
        row.step = stepId_;
        row.createdNs = nowNs();
        row.plan = *plan_;
        row.recomputedOps = recomputed_;
        return session_->insert(row);
    }

    const RunRequest& request_;
    const std::function<void(const std::string&)>& progress_;
    // Freed last: tensors that live in static objects of libtorch come back to it at exit.
    MemoryTracker& tracker_ = *new MemoryTracker;
    std::optional<core::Session> session_;
    bool writable_ = true;
    std::int64_t stepId_ = 0;
    std::optional<core::Plan> plan_;
    std::optional<Step> step_;
    core::Schedule baseline_, schedule_;
    std::int64_t recomputed_ = 0;
    std::optional<Interpreter> interpreter_;
    Profile profile_;
    std::optional<Arena> arena_;
    Report report_;
};

}  // namespace

core::Result<Report> runStep(const RunRequest& request,
                             const std::function<void(const std::string&)>& progress) {
    return Pipeline(request, progress).run();
}

}  // namespace hw::executor
