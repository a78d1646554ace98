// SPDX-License-Identifier: MIT
#pragma once

#include <limits>
#include <mutex>
#include <utility>

#include "core/memory/evaluate.h"

namespace hw::planners {

/// The fastest schedule within the budget of those that it was shown, by any thread.
class BestSchedule {
public:
    /// `graph` must outlive it.
    BestSchedule(const core::TrainingGraph& graph, core::Bytes budget)
        : graph_(graph), budget_(budget) {}

    /// What the judge says of it.
    core::Evaluation consider(core::Schedule schedule) {
        core::Evaluation made = core::evaluate(graph_, schedule);
        const std::lock_guard lock(mutex_);
        if (fits(made) && made.time < time_) schedule_ = std::move(schedule), time_ = made.time;
        return made;
    }
    bool fits(const core::Evaluation& made) const { return made.valid && made.peak <= budget_; }

    bool found() const {
        const std::lock_guard lock(mutex_);
        return !schedule_.empty();
    }
    /// Above every other until one is found.
    core::Nanoseconds time() const {
        const std::lock_guard lock(mutex_);
        return time_;
    }
    /// Empty until one is found. For one thread alone, and so is take().
    const core::Schedule& schedule() const { return schedule_; }
    core::Schedule take() { return std::move(schedule_); }

private:
    const core::TrainingGraph& graph_;
    core::Bytes budget_;
    mutable std::mutex mutex_;
    core::Schedule schedule_;
    core::Nanoseconds time_{std::numeric_limits<std::int64_t>::max()};
};

}  // namespace hw::planners
