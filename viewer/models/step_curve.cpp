// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/models/step_curve.h"

#include <algorithm>
#include <utility>

#include "core/memory/replay.h"

namespace hw::viewer {
namespace {

using core::Action;
using core::Bytes;
using core::ReplayState;
using core::StandIn;
using core::StorageIndex;

Bytes sum(const BandBytes& bytes) {
    Bytes total;
    for (const Bytes part : bytes) total += part;
    return total;
}

// Splits by category what the judge counts.
class CurveMaker : public core::ReplayListener {
public:
    explicit CurveMaker(const core::TrainingGraph& graph)
        : graph_(graph), since_(graph.storages.size(), kAbsent) {}

    void begins(const ReplayState&, const Action&) { during_ = live_; }

    void runs(const ReplayState&, const Action& action) {
        const core::Op& op = graph_.ops[action.target];
        during_[bandOf(core::Category::Workspace)] += op.workspace;
        for (const core::OpOutput& output : op.outputs)
            if (output.makesStorage) add(during_, graph_.storageOf(output.tensor));
    }
    void made(const ReplayState&, const Action&, StorageIndex s, std::size_t) { enter(s); }
    // Counts while the op runs after which it comes into being.
    void constant(const ReplayState&, StorageIndex s) { enter(s); }
    void freed(const ReplayState&, StorageIndex s) { leave(s, nextMoment() - 1); }
    void freedStandIn(const ReplayState&, StorageIndex s, const StandIn& form) {
        of(live_, s) -= form.bytes;
    }
    void replaced(const ReplayState&, StorageIndex s, const StandIn& form) {
        of(during_, s) += form.bytes;
        of(live_, s) += form.bytes;
        leave(s, core::traitsOf(form.by).takesTime ? nextMoment() : nextMoment() - 1);
    }
    void restored(const ReplayState&, StorageIndex s, const StandIn& form) {
        add(during_, s);
        of(live_, s) -= form.bytes;
        enter(s);
    }

    void ends(const ReplayState& now, const Action& action) {
        if (!action.takesTime()) return;
        if (sum(live_) > sum(during_)) during_ = live_;
        curve_.moments.push_back({now.begin(), now.time(), now.action(),
                                  action.runsOp() ? action.target : core::kNone,
                                  action.recomputes(), now.during(), during_});
    }

    StepCurve finish(const ReplayState& now) {
        for (StorageIndex s = 0; s < static_cast<StorageIndex>(since_.size()); ++s)
            if (since_[s] != kAbsent) leave(s, nextMoment() - 1);
        curve_.time = now.time();
        for (std::size_t i = 0; i < curve_.moments.size(); ++i)
            if (curve_.moments[i].total > curve_.peak)
                curve_.peak = curve_.moments[i].total, curve_.peakMoment = i;
        return std::move(curve_);
    }

private:
    static constexpr std::int32_t kAbsent = -1;

    Bytes& of(BandBytes& bytes, StorageIndex s) const {
        return bytes[bandOf(graph_.storages[s].category)];
    }
    void add(BandBytes& bytes, StorageIndex s) const { of(bytes, s) += graph_.storages[s].bytes; }
    std::int32_t nextMoment() const { return static_cast<std::int32_t>(curve_.moments.size()); }

    void enter(StorageIndex s) {
        since_[s] = nextMoment();
        add(live_, s);
    }
    void leave(StorageIndex s, std::int32_t last) {
        if (last >= since_[s]) curve_.lifetimes.push_back({s, since_[s], last});
        since_[s] = kAbsent;
        of(live_, s) -= graph_.storages[s].bytes;
    }

    const core::TrainingGraph& graph_;
    StepCurve curve_;
    BandBytes live_{}, during_{};
    std::vector<std::int32_t> since_;  // by storage: first moment of its present lifetime
};

}  // namespace

std::size_t StepCurve::momentAt(core::Nanoseconds at) const {
    const auto after = std::upper_bound(
        moments.begin(), moments.end(), at,
        [](core::Nanoseconds time, const Moment& moment) { return time < moment.begin; });
    return after == moments.begin() ? 0 : static_cast<std::size_t>(after - moments.begin()) - 1;
}

StepCurve stepCurve(const core::TrainingGraph& graph, const core::Schedule& schedule) {
    CurveMaker maker(graph);
    core::Replay<CurveMaker, false> replay(graph, maker);
    replay.run(schedule);
    return maker.finish(replay);
}

StepCurve measuredCurve(const StepCurve& plan, const std::vector<core::Bytes>& byOp) {
    StepCurve measured;
    core::Nanoseconds begin;
    for (const Moment& moment : plan.moments) {
        if (moment.op == core::kNone || moment.recomputed) continue;
        const auto op = static_cast<std::size_t>(moment.op);
        if (op >= byOp.size()) return {};
        Moment at = moment;
        at.begin = std::exchange(begin, moment.end);
        at.total = byOp[op];
        at.byBand = {};
        if (at.total > measured.peak)
            measured.peak = at.total, measured.peakMoment = measured.moments.size();
        measured.moments.push_back(at);
    }
    measured.time = begin;
    return measured.moments.size() == byOp.size() ? measured : StepCurve();
}

std::vector<core::StorageIndex> largestResident(const core::TrainingGraph& graph,
                                                const StepCurve& curve, std::size_t moment,
                                                std::size_t limit) {
    std::vector<StorageIndex> live;
    const auto at = static_cast<std::int32_t>(moment);
    for (const Lifetime& lifetime : curve.lifetimes)
        if (lifetime.first <= at && at <= lifetime.last) live.push_back(lifetime.storage);
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
