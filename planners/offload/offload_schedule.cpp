// SPDX-License-Identifier: MIT
#include "planners/offload/offload_schedule.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "core/memory/evaluate.h"
#include "core/memory/range_peaks.h"
#include "planners/offload/idle_stretches.h"

namespace hw::planners {

using namespace hw::core;

namespace {

constexpr Bytes kLeastCopy(16'384);         // less is not worth a copy
constexpr std::int64_t kLeastShare = 5000;  // nor is a smaller part of the budget
constexpr int kPlacings = 3;                // of placing: waits move what comes after them

/// A stretch that is used. Its storage is away from before action `free` to before `prefetch`.
struct Stay {
    const IdleStretch* stretch;
    std::size_t free, prefetch;
};

class Offloading {
public:
    Offloading(const TrainingGraph& graph, const Schedule& schedule, const OffloadBudgets& budgets,
               std::vector<MemoryPoint> curve)
        : graph_(graph),
          schedule_(schedule),
          budgets_(budgets),
          curve_(std::move(curve)),
          stretches_(idleStretches(
              graph, schedule, std::max(kLeastCopy, Bytes(budgets.device.count() / kLeastShare)))),
          peaks_(during()),
          host_(std::vector<Bytes>(schedule.size() + 1)) {
        for (const MemoryPoint& point : curve_) begins_.push_back(point.begin);
        begins_.push_back(curve_.empty() ? Nanoseconds(0) : curve_.back().end);
    }

    std::optional<Schedule> run() {
        if (!choose()) return std::nullopt;
        leaveOut();
        std::optional<Schedule> best;
        Evaluation bestJudged;
        for (int round = 0; round < kPlacings; ++round) {
            Schedule placed = place();
            std::vector<MemoryPoint> curve;
            const Evaluation judged = evaluate(graph_, placed, curve);
            if (!judged.valid || judged.peak > budgets_.device || judged.hostPeak > budgets_.host)
                break;
            const bool better = !best || judged.time < bestJudged.time;
            readBegins(curve);
            if (better) best = std::move(placed), bestJudged = judged;
            if (judged.waited == Nanoseconds(0)) break;
        }
        return best;
    }

private:
    std::vector<Bytes> during() const {
        std::vector<Bytes> bytes;
        for (const MemoryPoint& point : curve_) bytes.push_back(point.during);
        bytes.push_back(curve_.empty() ? Bytes(0) : curve_.back().after);
        return bytes;
    }
    Bytes bytesOf(const IdleStretch& stretch) const {
        return graph_.storages[stretch.storage].bytes;
    }
    Nanoseconds slackOf(const IdleStretch& stretch) const {
        const Bytes bytes = bytesOf(stretch);
        return begins_[stretch.before] - begins_[stretch.first] - graph_.link.outTime(bytes) -
               graph_.link.inTime(bytes);
    }
    void away(const IdleStretch& stretch, bool is) {
        const Bytes bytes = is ? bytesOf(stretch) : Bytes(0) - bytesOf(stretch);
        peaks_.add(stretch.first, stretch.before, Bytes(0) - bytes);
        host_.add(stretch.first, stretch.before, bytes);
    }

    /// What is away as long as it may be, until the peak keeps to the budget.
    bool choose() {
        std::vector<std::size_t> bySlack(stretches_.size());
        std::iota(bySlack.begin(), bySlack.end(), std::size_t{0});
        std::vector<Nanoseconds> slack;
        slack.reserve(stretches_.size());
        for (const IdleStretch& stretch : stretches_) slack.push_back(slackOf(stretch));
        std::stable_sort(bySlack.begin(), bySlack.end(),
                         [&](std::size_t a, std::size_t b) { return slack[a] > slack[b]; });
        while (peaks_.peak() > budgets_.device) {
            const std::size_t highest = peaks_.peakPlace();
            const auto covers = [&](std::size_t i) {
                const IdleStretch& stretch = stretches_[i];
                return stretch.first <= highest && highest < stretch.before &&
                       host_.peak(stretch.first, stretch.before) + bytesOf(stretch) <=
                           budgets_.host;
            };
            const auto next = std::find_if(bySlack.begin(), bySlack.end(), covers);
            if (next == bySlack.end()) return false;
            away(stretches_[*next], true);
            chosen_.push_back(*next);
            bySlack.erase(next);
        }
        return true;
    }

    /// What later choices have made needless: least slack first.
    void leaveOut() {
        std::stable_sort(chosen_.begin(), chosen_.end(), [&](std::size_t a, std::size_t b) {
            return slackOf(stretches_[a]) < slackOf(stretches_[b]);
        });
        const auto needless = [&](std::size_t i) {
            const IdleStretch& stretch = stretches_[i];
            if (peaks_.peak(stretch.first, stretch.before) + bytesOf(stretch) > budgets_.device)
                return false;
            away(stretch, false);
            return true;
        };
        std::erase_if(chosen_, needless);
    }

    /// The action before which the time has come; the schedule's size: none.
    std::size_t actionAt(Nanoseconds time) const {
        return static_cast<std::size_t>(std::lower_bound(begins_.begin(), begins_.end() - 1, time) -
                                        begins_.begin());
    }

    Schedule place() {
        std::vector<Stay> stays;
        for (const std::size_t i : chosen_)
            stays.push_back({&stretches_[i], stretches_[i].first, stretches_[i].before});
        RangePeaks room = peaks_;
        fetch(stays, room);
        leave(stays, room);
        return write(stays);
    }

    /// Each comes back so early that nobody waits for it, where there is room.
    void fetch(std::vector<Stay>& stays, RangePeaks& room) const {
        std::stable_sort(stays.begin(), stays.end(), [](const Stay& a, const Stay& b) {
            return a.stretch->before > b.stretch->before;
        });
        Nanoseconds nextBegin = begins_.back();
        for (Stay& stay : stays) {
            const Bytes bytes = bytesOf(*stay.stretch);
            nextBegin =
                std::min(nextBegin, begins_[stay.stretch->before]) - graph_.link.inTime(bytes);
            const std::size_t early = static_cast<std::size_t>(
                std::upper_bound(begins_.begin(), begins_.end() - 1, nextBegin) - begins_.begin());
            const std::size_t wanted =
                std::clamp(early == 0 ? 0 : early - 1, stay.stretch->first, stay.stretch->before);
            stay.prefetch = firstWithRoom(room, wanted, stay.stretch->before, bytes);
            room.add(stay.prefetch, stay.stretch->before, bytes);
        }
    }
    std::size_t firstWithRoom(const RangePeaks& room, std::size_t first, std::size_t end,
                              Bytes bytes) const {
        std::size_t known = end;
        while (first < known) {
            const std::size_t half = (first + known) / 2;
            if (room.peak(half, end) + bytes <= budgets_.device)
                known = half;
            else
                first = half + 1;
        }
        return known;
    }

    /// Each gives its bytes back when its copy is through, or sooner where they are needed.
    void leave(std::vector<Stay>& stays, RangePeaks& room) const {
        std::stable_sort(stays.begin(), stays.end(), [](const Stay& a, const Stay& b) {
            return a.stretch->first < b.stretch->first;
        });
        Nanoseconds copied;
        for (Stay& stay : stays) {
            const std::size_t first = stay.stretch->first;
            const Bytes bytes = bytesOf(*stay.stretch);
            copied = std::max(copied, begins_[first]) + graph_.link.outTime(bytes);
            std::size_t most = std::clamp(actionAt(copied), first, stay.prefetch), least = first;
            while (least < most) {  // the last before which there is room for it
                const std::size_t half = (least + most + 1) / 2;
                if (room.peak(first, half) + bytes <= budgets_.device)
                    least = half;
                else
                    most = half - 1;
            }
            stay.free = least;
            room.add(first, stay.free, bytes);
        }
    }

    Schedule write(const std::vector<Stay>& stays) {
        struct Added {
            Schedule offloads, frees, prefetches;
        };
        std::vector<Added> added(schedule_.size() + 1);
        for (const Stay& stay : stays) {
            if (stay.free == stay.prefetch) continue;  // there was no need
            const StorageIndex s = stay.stretch->storage;
            added[stay.stretch->first].offloads.push_back(Action::offload(s));
            added[stay.free].frees.push_back(Action::free(s));
            added[stay.prefetch].prefetches.push_back(Action::prefetch(s));
        }
        Schedule result;
        placeOf_.clear();
        for (std::size_t a = 0; a <= schedule_.size(); ++a) {
            for (const Schedule* const list :
                 {&added[a].offloads, &added[a].frees, &added[a].prefetches})
                result.insert(result.end(), list->begin(), list->end());
            if (a == schedule_.size()) break;
            placeOf_.push_back(result.size());
            result.push_back(schedule_[a]);
        }
        return result;
    }

    /// When the schedule's own actions begin, with the waits of one that has copies.
    void readBegins(const std::vector<MemoryPoint>& curve) {
        for (std::size_t a = 0; a < placeOf_.size(); ++a) begins_[a] = curve[placeOf_[a]].begin;
        begins_.back() = curve.back().end;
    }

    const TrainingGraph& graph_;
    const Schedule& schedule_;
    const OffloadBudgets& budgets_;
    std::vector<MemoryPoint> curve_;
    std::vector<IdleStretch> stretches_;
    RangePeaks peaks_, host_;           // with what is chosen away as long as it may be
    std::vector<Nanoseconds> begins_;   // by action; last the step's end
    std::vector<std::size_t> chosen_;   // of stretches_
    std::vector<std::size_t> placeOf_;  // by action of the schedule, in what was placed last
};

}  // namespace

std::optional<Schedule> offloadWithin(const TrainingGraph& graph, const Schedule& schedule,
                                      const OffloadBudgets& budgets) {
    std::vector<MemoryPoint> curve;
    const Evaluation judged = evaluate(graph, schedule, curve);
    if (!judged.valid) return std::nullopt;
    if (judged.peak <= budgets.device) return schedule;
    return Offloading(graph, schedule, budgets, std::move(curve)).run();
}

Proposal proposeOffloaded(const TrainingGraph& graph, const Schedule& schedule,
                          const PlanRequest& request) {
    Proposal proposal;
    if (!request.hostMemory) {
        proposal.reason = "it may use no host memory";
        return proposal;
    }
    auto within = offloadWithin(graph, schedule, {request.budget, *request.hostMemory});
    if (!within) {
        proposal.reason =
            "what is in use at one moment, with what no copy can stand in for, "
            "exceeds the budget";
        return proposal;
    }
    proposal.status = PlanStatus::Ok;
    proposal.schedule = std::move(*within);
    proposal.lowerBound = graph.totalTime();
    return proposal;
}

}  // namespace hw::planners
