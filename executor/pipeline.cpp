// SPDX-License-Identifier: MIT
#include "executor/pipeline.h"

#include <algorithm>

#include "core/memory/evaluate.h"
#include "core/memory/plan_layout.h"
#include "core/plan/plan.h"
#include "core/session/session.h"
#include "core/session/signatures.h"
#include "executor/interpreter.h"
#include "executor/run_store.h"
#include "executor/torch_adapter.h"
#include "executor/training.h"

namespace hw::executor {
namespace {

using core::Bytes;
using core::Error;
using core::ErrorCode;
using core::Nanoseconds;
using core::OpIndex;
using core::Status;

Nanoseconds median(std::vector<Nanoseconds> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

class Pipeline {
public:
    Pipeline(const RunRequest& request, const std::function<void(const std::string&)>& progress)
        : request_(request), progress_(progress) {}

    core::Result<Report> run() {
        if (Status ok = open(); !ok) return ok.error();
        report_.device = request_.device == Device::Cuda ? "cuda" : "cpu";
        if (Status ok = judge(); !ok) return ok.error();
        progress_("preparing " + std::to_string(step_->graph.ops.size()) + " ops");
        auto interpreter = Interpreter::create(*step_, tracker_);
        if (!interpreter) return interpreter.error();
        interpreter_.emplace(std::move(*interpreter));
        for (const std::string& note : interpreter_->notes()) report_.notes.push_back(note);
        if (Status ok = profile(); !ok) return ok.error();
        if (Status ok = verify(); !ok) return ok.error();
        if (Status ok = time(); !ok) return ok.error();
        if (request_.steps > 0)
            if (Status ok = train(); !ok) return ok.error();
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
        auto step = loadStep(*session_, stepId_, costs, request_.device);
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

    // A first run warms caches up, the next one records the signatures. Times are those in the
    // arena that comes out of them.
    Status profile() {
        progress_("running the captured order");
        RunOptions options;
        options.profile = true;
        if (auto warm = interpreter_->run(baseline_, options); !warm) return warm.error();
        if (const Bytes kept = tracker_.disownLive(); kept > Bytes(0))
            report_.notes.push_back(std::to_string(kept.count()) +
                                    " bytes stay allocated from step to step, not counted here");
        auto recorded = interpreter_->run(baseline_, options);
        if (!recorded) return recorded.error();
        noteLeftovers(*recorded);
        profile_.signatures = std::move(recorded->signatures);
        profile_.workspaces = std::move(recorded->workspaces);
        report_.baselinePeak = recorded->peak;
        baselineArena_ =
            packSchedule(step_->graph, baseline_, profile_.signatures, tracker_.alignment());

        std::vector<std::vector<Nanoseconds>> times(step_->graph.ops.size());
        options.arena = &baselineArena_;
        for (int pass = 0; pass < request_.repeat; ++pass) {
            auto result = interpreter_->run(baseline_, options);
            if (!result) return result.error();
            for (std::size_t i = 0; i < times.size(); ++i) times[i].push_back(result->times[i]);
            if (pass == 0) noteChanges(result->signatures);
        }
        for (auto& values : times) profile_.times.push_back(median(std::move(values)));
        return {};
    }

    void noteChanges(const core::Signatures& now) {
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
        if (Status ok = findArena(); !ok) return ok;
        Comparison comparison(reference);
        options.observer = &comparison;
        options.arena = &arena_;
        auto planned = interpreter_->run(
            schedule_, options, [&](const FinalState& state) { comparison.compare(state); });
        if (!planned) return planned.error();
        report_.figures = comparison.figures();
        report_.measuredPeak = planned->peak;
        report_.fallbacks = planned->fallbacks;
        if (plan_) noteLeftovers(*planned);
        return {};
    }

    // The plan's arena: its own where it was laid out with recorded signatures. The layout of a
    // plan made before any run knows sums only, and is packed again.
    Status findArena() {
        auto arena = plan_ && plan_->layout ? planArena() : core::Result(std::optional<Arena>());
        if (!arena) return arena.error();
        arena_ = *arena ? std::move(**arena)
                        : packSchedule(step_->graph, schedule_, profile_.signatures,
                                       tracker_.alignment());
        report_.arena = arena_.bytes;
        report_.arenaLowerBound = arena_.lowerBound;
        if (plan_ && plan_->options.contains("fit") && arena_.bytes > plan_->budget)
            report_.notes.push_back("the arena is " +
                                    core::humanBytes(arena_.bytes - plan_->budget) +
                                    " above the plan's budget");
        return {};
    }

    core::Result<std::optional<Arena>> planArena() {
        auto stored = core::loadSignatures(*session_, step_->graph);
        if (!stored) return stored.error();
        if (!stored->empty()) {
            auto arena = arenaFromLayout(*plan_->layout, step_->graph, schedule_, *stored,
                                         tracker_.alignment());
            if (!arena) return arena.error();
            return std::optional(std::move(*arena));
        }
        if (Status sound =
                core::verifyLayout(*plan_->layout, step_->graph, schedule_, tracker_.alignment());
            !sound)
            return sound.error();
        report_.notes.emplace_back(
            "the plan's layout was made before allocations were recorded; packed again");
        return std::optional<Arena>();
    }

    // Unplanned and planned passes in turn, so that both meet the same machine.
    Status time() {
        progress_("timing the plan");
        std::vector<Nanoseconds> unplanned, planned;
        for (int pass = 0; pass < request_.repeat; ++pass) {
            if (Status ok = timeOnce(baseline_, baselineArena_, unplanned); !ok) return ok;
            if (!plan_) continue;
            if (Status ok = timeOnce(schedule_, arena_, planned); !ok) return ok;
        }
        report_.baselineTime = median(std::move(unplanned));
        report_.time = plan_ ? median(std::move(planned)) : report_.baselineTime;
        report_.interpreterPerOp = median(outsideKernels_);
        return {};
    }

    Status timeOnce(const core::Schedule& schedule, const Arena& arena,
                    std::vector<Nanoseconds>& times) {
        RunOptions options;
        options.arena = &arena;
        auto result = interpreter_->run(schedule, options);
        if (!result) return result.error();
        times.push_back(result->time);
        if (&arena == &baselineArena_)
            outsideKernels_.push_back(
                Nanoseconds((result->time - result->kernels).count() /
                            static_cast<std::int64_t>(step_->graph.ops.size())));
        if (&arena == &arena_) report_.measuredPeak = std::max(report_.measuredPeak, result->peak);
        return {};
    }

    Status train() {
        progress_("training " + std::to_string(request_.steps) + " steps");
        const Course unplanned{&baseline_, &baselineArena_}, planned{&schedule_, &arena_};
        auto training = trainSteps(*interpreter_, *step_, request_.steps, unplanned,
                                   plan_ ? &planned : nullptr);
        if (!training) return training.error();
        if (!training->note.empty()) report_.notes.push_back(training->note);
        report_.training = std::move(*training);
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
        // Costs of a GPU are no costs of a step that was recorded on the CPU.
        const bool recordedHere =
            (request_.device == Device::Cuda) == step_->recordedOn.starts_with("cuda");
        if (ok && (request_.remeasure || (recordedHere && !session_->hasMeasuredCosts(stepId_))))
            ok = storeProfile(*session_, step_->graph, profile_);
        if (ok) ok = storeRun(*session_, stepId_, plan_ ? &*plan_ : nullptr, recomputed_, report_);
        if (ok) ok = session_->commit();
        if (!ok)
            report_.notes.push_back("nothing of this run is kept in the session: " +
                                    ok.error().what);
    }

    const RunRequest& request_;
    const std::function<void(const std::string&)>& progress_;
    // Freed last: tensors that live in static objects of libtorch come back to it at exit.
    MemoryTracker& tracker_ = *new MemoryTracker(torch::memory());
    std::optional<core::Session> session_;
    bool writable_ = true;
    std::int64_t stepId_ = 0;
    std::optional<core::Plan> plan_;
    std::optional<Step> step_;
    core::Schedule baseline_, schedule_;
    std::int64_t recomputed_ = 0;
    std::optional<Interpreter> interpreter_;
    Profile profile_;
    Arena baselineArena_, arena_;
    std::vector<Nanoseconds> outsideKernels_;  // of an op, by timed pass
    Report report_;
};

}  // namespace

core::Result<Report> runStep(const RunRequest& request,
                             const std::function<void(const std::string&)>& progress) {
    if (const Status ok = torch::open(request.device); !ok) return ok.error();
    return Pipeline(request, progress).run();
}

}  // namespace hw::executor
