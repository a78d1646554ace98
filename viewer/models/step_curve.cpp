// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/models/step_curve.h"

#include <algorithm>

namespace hw::viewer {
namespace {

using core::Action;
using core::ActionKind;
using core::Bytes;
using core::StorageIndex;

Bytes sum(const CategoryBytes& bytes) {
    Bytes total;
    for (const Bytes part : bytes) total += part;
    return total;
}

// Follows the judge's bookkeeping (core/memory/evaluate.cpp) for schedules that it has accepted.
class Replay {
public:
    explicit Replay(const core::TrainingGraph& graph)
        : graph_(graph),
          since_(graph.storages.size(), kAbsent),
          encoded_(graph.storages.size(), Bytes(-1)) {
        std::int32_t fixedOps = 0;
        for (const core::Event& event : graph.events) {
            if (event.kind == core::Event::Kind::Constant)
                arrivals_.push_back({fixedOps, event.index});
            else if (event.kind == core::Event::Kind::Compute && !graph.ops[event.index].viewOnly())
                ++fixedOps;
        }
        arrive();
    }

    StepCurve run(const core::Schedule& schedule) {
        for (std::size_t i = 0; i < schedule.size(); ++i) {
            const Action& action = schedule[i];
            switch (action.kind) {
                case ActionKind::Compute:
                case ActionKind::Recompute:
                    execute(i, action);
                    break;
                case ActionKind::Free:
                    free(action.target);
                    break;
                case ActionKind::Encode:
                    encode(i, action);
                    break;
                case ActionKind::Decode:
                    decode(i, action);
                    break;
            }
        }
        for (StorageIndex s = 0; s < static_cast<StorageIndex>(since_.size()); ++s)
            if (since_[s] != kAbsent) leave(s);
        for (std::size_t i = 0; i < curve_.moments.size(); ++i)
            if (curve_.moments[i].total > curve_.peak)
                curve_.peak = curve_.moments[i].total, curve_.peakMoment = i;
        return std::move(curve_);
    }

private:
    static constexpr std::int32_t kAbsent = -1;

    Bytes& of(StorageIndex s) {
        return live_[static_cast<std::size_t>(graph_.storages[s].category)];
    }
    std::int32_t nextMoment() const { return static_cast<std::int32_t>(curve_.moments.size()); }

    void enter(StorageIndex s, std::int32_t moment) {
        since_[s] = moment;
        of(s) += graph_.storages[s].bytes;
    }
    void leave(StorageIndex s) {
        const std::int32_t last = nextMoment() - 1;
        if (last >= since_[s]) curve_.residences.push_back({s, since_[s], last});
        since_[s] = kAbsent;
        of(s) -= graph_.storages[s].bytes;
    }

    // Constants that come into being after an op count while that op runs.
    void arrive() {
        for (; arrived_ < arrivals_.size() && arrivals_[arrived_].first <= fixedDone_; ++arrived_)
            enter(arrivals_[arrived_].second, std::max(0, nextMoment()));
    }

    void execute(std::size_t index, const Action& action) {
        const core::Op& op = graph_.ops[action.target];
        const bool recompute = action.kind == ActionKind::Recompute;
        CategoryBytes during = live_;
        during[static_cast<std::size_t>(core::Category::Workspace)] += op.workspace;
        for (std::size_t j = 0; j < op.outputs.size(); ++j) {
            if (!op.outputs[j].makesStorage) continue;
            const StorageIndex s = graph_.storageOf(op.outputs[j].tensor);
            during[static_cast<std::size_t>(graph_.storages[s].category)] +=
                graph_.storages[s].bytes;
            const bool kept = !recompute || std::find(action.outputs.begin(), action.outputs.end(),
                                                      static_cast<int>(j)) != action.outputs.end();
            if (kept && since_[s] == kAbsent) enter(s, nextMoment());
        }
        if (!recompute && !op.viewOnly()) {
            ++fixedDone_;
            arrive();
        }
        if (sum(live_) > sum(during)) during = live_;
        push(index, action.target, recompute, op.time, during);
    }

    void push(std::size_t action, core::OpIndex op, bool recomputed, core::Nanoseconds time,
              const CategoryBytes& during) {
        const core::Nanoseconds begin = curve_.time;
        curve_.time += time;
        curve_.moments.push_back({begin, curve_.time, action, op, recomputed, sum(during), during});
    }

