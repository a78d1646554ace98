// SPDX-License-Identifier: MIT
#include "executor/replay/pipeline.h"

#include <algorithm>

#include "core/memory/evaluate.h"
#include "core/plan/plan.h"
#include "core/session/load_menu.h"
#include "core/session/session.h"
#include "core/session/signatures.h"
#include "executor/replay/implementations.h"
#include "executor/replay/interpreter.h"
#include "executor/replay/measure.h"
#include "executor/replay/plan_arena.h"
#include "executor/replay/profile_run.h"
#include "executor/replay/report.h"
#include "executor/replay/sandbox.h"
#include "executor/replay/timing.h"
#include "executor/replay/training.h"

namespace hw::executor {
namespace {

using core::Bytes;
using core::Error;
using core::ErrorCode;
using core::OpIndex;
using core::Status;

/// What is wrong with the results, if something is.
std::optional<Error> difference(const Report& report) {
    if (report.same()) return std::nullopt;
    if (report.figures.different == 0)
        return Error{ErrorCode::Verification, "the steps in a row differ from the unplanned ones",
                     "the losses and final states that differ are counted in the output"};
    return Error{ErrorCode::Verification,
                 std::to_string(report.figures.different) + " of " +
                     std::to_string(report.figures.compared) +
                     " results differ from the unplanned run",
                 "the first difference is named in the output"};
}

class Pipeline {
public:
    Pipeline(const RunRequest& request, MemorySource& memory,
             const std::function<void(const std::string&)>& progress)
        : request_(request), progress_(progress), tracker_(*new MemoryTracker(memory)) {}

