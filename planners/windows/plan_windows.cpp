// SPDX-License-Identifier: MIT
#include "planners/windows/plan_windows.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <utility>

namespace hw::planners {

using namespace hw::core;

namespace {

constexpr std::size_t kOpsWorthCutting = 10'000;  // of a step that is worth cutting

// A window that comes often is worth more of the time, but each needs its own.
double weightOf(const WindowClass& of) {
    return static_cast<double>(of.window.graph.ops.size()) *
           std::sqrt(static_cast<double>(of.count));
}

// Divides the request's limits: of each part what is left of the time when it begins.
class Shares {
public:
    Shares(const StepWindows& windows, const PlanRequest& request) : request_(request) {
        for (const WindowClass& each : windows.classes()) left_ += weightOf(each);
    }

    PlanRequest next(const WindowClass& of) {
        const double share = weightOf(of) / left_;
        left_ -= weightOf(of);
        PlanRequest part = request_;
        part.budget = request_.budget - of.window.around;
        part.warmStart.reset();
        if (request_.timeLimitSeconds) {
            const std::chrono::duration<double> passed = Clock::now() - begin_;
            part.timeLimitSeconds =
                std::max(0.02, (*request_.timeLimitSeconds - passed.count()) * share);
        }
        if (workLeft_) {
            part.workLimit = std::max<std::int64_t>(
                1, static_cast<std::int64_t>(static_cast<double>(*workLeft_) * share));
            *workLeft_ -= *part.workLimit;
        }
        return part;
    }

private:
    using Clock = std::chrono::steady_clock;
    const PlanRequest& request_;
    double left_ = 0;
    std::optional<std::int64_t> workLeft_ = request_.workLimit;
    Clock::time_point begin_ = Clock::now();
};

}  // namespace

Proposal planWindows(const StepWindows& windows, const PlanRequest& request,
                     const Progress& progress, const WindowPlanner& planner) {
    Shares shares(windows, request);
    std::vector<Schedule> schedules;
    const auto count = static_cast<double>(windows.classes().size());
    for (const WindowClass& each : windows.classes()) {
        Progress inner;
        inner.cancelled = progress.cancelled;
        inner.report = [&](double share, std::string_view what) {
            progress.report((static_cast<double>(schedules.size()) + share) / count, what);
        };
        Proposal of = planner(each, shares.next(each), inner);
        if (of.status != PlanStatus::Ok) {
            of.reason = "ops " + std::to_string(each.window.from) + " to " +
                        std::to_string(each.window.to - 1) +
                        ", planned by themselves: " + of.reason;
            of.lowerBound.reset();
            return of;
        }
        schedules.push_back(std::move(of.schedule));
    }
    Proposal joined;
    joined.status = PlanStatus::Ok;
    joined.schedule = windows.join(schedules);
    return joined;
}

std::optional<Proposal> planPasses(const Planner& planner, const TrainingGraph& graph,
                                   const PlanRequest& request, const Progress& progress) {
    if (graph.ops.size() <= kOpsWorthCutting) return std::nullopt;
    const StepWindows windows(graph);
    if (!windows.several()) return std::nullopt;
    return planWindows(windows, request, progress,
                       [&](const WindowClass& of, const PlanRequest& part, const Progress& inner) {
                           return planner.plan(of.window.graph, part, inner);
                       });
}

}  // namespace hw::planners
