// SPDX-License-Identifier: MIT
#include "planners/partition/partition.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "core/memory/stage_judge.h"
#include "planners/partition/partition_judge.h"
#include "planners/plan_with.h"

namespace hw::planners {
namespace {

using namespace core;
using Clock = std::chrono::steady_clock;

constexpr int kTries = 6;             // plans, each for another budget
constexpr double kPlansShare = 0.4;   // of the time
constexpr Bytes kSmall(4096);         // no choice is worth a look below that
constexpr std::size_t kTogether = 4;  // neighbours that are dropped at once

struct Candidate {
    KeptFlags kept;
    PartitionFigures figures;
};

Clock::duration secondsOf(double seconds) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

class PartitionSearch {
public:
    PartitionSearch(const JointRegion& region, const PartitionRequest& request,
                    const Progress& progress)
        : region_(region),
          request_(request),
          progress_(progress),
          judge_(region),
          end_(Clock::now() + secondsOf(request.seconds)) {
        for (const StorageIndex s : judge_.choices())
            if (region.graph.storages[s].bytes >= kSmall) choices_.push_back(s);
    }

    Result<Partition> run() {
        KeptFlags own(region_.graph.storages.size());
        for (const StorageIndex s : region_.kept) own[s] = true;
        const Candidate compilers = judged(std::move(own));
        if (fits(compilers)) return written(compilers, true);
        offer(compilers);
        offer(judged(KeptFlags(region_.graph.storages.size())));  // nothing is kept
        if (!request_.mostKept) {
            fromPlans(compilers);
            descend(compilers);
            descend(*lowest_);
        }
        if (best_) {
            offer(filled(*best_));
            exchange();
        }
        return written(best_ ? *best_ : *lowest_, false);
    }

private:
    Candidate judged(KeptFlags kept) const {
        const PartitionFigures figures = judge_.figures(kept, request_.budget);
        return {std::move(kept), figures};
    }
    bool fits(const Candidate& candidate) const {
        return request_.mostKept ? candidate.figures.kept <= *request_.mostKept
                                 : candidate.figures.peak <= request_.budget;
    }

    static KeptFlags with(KeptFlags kept, StorageIndex s, bool keep) {
        kept[s] = keep;
        return kept;
    }

    bool stopped() const { return progress_.cancelled() || Clock::now() >= end_; }

    /// Whether it is the best so far.
    bool offer(const Candidate& candidate) {
        if (!lowest_ || candidate.figures.peak < lowest_->figures.peak) lowest_ = candidate;
        if (!fits(candidate)) return false;
        if (best_ && best_->figures.time <= candidate.figures.time) return false;
        best_ = candidate;
        return true;
    }

    Partition written(const Candidate& candidate, bool compilers) const {
        Partition partition{{}, candidate.figures, compilers, fits(candidate)};
        for (StorageIndex s = 0; s < static_cast<StorageIndex>(candidate.kept.size()); ++s)
            if (candidate.kept[s] && !region_.graph.storages[s].isConstant())
                partition.kept.push_back(s);
        return partition;
    }

    // A plan may make things again twice and in another order, and knows of no fusion: what it
    // keeps when the backward begins is a partition with another peak, by which the next plan gets
    // more or less.
    void fromPlans(const Candidate& compilers) {
        const TrainingGraph& graph = region_.graph;
        const StageModel model(graph);
        OpIndex op = region_.backward;
        while (op < static_cast<OpIndex>(graph.ops.size()) && model.lazy(op)) ++op;
        if (op == static_cast<OpIndex>(graph.ops.size())) return;
        const StageIndex cut = model.stageOf[op];
        const Bytes captured = evaluate(graph, baselineSchedule(graph)).peak;
        PlanRequest request;
        request.budget = request_.budget + (captured - compilers.figures.peak);
        request.timeLimitSeconds = request_.seconds * kPlansShare / kTries;
        const Clock::time_point until = Clock::now() + secondsOf(request_.seconds * kPlansShare);
        for (int k = 0; k < kTries && !stopped() && Clock::now() < until; ++k) {
            const auto outcome = planWith("highwater", graph, request, progress_);
            if (!outcome || !outcome->plan) return;
            StageJudge plan(model, request.budget);
            plan.load(outcome->plan->schedule);
            KeptFlags kept(graph.storages.size());
            for (const StorageIndex s : judge_.choices())
                if (const ItemIndex i = model.itemOf[s]; i != kNone && model.born[i] < cut)
                    kept[s] = plan.retained(i, cut);
            const Candidate candidate = judged(std::move(kept));
            offer(candidate);
            const Bytes over = candidate.figures.peak - request_.budget;
            if (over == Bytes(0)) return;
            request.budget -= over;
        }
    }

