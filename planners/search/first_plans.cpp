// SPDX-License-Identifier: MIT
#include "planners/search/first_plans.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "planners/chen/chen.h"
#include "planners/dtr/dtr.h"
#include "planners/mimose/mimose.h"
#include "planners/program/checkmate.h"
#include "planners/search/segment_fill.h"

namespace hw::planners {

using namespace hw::core;

namespace {

constexpr int kThrashing = 4;    // times the baseline's time: a walk that gets there leads nowhere
constexpr double kFarAbove = 2;  // times the best plan's: neither does this one
constexpr std::size_t kTiny = 60;  // items up to which the exact program takes no time

}  // namespace

void FirstPlans::offerAll(bool one) {
    bool fits = offer(Distance::Root);
    const auto enough = [&] { return stopped_() || (one && fits); };
    if (!enough()) fits |= offer(ChenGreedy());
    for (const Distance distance : {Distance::Full, Distance::None})
        if (!enough()) fits |= offer(distance);
    const bool small = isSmall(model_);
    if (small && !enough()) fits |= offer(Mimose());
    for (const DtrHeuristic heuristic :
         {DtrHeuristic::EqClass, DtrHeuristic::Msps, DtrHeuristic::Full, DtrHeuristic::Local})
        if ((small || !fits) && !enough()) fits |= offer(Dtr(heuristic));
    if (!fits && model_.itemCount() < kTiny && !enough() && !request_.workLimit) offer(Checkmate());
}

std::optional<Candidate> FirstPlans::offerFilled() {
    BestSchedule best(*model_.graph, request_.budget);
    fillSegments(
        *model_.graph, request_.budget,
        [&](Schedule schedule) { return best.consider(std::move(schedule)); }, stopped_);
    if (!best.found()) return std::nullopt;
    candidates_.keep(best.schedule());
    StageJudge judge(model_, request_.budget);
    judge.load(best.schedule());
    judge.trim();
    candidates_.offer(judge);
    return Candidate(judge);
}

void FirstPlans::walk(StageJudge& judge, Distance distance) {
    Nanoseconds most = model_.graph->totalTime() * kThrashing;
    if (const auto best = candidates_.best(); best && best->fits())
        most = std::min(
            most, Nanoseconds(std::llround(static_cast<double>(best->time.count()) * kFarAbove)));
    lookahead(judge, distance, {}, [&] { return stopped_() || judge.time() > most; });
    judge.trim();
    candidates_.offer(judge);
}

bool FirstPlans::offer(Distance distance) {
    StageJudge judge(model_, request_.budget);
    walk(judge, distance);
    return judge.overflow() == Bytes(0);
}

bool FirstPlans::offer(const Planner& planner) {
    PlanRequest request = request_;
    request.options.clear();
    request.menu = {};
    request.workLimit.reset();
    if (request.timeLimitSeconds) request.timeLimitSeconds = std::max(0.1, left_());
    const Proposal proposal = planner.plan(*model_.graph, request, {progress_.cancelled});
    if (proposal.status != PlanStatus::Ok) return false;
    const bool asItStands = candidates_.keep(proposal.schedule);
    StageJudge judge(model_, request_.budget);
    judge.load(proposal.schedule);
    judge.trim();
    candidates_.offer(judge);
    return asItStands || judge.overflow() == Bytes(0);
}

}  // namespace hw::planners