    void free(StorageIndex s) {
        if (encoded_[s] >= Bytes(0)) {
            of(s) -= encoded_[s];
            encoded_[s] = Bytes(-1);
        } else if (since_[s] != kAbsent) {
            leave(s);
        }
    }
    void encode(std::size_t index, const Action& action) {
        CategoryBytes during = live_;
        during[static_cast<std::size_t>(graph_.storages[action.target].category)] +=
            action.encodedBytes;
        push(index, core::kNone, false, core::Nanoseconds(0), during);
        leave(action.target);
        encoded_[action.target] = action.encodedBytes;
        of(action.target) += action.encodedBytes;
    }
    void decode(std::size_t index, const Action& action) {
        enter(action.target, nextMoment());
        push(index, core::kNone, false, core::Nanoseconds(0), live_);
        of(action.target) -= encoded_[action.target];
        encoded_[action.target] = Bytes(-1);
    }

    const core::TrainingGraph& graph_;
    StepCurve curve_;
    CategoryBytes live_{};
    std::vector<std::int32_t> since_;  // first moment of the present residence
    std::vector<Bytes> encoded_;
    std::vector<std::pair<std::int32_t, StorageIndex>> arrivals_;
    std::size_t arrived_ = 0;
    std::int32_t fixedDone_ = 0;
};

}  // namespace

std::size_t StepCurve::momentAt(core::Nanoseconds at) const {
    const auto after = std::upper_bound(
        moments.begin(), moments.end(), at,
        [](core::Nanoseconds time, const Moment& moment) { return time < moment.begin; });
    return after == moments.begin() ? 0 : static_cast<std::size_t>(after - moments.begin()) - 1;
}

StepCurve stepCurve(const core::TrainingGraph& graph, const core::Schedule& schedule) {
    return Replay(graph).run(schedule);
}

std::vector<core::StorageIndex> largestResident(const core::TrainingGraph& graph,
                                                const StepCurve& curve, std::size_t moment,
                                                std::size_t limit) {
    std::vector<StorageIndex> live;
    const auto at = static_cast<std::int32_t>(moment);
    for (const Residence& residence : curve.residences)
        if (residence.first <= at && at <= residence.last) live.push_back(residence.storage);
    const auto larger = [&](StorageIndex a, StorageIndex b) {
        const Bytes left = graph.storages[a].bytes, right = graph.storages[b].bytes;
        return left != right ? left > right : a < b;
    };
    limit = std::min(limit, live.size());
    std::partial_sort(live.begin(), live.begin() + static_cast<std::ptrdiff_t>(limit), live.end(),
                      larger);
    live.resize(limit);
    return live;
}

std::vector<std::size_t> visibleMoments(const StepCurve& curve, core::Nanoseconds from,
                                        core::Nanoseconds to, int buckets) {
    const std::vector<Moment>& moments = curve.moments;
    if (moments.empty() || buckets <= 0 || to < from) return {};
    const std::size_t first = std::max<std::size_t>(curve.momentAt(from), 1) - 1;
    const std::size_t last = std::min(curve.momentAt(to) + 1, moments.size() - 1);
    std::vector<std::size_t> chosen;
    if (last - first < static_cast<std::size_t>(buckets) * 2) {
        for (std::size_t i = first; i <= last; ++i) chosen.push_back(i);
        return chosen;
    }
    const double width = std::max(1.0, static_cast<double>((to - from).count()) / buckets);
    const auto bucketOf = [&](std::size_t i) {
        return static_cast<std::int64_t>(static_cast<double>((moments[i].begin - from).count()) /
                                         width);
    };
    for (std::size_t i = first; i <= last;) {
        std::size_t lowest = i, highest = i, next = i;
        for (; next <= last && bucketOf(next) == bucketOf(i); ++next) {
            if (moments[next].total < moments[lowest].total) lowest = next;
            if (moments[next].total > moments[highest].total) highest = next;
        }
        chosen.push_back(std::min(lowest, highest));
        if (lowest != highest) chosen.push_back(std::max(lowest, highest));
        i = next;
    }
    if (chosen.back() != last) chosen.push_back(last);
    return chosen;
}

}  // namespace hw::viewer
