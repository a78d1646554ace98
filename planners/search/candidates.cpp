// SPDX-License-Identifier: MIT
#include "planners/search/candidates.h"

#include <algorithm>
#include <iterator>

namespace hw::planners {

using namespace hw::core;

void Candidates::offer(const StageJudge& judge) {
    const std::lock_guard lock(mutex_);
    all_.emplace_back(judge);
}

void Candidates::offer(std::vector<Candidate> found) {
    const std::lock_guard lock(mutex_);
    std::move(found.begin(), found.end(), std::back_inserter(all_));
}

bool Candidates::keep(const Schedule& schedule) {
    return kept_.fits(kept_.consider(schedule));
}

std::optional<Candidate> Candidates::best() const {
    const std::lock_guard lock(mutex_);
    const auto best = std::min_element(all_.begin(), all_.end());
    return best == all_.end() ? std::nullopt : std::optional(*best);
}

void Candidates::prune(std::size_t most) {
    std::stable_sort(all_.begin(), all_.end());
    const auto same = [](const Candidate& a, const Candidate& b) {
        return a.retention == b.retention;
    };
    all_.erase(std::unique(all_.begin(), all_.end(), same), all_.end());
    if (all_.size() > most)
        all_.erase(all_.begin() + static_cast<std::ptrdiff_t>(most), all_.end());
}

std::optional<Schedule> Candidates::schedule(StageJudge& judge) const {
    const std::optional<Candidate> searched = best();
    const bool found = searched && searched->fits();
    if (kept_.found() && (!found || kept_.time() < searched->time)) return kept_.schedule();
    if (!found) return std::nullopt;
    judge.load(searched->retention);
    return judge.schedule();
}

}  // namespace hw::planners
