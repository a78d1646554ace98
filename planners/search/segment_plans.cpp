// SPDX-License-Identifier: MIT
#include "planners/search/segment_plans.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "planners/program/cut_relaxation.h"
#include "planners/schedule/lookahead.h"
#include "planners/search/divisions.h"

namespace hw::planners {

using namespace hw::core;

namespace {

constexpr int kMostSolves = 6;          // for each of them
constexpr double kFillsBudget = 0.997;  // with a peak above this there is nothing to gain

class SegmentPlans {
public:
    SegmentPlans(const StageModel& model, Bytes budget, StageIndex cut,
                 const std::function<bool()>& stop, Candidates& candidates)
        : model_(model),
          budget_(budget),
          cut_(cut),
          stop_(stop),
          candidates_(candidates),
          forward_(chen::forwardPass(*model.graph, rebuildInfo(*model.graph), model.opOf(cut))) {}

    std::optional<Candidate> run() {
        const double share = ratio(budget_, StageJudge(model_, budget_).peak());
        for (const Division& each : kDivisions) {
            if (stop_()) break;
            const std::vector<bool> crossing =
                crossingStorages(*model_.graph, forward_, each, share);
            std::vector<bool> kept(model_.itemCount());
            for (std::size_t i = 0; i < kept.size(); ++i) kept[i] = crossing[model_.storages[i]];
            if (std::find(kept.begin(), kept.end(), true) != kept.end()) fill(kept);
        }
        return best_;
    }

private:
    /// Looks for the most bytes that the program may have so that its plan fits.
    void fill(const std::vector<bool>& kept) {
        Bytes tooFew, tooMany = budget_, bytes = budget_;
        for (int solve = 0; solve < kMostSolves && !stop_(); ++solve) {
            const std::optional<CutSolution> solution = relax(bytes, kept);
            if (!solution) return;
            const bool possible = !solution->resident.empty();
            if (possible && best_ && best_->fits() && solution->bound >= best_->time) return;
            const Bytes peak = possible ? take(*solution) : Bytes(0);
            if (peak > budget_) {
                tooMany = bytes;
                bytes = std::max(bytes - (peak - budget_), middle(tooFew, tooMany));
            } else {
                if (bytes == budget_ || ratio(peak, budget_) >= kFillsBudget) return;
                tooFew = bytes;
                bytes = middle(tooFew, tooMany);
            }
        }
    }

    static Bytes middle(Bytes a, Bytes b) { return Bytes((a.count() + b.count()) / 2); }

    /// Of the program with so many bytes; none where it is not solved.
    std::optional<CutSolution> relax(Bytes bytes, const std::vector<bool>& kept) const {
        CutOptions options;
        options.limits = SolveLimits::deterministic(1);
        options.integer = false;
        options.cancelled = stop_;
        options.kept = kept;
        return solveCuts(model_, bytes, {cut_}, options);
    }

    /// Offers the plan that keeps what the solution does. @return its peak
    Bytes take(const CutSolution& solution) {
        StageJudge judge(model_, budget_);
        importResidents(judge, {cut_}, solution.resident);
        Candidate made(judge);
        if (made.fits()) candidates_.offer(judge);
        if (!best_ || made < *best_) best_ = std::move(made);
        return judge.peak();
    }

    const StageModel& model_;
    Bytes budget_;
    StageIndex cut_;
    const std::function<bool()>& stop_;
    Candidates& candidates_;
    const chen::ForwardPass forward_;
    std::optional<Candidate> best_;
};

}  // namespace

std::optional<Candidate> segmentPlans(const StageModel& model, Bytes budget, StageIndex cut,
                                      const std::function<bool()>& stop, Candidates& candidates) {
    return SegmentPlans(model, budget, cut, stop, candidates).run();
}

}  // namespace hw::planners