    // From what is too much: whatever gets most below the budget for its time, step by step.
    void descend(Candidate from) {
        while (from.figures.overflow > 0 && !stopped()) {
            std::optional<Candidate> next;
            double most = 0;
            const auto look = [&](KeptFlags kept) {
                Candidate other = judged(std::move(kept));
                const auto less =
                    static_cast<double>(from.figures.overflow - other.figures.overflow);
                const auto longer =
                    static_cast<double>((other.figures.time - from.figures.time).count());
                const double rate = less / (std::max(longer, 0.0) + 1);
                if (less > 0 && rate > most) most = rate, next = std::move(other);
            };
            std::vector<StorageIndex> keeps;
            for (const StorageIndex s : choices_) {
                if (stopped()) break;
                if (from.kept[s]) keeps.push_back(s);
                look(with(from.kept, s, !from.kept[s]));
            }
            for (std::size_t k = 0; k + kTogether <= keeps.size() && !stopped(); ++k) {
                KeptFlags kept = from.kept;
                for (std::size_t j = k; j < k + kTogether; ++j) kept[keeps[j]] = false;
                look(std::move(kept));
            }
            if (!next) break;
            from = std::move(*next);
            offer(from);
        }
        offer(from);
    }

    // As much more as there is room for, first what saves most time for its bytes.
    Candidate filled(Candidate from) {
        std::vector<std::pair<double, StorageIndex>> gains;
        for (const StorageIndex s : choices_) {
            if (from.kept[s] || stopped()) continue;
            const Nanoseconds saved =
                from.figures.time - judged(with(from.kept, s, true)).figures.time;
            if (saved > Nanoseconds(0))
                gains.emplace_back(-static_cast<double>(saved.count()) /
                                       static_cast<double>(region_.graph.storages[s].bytes.count()),
                                   s);
        }
        std::sort(gains.begin(), gains.end());
        for (const auto& [gain, s] : gains) {
            if (stopped()) break;
            Candidate more = judged(with(from.kept, s, true));
            if (fits(more) && more.figures.time < from.figures.time) from = std::move(more);
        }
        return from;
    }

    // One is dropped, and others have its room; until nothing gets better.
    void exchange() {
        for (bool better = true; better && !stopped();) {
            better = false;
            const KeptFlags now = best_->kept;
            for (const StorageIndex s : choices_)
                if (now[s] && !stopped() && offer(filled(judged(with(now, s, false)))))
                    better = true;
        }
    }

    const JointRegion& region_;
    const PartitionRequest& request_;
    const Progress& progress_;
    const PartitionJudge judge_;
    const Clock::time_point end_;
    std::vector<StorageIndex> choices_;
    std::optional<Candidate> best_;    // within the budget
    std::optional<Candidate> lowest_;  // of all
};

Status check(const JointRegion& region) {
    const auto ops = static_cast<OpIndex>(region.graph.ops.size());
    if (region.backward <= 0 || region.backward >= ops)
        return badInput("the region has no forward and backward", "trace it again");
    if (region.fusible.size() != static_cast<std::size_t>(ops))
        return badInput("the region does not say which ops are fused", "trace it again");
    return {};
}

}  // namespace

Result<PartitionFigures> partitionFigures(const JointRegion& region,
                                          const std::vector<StorageIndex>& kept, Bytes budget) {
    HW_TRY(check(region));
    KeptFlags flags(region.graph.storages.size());
    for (const StorageIndex s : kept) flags[s] = true;
    return PartitionJudge(region).figures(flags, budget);
}

Result<Partition> planPartition(const JointRegion& region, const PartitionRequest& request,
                                const Progress& progress) {
    HW_TRY(check(region));
    return PartitionSearch(region, request, progress).run();
}

}  // namespace hw::planners