    core::Result<Outcome> run() {
        HW_TRY(open());
        report_.device = request_.device == Device::Cuda ? "cuda" : "cpu";
        HW_TRY(judge());
        if (const std::string why = enterSandbox(request_.device); !why.empty())
            report_.notes.push_back("the ops run with all of your rights: " + why);
        progress_("preparing " + std::to_string(step_->graph.ops.size()) + " ops");
        auto interpreter = Interpreter::create(*step_, tracker_);
        if (!interpreter) return interpreter.error();
        interpreter_.emplace(std::move(*interpreter));
        for (const std::string& note : interpreter_->notes()) report_.notes.push_back(note);
        HW_TRY(profile());
        if (under_) HW_TRY(profileUnderChoice());
        HW_TRY(verify());
        HW_TRY(time());
        if (request_.steps > 0) HW_TRY(train());
        // Last: oneDNN may allocate otherwise for an op once it has run it in another form.
        if (request_.implementations) HW_TRY(measure());
        report_.residentSetPeak = residentSetPeak();
        report_.threads = step_->environment.threads;
        return outcome();
    }

private:
    Status open() {
        auto session = core::Session::open(request_.session);
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
        step_->libraries = request_.libraries;
        auto end = loadRecordedEnd(*session_, *step_);
        if (!end) return end.error();
        recordedEnd_ = std::move(*end);
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
        report_.planner = plan_ ? plan_->planner : core::kBaselinePlanner;
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

    Status profile() {
        progress_("running the captured order");
        auto captured =
            profileOrder(*interpreter_, step_->graph, baseline_, tracker_, request_.repeat);
        if (!captured) return captured.error();
        captured_ = std::move(*captured);
        report_.baselinePeak = captured_.peak;
        for (const std::string& note : captured_.notes) report_.notes.push_back(note);
        return {};
    }

    // What ops allocate under the plan's implementations, in the captured order too.
    Status profileUnderChoice() {
        auto made = Interpreter::create(*under_, tracker_);
        if (!made) return made.error();
        underChoice_.emplace(std::move(*made));
        orderUnderChoice_ = core::baselineSchedule(under_->graph);
        auto found = profileOrder(planned(), under_->graph, orderUnderChoice_, tracker_, 0);
        if (!found) return found.error();
        chosenOrder_ = std::move(*found);
        return {};
    }

    Status measure() {
        Reference reference(step_->graph);
        RunOptions options;
        options.observer = &reference;
        if (auto ran = interpreter_->run(baseline_, options); !ran) return ran.error();
        auto menu = measureImplementations(*step_, tracker_, captured_.profile, reference,
                                           *request_.implementations, request_.repeat, progress_);
        if (!menu) return menu.error();
        report_.menu = {menu->offered, static_cast<std::int64_t>(menu->menu.implementations.size()),
                        menu->different, menu->dominated, menu->impossible};
        menu_ = std::move(*menu);
        return {};
    }

    Status verify() {
        progress_("recording the reference");
        const Execution execution = unplanned();
        Reference reference(report_.captured ? step_->graph : under_->graph);
        RunOptions options;
        options.observer = &reference;
        auto unplanned = execution.interpreter->run(
            *execution.schedule, options, [&](const FinalState& state) { reference.keep(state); });
        if (!unplanned) return unplanned.error();
        for (const std::string& note : reference.notes()) report_.notes.push_back(note);

        progress_("running the plan");
        HW_TRY(findArena());
        Comparison comparison(reference);
        options.observer = &comparison;
        options.arena = &arena_;
        auto ran = planned().run(schedule_, options, [&](const FinalState& state) {
            comparison.compare(state);
            report_.recorded = compareWithRecorded(recordedEnd_, *step_, state);
        });
        if (!ran) return ran.error();
        report_.figures = comparison.figures();
        report_.measuredPeak = ran->peak;
        report_.fallbacks = ran->fallbacks;
        if (plan_) noteLeftovers(*ran, report_.notes);
        return {};
    }

    // What results are compared with: the captured order, under the plan's implementations where
    // these have other last bits than the captured ones.
    Execution unplanned() {
        if (report_.captured) return {&*interpreter_, &baseline_, &captured_.arena};
        return {&*underChoice_, &orderUnderChoice_, &chosenOrder_.arena};
    }

    Status findArena() {
        const core::Signatures& signatures = (under_ ? chosenOrder_ : captured_).profile.signatures;
        if (plan_) {
            auto stored = core::loadSignaturesUnder(*session_, step_->graph, chosen_);
            if (!stored) return stored.error();
            auto arena = arenaOf(*plan_, plannedGraph(), signatures, *stored, tracker_.alignment(),
                                 report_.notes);
            if (!arena) return arena.error();
            arena_ = std::move(*arena);
        } else {
            arena_ = packSchedule(step_->graph, schedule_, signatures, tracker_.alignment());
        }
        report_.arena = arena_.bytes;
        report_.arenaLowerBound = arena_.lowerBound;
        if (plan_ && plan_->options.contains("fit") && arena_.bytes > plan_->budget)
            report_.notes.push_back("the arena is " +
                                    core::humanBytes(arena_.bytes - plan_->budget) +
                                    " above the plan's budget");
        return {};
    }

    Status time() {
        progress_("timing the plan");
        const Execution captured{&*interpreter_, &baseline_, &captured_.arena};
        const Execution execution{&planned(), &schedule_, &arena_};
        auto timing = timeInTurn(captured, plan_ ? &execution : nullptr, plan_ ? &*plan_ : nullptr,
                                 plannedGraph(), request_.repeat);
        if (!timing) return timing.error();
        report_.time = timing->time;
        report_.baselineTime = timing->baselineTime;
        report_.interpreterPerOp = timing->interpreterPerOp;
        report_.measuredPeak = std::max(report_.measuredPeak, timing->peak);
        report_.ops = std::move(timing->ops);
        return {};
    }

    Status train() {
        progress_("training " + std::to_string(request_.steps) + " steps");
        const Execution execution{&planned(), &schedule_, &arena_};
        auto training =
            trainSteps(*step_, request_.steps, unplanned(), plan_ ? &execution : nullptr);
        if (!training) return training.error();
        if (!training->note.empty()) report_.notes.push_back(training->note);
        report_.training = std::move(*training);
        return {};
    }

    Outcome outcome() {
        Outcome outcome;
        outcome.json = toJson(report_);
        outcome.text = toText(report_);
        outcome.difference = difference(report_);
        core::RunRow& run = outcome.run;
        run.step = stepId_;
        run.device = report_.device;
        run.predictedPeak = report_.predictedPeak;
        run.measuredPeak = report_.measuredPeak;
        run.arenaBytes = report_.arena.count();
        run.time = report_.time;
        run.baselineTime = report_.baselineTime;
        run.compared = report_.figures.compared;
        run.different = report_.figures.different;
        run.nonfinite = report_.figures.nonfinite;
        outcome.recomputedOps = recomputed_;
        // Costs of a GPU are no costs of a step that was recorded on the CPU.
        outcome.recordedHere =
            (request_.device == Device::Cuda) == step_->recordedOn.starts_with("cuda");
        outcome.profile = std::move(captured_.profile);
        if (menu_) {
            outcome.menu = core::writeMenu(menu_->menu);
            outcome.signatures = std::move(menu_->signatures);
        }
        return outcome;
    }

    const RunRequest& request_;
    const std::function<void(const std::string&)>& progress_;
    // Freed last: tensors that live in static objects of libtorch come back to it at exit.
    MemoryTracker& tracker_;
    std::optional<core::Session> session_;
    std::int64_t stepId_ = 0;
    std::optional<core::Plan> plan_;
    std::optional<Step> step_;
    core::Schedule baseline_, schedule_;
    std::int64_t recomputed_ = 0;
    std::optional<Interpreter> interpreter_;
    ProfiledOrder captured_;
    Arena arena_;  // of what is run
    RecordedEnd recordedEnd_;
    // Where the plan chooses implementations: the step under them.
    core::Menu chosen_;
    std::optional<Step> under_;
    std::optional<Interpreter> underChoice_;
    core::Schedule orderUnderChoice_;
    ProfiledOrder chosenOrder_;
    std::optional<MeasuredMenu> menu_;
    Report report_;
};

}  // namespace

core::Result<Outcome> runStep(const RunRequest& request,
                              const std::function<void(const std::string&)>& progress) {
    const auto memory = openDevice(request.device);
    if (!memory) return memory.error();
    return Pipeline(request, **memory, progress).run();
}

}  // namespace hw::executor
