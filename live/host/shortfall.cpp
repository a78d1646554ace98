// SPDX-License-Identifier: MIT
#include "live/host/shortfall.h"

#include <algorithm>

namespace hw::live {
namespace {

using namespace hw::core;

/// Of a budget, that a step may be above it: no recording counts every byte.
constexpr std::int64_t kOneIn = 1000;
constexpr std::int64_t kStepsUnplanned = 3;  // before it is said that none is under the plan

enum class Cause { Left, Unlike, Learned, Looked, Kept, Others, Budget };

struct Step {
    const wire::LiveStepRecord& figures;
    const wire::LiveDivergenceRecord* divergence;
};

Cause causeOf(const Step& step, const LivePlan* plan) {
    if (step.divergence != nullptr) return Cause::Left;
    if (plan == nullptr) return Cause::Budget;
    if (step.figures.mode == wire::LiveMode::None)
        return step.figures.offloaded > 0 ? Cause::Learned : Cause::Unlike;
    const std::int64_t excess = step.figures.peak - plan->plan.budget.count();
    if (2 * step.figures.pinned >= excess) return Cause::Looked;
    return 2 * plan->kept.count() >= excess ? Cause::Kept : Cause::Others;
}

std::string counted(std::int64_t steps) {
    return steps == 1 ? "1 step" : std::to_string(steps) + " steps";
}

/// `first`: of those with this cause. `bytes`: the most of what makes it.
std::string sentence(Cause cause, const LivePlan* plan, std::int64_t steps, const Step& first,
                     Bytes bytes) {
    const char* const more =
        "; record more steps (--steps), so that each kind of step gets a plan of its own";
    switch (cause) {
        case Cause::Left:
            return counted(steps) + " left the plan, the first of them step " +
                   std::to_string(first.figures.step) + " at op " +
                   std::to_string(first.divergence->op) + " (" + first.divergence->found + ")" +
                   more;
        case Cause::Unlike:
            return counted(steps) + " had no plan: " +
                   (plan->unplannedKinds > 0
                        ? "other kinds of steps than the planned one have none within the budget; "
                          "plan with a larger one"
                        : "none of the recorded steps is like them" + std::string(more));
        case Cause::Learned:
            return counted(steps) +
                   " showed the plan which storages it moves before their first use: they stayed "
                   "in "
                   "it, and leave from the next step on";
        case Cause::Looked:
            return "up to " + humanBytes(bytes) +
                   " of what the plan drops stayed: numpy, an extension or another thread of the "
                   "program may still read them, or an op came back with other bytes in an earlier "
                   "run";
        case Cause::Kept:
            return humanBytes(bytes) +
                   " of what the plan drops stayed: they could not be restored at any time";
        case Cause::Others:
            return "up to " + humanBytes(bytes) +
                   " more than the plan's own bytes were live: of other threads, of objects that "
                   "the recorded step did not have, or of blocks larger than their tensors";
        case Cause::Budget:
            break;
    }
    return "single ops and what the program holds need more than the budget";
}

Bytes bytesOf(Cause cause, const Step& step, const LivePlan* plan) {
    switch (cause) {
        case Cause::Looked:
            return Bytes(step.figures.pinned);
        case Cause::Kept:
            return plan->kept;
        case Cause::Others:
            return Bytes(step.figures.peak) - plan->plan.predictedPeak;
        default:
            return {};
    }
}

bool isAbove(std::int64_t peak, Bytes budget) {
    return peak > budget.count() + budget.count() / kOneIn;
}

const char* const kNoStepHint =
    "; a step ends with an Optimizer.step or, where there is no optimizer, with the next forward "
    "or the program; 'highwater record' says what it sees of it";

}  // namespace

std::optional<Bytes> budgetOf(const LivePlan* plan, const std::optional<Bytes>& limit) {
    return plan != nullptr ? std::optional(plan->plan.budget) : limit;
}

const LivePlan* planOf(const std::vector<LivePlan>& plans, std::int64_t rank) {
    for (const LivePlan& plan : plans)
        if (plan.programs.rank.value_or(rank) == rank) return &plan;
    return nullptr;
}

Shortfall shortfallOf(const LiveProcess& process, const LivePlan* plan,
                      const std::optional<Bytes>& limit, const LiveSummary& summary) {
    Shortfall shortfall;
    const auto budget = budgetOf(plan, limit);
    if (!budget) return shortfall;
    if (process.steps.empty()) {
        const bool ended = !process.mismatches.empty() || !summary.shortage.empty();
        if (!ended) shortfall.why.push_back(summary.seen + kNoStepHint);
        return shortfall;
    }
    const bool never = plan != nullptr && std::none_of(process.steps.begin(), process.steps.end(),
                                                       [](const auto& step) {
                                                           return step.mode == wire::LiveMode::Plan;
                                                       });
    struct Group {
        std::int64_t steps = 0;
        Bytes bytes;
        std::optional<Step> first;
    };
    std::map<Cause, Group> groups;
    for (const wire::LiveStepRecord& figures : process.steps) {
        const bool above = isAbove(figures.peak, *budget);
        if (above) {
            ++shortfall.stepsAbove;
            shortfall.most = std::max(shortfall.most, Bytes(figures.peak) - *budget);
        }
        if (!above && !never) continue;
        const auto left =
            std::find_if(process.divergences.begin(), process.divergences.end(),
                         [&](const auto& divergence) { return divergence.step == figures.step; });
        const Step step{figures, left == process.divergences.end() ? nullptr : &*left};
        const Cause cause = causeOf(step, plan);
        Group& group = groups[cause];
        ++group.steps;
        group.bytes = std::max(group.bytes, bytesOf(cause, step, plan));
        if (!group.first) group.first.emplace(step);
    }
    if (never && !summary.fault.empty()) {
        shortfall.why.push_back(summary.fault);
        return shortfall;
    }
    for (const auto& [cause, group] : groups)
        shortfall.why.push_back(sentence(cause, plan, group.steps, *group.first, group.bytes));
    return shortfall;
}

void ShortfallTeller::step(const LiveStep& step) {
    Rank& rank = ranks_[step.rank];
    const LivePlan* const plan = planOf(plans_, step.rank);
    const auto budget = budgetOf(plan, limit_);
    if (!budget || rank.told) return;
    const bool planned = step.figures.mode == wire::LiveMode::Plan;
    rank.planned = rank.planned || planned;
    if (!rank.planned) ++rank.unplanned;
    const bool above = isAbove(step.figures.peak, *budget);
    const bool never = plan != nullptr && !rank.planned && rank.unplanned == kStepsUnplanned;
    if (!above && !never) return;
    rank.told = true;
    const Step told{step.figures, step.divergence};
    const Cause cause = causeOf(told, plan);
    const std::string of = step.rank > 0 ? " of rank " + std::to_string(step.rank) : "";
    note_((above ? "step " + std::to_string(step.figures.step) + of + " was " +
                       humanBytes(Bytes(step.figures.peak) - *budget) + " above the budget"
                 : "no step" + of + " is under the plan so far") +
          ": " + sentence(cause, plan, 1, told, bytesOf(cause, told, plan)));
}

}  // namespace hw::live
