// SPDX-License-Identifier: MIT
#include "executor/pipeline.h"

#include <algorithm>

#include "core/memory/evaluate.h"
#include "core/memory/plan_layout.h"
#include "core/plan/plan.h"
#include "core/session/load_menu.h"
#include "core/session/session.h"
#include "core/session/signatures.h"
#include "executor/implementations.h"
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

bool sameSizes(const core::OpSignature& a, const core::OpSignature& b) {
    return std::equal(a.allocations.begin(), a.allocations.end(), b.allocations.begin(),
                      b.allocations.end(),
                      [](const Allocation& x, const Allocation& y) { return x.bytes == y.bytes; });
}

bool sameSizes(const core::Signatures& a, const core::Signatures& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const auto& x, const auto& y) { return sameSizes(x, y); });
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
        if (under_)
            if (Status ok = profileUnderChoice(); !ok) return ok.error();
        if (Status ok = verify(); !ok) return ok.error();
        if (Status ok = time(); !ok) return ok.error();
        if (request_.steps > 0)
            if (Status ok = train(); !ok) return ok.error();
        // Last: oneDNN may allocate otherwise for an op once it has run it in another form.
        if (request_.implementations)
            if (Status ok = measure(); !ok) return ok.error();
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
        if (!plan_) return {};
        if (Status same = core::requireSameGraph(*plan_, step_->graph); !same) return same;
        return plan_->implementations.empty() ? Status() : choose();
    }

    // The step as the plan's implementations make it, with the figures that the session has.
    Status choose() {
        auto known = core::loadMenu(*session_, step_->graph);
        if (!known) return known.error();
        auto menu = core::chosenEntries(*plan_, step_->graph, *known);
        if (!menu) return menu.error();
        chosen_ = std::move(*menu);
        auto under = stepUnder(*step_, chosen_, plan_->implementations);
        if (!under) return under.error();
        under_.emplace(std::move(*under));
        report_.chosen = static_cast<std::int64_t>(chosen_.implementations.size());
        report_.captured =
            std::all_of(chosen_.implementations.begin(), chosen_.implementations.end(),
                        [](const core::Implementation& one) { return keepsBits(one.name); });
        return {};
    }

    const core::TrainingGraph& plannedGraph() const {
        return under_ ? under_->graph : step_->graph;
    }
    Interpreter& planned() { return underChoice_ ? *underChoice_ : *interpreter_; }

    // The prediction comes first, with the costs that the plan was made with.
    Status judge() {
        baseline_ = core::baselineSchedule(step_->graph);
        schedule_ = plan_ ? plan_->schedule : baseline_;
        report_.planner = plan_ ? plan_->planner : "none";
        const core::Evaluation evaluation = core::evaluate(plannedGraph(), schedule_);
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

    // What ops allocate under the plan's implementations, in the captured order too.
    Status profileUnderChoice() {
        auto made = Interpreter::create(*under_, tracker_);
        if (!made) return made.error();
        underChoice_.emplace(std::move(*made));
        orderUnderChoice_ = core::baselineSchedule(under_->graph);
        RunOptions options;
        if (auto warm = planned().run(orderUnderChoice_, options); !warm) return warm.error();
        tracker_.disownLive();
        options.profile = true;
        auto recorded = planned().run(orderUnderChoice_, options);
        if (!recorded) return recorded.error();
        signatures_ = std::move(recorded->signatures);
        arenaUnderChoice_ =
            packSchedule(under_->graph, orderUnderChoice_, signatures_, tracker_.alignment());
        return {};
    }

    Status measure() {
        Reference reference(step_->graph);
        RunOptions options;
        options.observer = &reference;
        if (auto ran = interpreter_->run(baseline_, options); !ran) return ran.error();
        auto menu = measureImplementations(*step_, tracker_, profile_, reference,
                                           *request_.implementations, request_.repeat, progress_);
        if (!menu) return menu.error();
        report_.menu = {menu->offered, static_cast<std::int64_t>(menu->menu.implementations.size()),
                        menu->different, menu->dominated, menu->impossible};
        menu_ = std::move(*menu);
        return {};
    }

    void noteChanges(const core::Signatures& now) {
        for (std::size_t i = 0; i < now.size(); ++i) {
            if (sameSizes(now[i], profile_.signatures[i])) continue;
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
        const Course course = unplanned();
        Reference reference(report_.captured ? step_->graph : under_->graph);
        RunOptions options;
        options.observer = &reference;
        auto unplanned = course.interpreter->run(
            *course.schedule, options, [&](const FinalState& state) { reference.keep(state); });
        if (!unplanned) return unplanned.error();
        for (const std::string& note : reference.notes()) report_.notes.push_back(note);

        progress_("running the plan");
        if (Status ok = findArena(); !ok) return ok;
        Comparison comparison(reference);
        options.observer = &comparison;
        options.arena = &arena_;
        auto ran = planned().run(schedule_, options,
                                 [&](const FinalState& state) { comparison.compare(state); });
        if (!ran) return ran.error();
        report_.figures = comparison.figures();
        report_.measuredPeak = ran->peak;
        report_.fallbacks = ran->fallbacks;
        if (plan_) noteLeftovers(*ran);
        return {};
    }

    // What results are compared with: the captured order, under the plan's implementations where
    // these have other last bits than the captured ones.
    Course unplanned() {
        if (report_.captured) return {&*interpreter_, &baseline_, &baselineArena_};
        return {&*underChoice_, &orderUnderChoice_, &arenaUnderChoice_};
    }

    // The plan's arena: its own where it was laid out with recorded signatures. The layout of a
    // plan made before any run knows sums only, and is packed again.
    Status findArena() {
        auto arena = plan_ && plan_->layout ? planArena() : core::Result(std::optional<Arena>());
        if (!arena) return arena.error();
        arena_ =
            *arena ? std::move(**arena)
                   : packSchedule(plannedGraph(), schedule_,
                                  under_ ? signatures_ : profile_.signatures, tracker_.alignment());
        report_.arena = arena_.bytes;
        report_.arenaLowerBound = arena_.lowerBound;
        if (plan_ && plan_->options.contains("fit") && arena_.bytes > plan_->budget)
            report_.notes.push_back("the arena is " +
                                    core::humanBytes(arena_.bytes - plan_->budget) +
                                    " above the plan's budget");
        return {};
    }

    core::Result<std::optional<Arena>> planArena() {
        auto stored = core::loadSignaturesUnder(*session_, step_->graph, chosen_);
        if (!stored) return stored.error();
        if (!stored->empty() && under_ && !sameSizes(*stored, signatures_)) {
            report_.notes.emplace_back(
                "the plan's layout was made for other allocations than those of its "
                "implementations in this run; packed again");
            return std::optional<Arena>();
        }
        if (!stored->empty()) {
            auto arena = arenaFromLayout(*plan_->layout, plannedGraph(), schedule_, *stored,
                                         tracker_.alignment());
            if (!arena) return arena.error();
            return std::optional(std::move(*arena));
        }
        if (Status sound =
                core::verifyLayout(*plan_->layout, plannedGraph(), schedule_, tracker_.alignment());
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
            if (Status ok = timeOnce(*interpreter_, baseline_, baselineArena_, unplanned); !ok)
                return ok;
            if (!plan_) continue;
            if (Status ok = timeOnce(this->planned(), schedule_, arena_, planned); !ok) return ok;
        }
        report_.baselineTime = median(std::move(unplanned));
        report_.time = plan_ ? median(std::move(planned)) : report_.baselineTime;
        report_.interpreterPerOp = median(outsideKernels_);
        return {};
    }

    Status timeOnce(Interpreter& interpreter, const core::Schedule& schedule, const Arena& arena,
                    std::vector<Nanoseconds>& times) {
        RunOptions options;
        options.arena = &arena;
        auto result = interpreter.run(schedule, options);
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
        const Course course{&planned(), &schedule_, &arena_};
        auto training = trainSteps(*step_, request_.steps, unplanned(), plan_ ? &course : nullptr);
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
        const bool replace = request_.remeasure || menu_;
        if (ok && (replace || (recordedHere && !session_->hasMeasuredCosts(stepId_))))
            ok = storeProfile(*session_, step_->graph, profile_);
        if (ok && menu_)
            ok = core::storeMenu(*session_, step_->graph, menu_->menu, menu_->signatures);
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
    // Where the plan chooses implementations: the step under them.
    core::Menu chosen_;
    std::optional<Step> under_;
    std::optional<Interpreter> underChoice_;
    core::Schedule orderUnderChoice_;
    core::Signatures signatures_;
    Arena arenaUnderChoice_;
    std::optional<MeasuredMenu> menu_;
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
