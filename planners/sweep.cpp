// SPDX-License-Identifier: MIT
#include "planners/sweep.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <thread>

#include "planners/registry.h"

namespace hw::planners {
namespace {

using namespace hw::core;

bool warmStarts(const std::string& planner) {
    const PlannerInfo* info = findPlanner(planner);
    return info != nullptr && info->warmStarts;
}

class Sweep {
public:
    Sweep(const std::vector<SweepPoint>& points, const SweepSettings& settings,
          const Progress& progress)
        : points_(points), settings_(settings), progress_(progress), outcomes_(points.size()) {}

    Result<std::vector<Outcome>> run() {
        std::vector<std::size_t> single, frontier;
        for (std::size_t i = 0; i < points_.size(); ++i)
            (warmStarts(points_[i].planner) ? frontier : single).push_back(i);
        inParallel(single);
        alongBudgets(frontier);
        if (error_) return *error_;
        return std::move(outcomes_);
    }

private:
    void inParallel(const std::vector<std::size_t>& list) {
        std::atomic<std::size_t> next = 0;
        const auto work = [&] {
            for (std::size_t n = next++; n < list.size() && !failed_; n = next++) {
                const SweepPoint& point = points_[list[n]];
                solve(list[n], point.request);
                // Each of these plans on one thread, and the cores are shared with the others.
                outcomes_[list[n]].solveSeconds = outcomes_[list[n]].solveCpuSeconds;
                if (!settings_.keepPlans) outcomes_[list[n]].plan.reset();
            }
        };
        const unsigned wanted =
            settings_.jobs > 0 ? settings_.jobs : std::thread::hardware_concurrency();
        const std::size_t threads = std::min<std::size_t>(std::max(1U, wanted), list.size());
        std::vector<std::jthread> workers;
        for (std::size_t t = 1; t < threads; ++t) workers.emplace_back(work);
        work();
    }

    void alongBudgets(std::vector<std::size_t> list) {
        std::stable_sort(list.begin(), list.end(), [&](std::size_t a, std::size_t b) {
            return points_[a].request.budget < points_[b].request.budget;
        });
        std::map<const TrainingGraph*, std::optional<Schedule>> last;
        for (const std::size_t i : list) {
            if (failed_) return;
            PlanRequest request = points_[i].request;
            request.warmStart = last[points_[i].graph];
            solve(i, request);
            if (outcomes_[i].plan) last[points_[i].graph] = outcomes_[i].plan->schedule;
            if (!settings_.keepPlans) outcomes_[i].plan.reset();
        }
    }

    void solve(std::size_t i, const PlanRequest& request) {
        Progress inner;
        inner.cancelled = progress_.cancelled;
        inner.report = [&](double share, std::string_view what) { report(share, i, what); };
        report(0, i, "");
        auto outcome = planWith(points_[i].planner, *points_[i].graph, request, inner);
        const std::lock_guard lock(mutex_);
        ++done_;
        if (outcome) {
            outcomes_[i] = std::move(*outcome);
        } else if (!error_) {
            error_ = outcome.error();
            failed_ = true;
        }
    }

    void report(double share, std::size_t i, std::string_view what) {
        const std::lock_guard lock(mutex_);
        const auto total = static_cast<double>(points_.size());
        std::string text = points_[i].planner + " at " + humanBytes(points_[i].request.budget);
        if (!what.empty()) text += ": " + std::string(what);
        progress_.report((static_cast<double>(done_) + share) / total, text);
    }

    const std::vector<SweepPoint>& points_;
    const SweepSettings& settings_;
    const Progress& progress_;
    std::vector<Outcome> outcomes_;
    std::mutex mutex_;
    std::size_t done_ = 0;
    std::atomic<bool> failed_ = false;
    std::optional<Error> error_;
};

}  // namespace

Result<std::vector<Outcome>> planSweep(const std::vector<SweepPoint>& points,
                                       const SweepSettings& settings, const Progress& progress) {
    return Sweep(points, settings, progress).run();
}

}  // namespace hw::planners
