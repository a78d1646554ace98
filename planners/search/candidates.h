// SPDX-License-Identifier: MIT
// What the planner `highwater` has found: retention matrices to go on from, and schedules that
// fit.
#pragma once

#include <mutex>
#include <optional>
#include <vector>

#include "core/memory/stage_judge.h"
#include "planners/schedule/best_schedule.h"

namespace hw::planners {

/// A retention matrix and how good it is: plans within the budget by time, others by what exceeds
/// it.
struct Candidate {
    core::RetentionMatrix retention;
    core::Nanoseconds time;
    core::Bytes overflow;

    explicit Candidate(const core::StageJudge& judge)
        : retention(judge.retention()), time(judge.time()), overflow(judge.overflow()) {}
    bool fits() const { return overflow == core::Bytes(0); }
    bool operator<(const Candidate& other) const {
        return overflow != other.overflow ? overflow < other.overflow : time < other.time;
    }
};

/// Any thread may offer; the rest is for one thread alone.
class Candidates {
public:
    Candidates(const core::TrainingGraph& graph, core::Bytes budget) : kept_(graph, budget) {}

    void offer(const core::StageJudge& judge);
    void offer(std::vector<Candidate> found);
    /// Remembers the fastest schedule within the budget as it stands; false where it exceeds it. It
    /// may fit where its matrix does not: a matrix keeps a constant for whatever may be recomputed
    /// from it, and does not say in which order a stage frees and recomputes.
    bool keep(const core::Schedule& schedule);

    /// The best one, of those that do not fit if none does; none when nothing was offered yet.
    std::optional<Candidate> best() const;
    /// Brings them in order, drops what is there twice, and all but the first `most`.
    void prune(std::size_t most);
    /// In order after prune().
    const std::vector<Candidate>& all() const { return all_; }

    /// The fastest of all that fits; none where nothing does. Leaves `judge` with any matrix.
    std::optional<core::Schedule> schedule(core::StageJudge& judge) const;

private:
    mutable std::mutex mutex_;
    std::vector<Candidate> all_;
    BestSchedule kept_;
};

}  // namespace hw::planners
