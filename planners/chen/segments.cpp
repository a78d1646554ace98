// SPDX-License-Identifier: MIT
#include "planners/chen/segments.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "core/memory/evaluate.h"
#include "core/memory/schedule_builder.h"

namespace hw::planners::chen {

using namespace hw::core;

namespace {

OpIndex lastForwardUse(const Storage& storage, std::span<const OpIndex> chain, OpIndex end) {
    OpIndex last = storage.creator;
    for (const OpIndex op : chain)
        if (op < end) last = std::max(last, op);
    for (const OpIndex op : storage.readers)
        if (op < end) last = std::max(last, op);
    return last;
}

// The first op before which there are more than so many saved bytes; the pass's end at most.
OpIndex opAfter(const ForwardPass& forward, std::int64_t bytes) {
    const auto begin = forward.savedBefore.begin(), end = forward.savedBefore.end() - 1;
    return static_cast<OpIndex>(std::upper_bound(begin, end, bytes) - begin);
}

// Where in [from, to) to cut, at best after `ideal` saved bytes: what crosses stays, and what the
// cut lies off makes one of its segments larger.
OpIndex cheapestCut(const ForwardPass& forward, OpIndex from, OpIndex to, std::int64_t ideal) {
    OpIndex best = kNone;
    std::int64_t lowest = std::numeric_limits<std::int64_t>::max();
    for (OpIndex op = from; op + 1 < to; ++op) {
        const std::int64_t cost =
            forward.crossing[op] + std::abs(forward.savedBefore[op + 1] - ideal);
        if (cost < lowest) lowest = cost, best = op;
    }
    return best;
}

void split(const ForwardPass& forward, OpIndex from, OpIndex to, int level, std::int64_t limit,
           std::vector<Cut>& cuts) {
    constexpr int kDeepest = 48;
    const std::int64_t whole = forward.savedBytes(from, to);
    if (whole <= limit || level > kDeepest) return;
    const OpIndex at = cheapestCut(forward, from, to, forward.savedBefore[from] + whole / 2);
    if (at == kNone) return;
    const std::int64_t larger =
        std::max(forward.savedBytes(from, at + 1), forward.savedBytes(at + 1, to));
    if (forward.crossing[at] + larger >= whole) return;
    split(forward, from, at + 1, level + 1, limit, cuts);
    cuts.push_back({at, level});
    split(forward, at + 1, to, level + 1, limit, cuts);
}

}  // namespace

ForwardPass forwardPass(const TrainingGraph& graph, const RebuildInfo& info) {
    const auto backward = std::find_if(graph.ops.begin(), graph.ops.end(),
                                       [](const Op& op) { return op.phase == Phase::Backward; });
    return forwardPass(graph, info, static_cast<OpIndex>(backward - graph.ops.begin()));
}

ForwardPass forwardPass(const TrainingGraph& graph, const RebuildInfo& info, OpIndex end) {
    ForwardPass forward;
    forward.end = end;
    forward.lastUse.assign(graph.storages.size(), kNone);
    forward.saved.assign(graph.storages.size(), false);
    forward.savedBefore.assign(forward.end + 1, 0);
    forward.crossing.assign(forward.end + 1, 0);
    double sum = 0, squares = 0;
    for (StorageIndex s = 0; s < static_cast<StorageIndex>(graph.storages.size()); ++s) {
        const Storage& storage = graph.storages[s];
        if (storage.isConstant() || storage.creator >= forward.end) continue;
        const OpIndex last = lastForwardUse(storage, info.chain[s], forward.end);
        const std::int64_t bytes = storage.bytes.count();
        forward.lastUse[s] = last;
        if (!info.rematerializable[s] || storage.aliveAtEnd) continue;
        forward.crossing[storage.creator] += bytes;  // differences first
        forward.crossing[last] -= bytes;
        if (info.lastUse[s] < forward.end) continue;
        forward.saved[s] = true;
        forward.savedBefore[storage.creator + 1] += bytes;
        sum += static_cast<double>(bytes);
        squares += static_cast<double>(bytes) * static_cast<double>(bytes);
    }
    for (OpIndex op = 0; op < forward.end; ++op) {
        forward.savedBefore[op + 1] += forward.savedBefore[op];
        forward.crossing[op + 1] += forward.crossing[op];
    }
    if (squares > 0) forward.effectiveLength = sum * sum / squares;
    return forward;
}

std::vector<Cut> equalCuts(const ForwardPass& forward, int parts) {
    std::vector<Cut> cuts;
    const std::int64_t total = forward.savedBytes(0, forward.end);
    const double part = static_cast<double>(total) / parts;
    for (int i = 1; i < parts; ++i) {
        const auto opAt = [&](double bytes) { return opAfter(forward, std::llround(bytes)); };
        OpIndex from = std::max<OpIndex>(opAt((i - 0.5) * part) - 1, 0);
        if (!cuts.empty()) from = std::max(from, cuts.back().after + 1);
        const OpIndex to = std::min<OpIndex>(opAt((i + 0.5) * part), forward.end);
        const OpIndex at = cheapestCut(forward, from, to, std::llround(i * part));
        if (at != kNone) cuts.push_back({at, 0});
    }
    return cuts;
}

std::vector<Cut> narrowCuts(const ForwardPass& forward, const std::vector<std::int64_t>& places) {
    std::vector<Cut> cuts;
    for (std::size_t i = 0; i < places.size(); ++i) {
        const std::int64_t before = i == 0 ? 0 : places[i - 1];
        const std::int64_t after =
            i + 1 == places.size() ? forward.savedBefore[forward.end] : places[i + 1];
        const OpIndex from = opAfter(forward, (before + places[i]) / 2);
        const OpIndex to = std::min(opAfter(forward, (places[i] + after) / 2), forward.end - 1);
        OpIndex best = kNone;
        const auto cost = [&](OpIndex op) {
            return std::pair(forward.crossing[op],
                             std::abs(forward.savedBefore[op + 1] - places[i]));
        };
        for (OpIndex op = from; op < to; ++op)
            if (best == kNone || cost(op) < cost(best)) best = op;
        if (best != kNone && (cuts.empty() || cuts.back().after < best)) cuts.push_back({best, 0});
    }
    return cuts;
}

std::vector<Cut> greedyCuts(const ForwardPass& forward, std::int64_t limit) {
    std::vector<Cut> cuts;
    OpIndex from = 0;
    for (OpIndex op = 0; op + 1 < forward.end; ++op) {
        const bool narrow = forward.crossing[op] <= forward.crossing[op + 1];
        if (forward.savedBytes(from, op + 1) <= limit || !narrow) continue;
        cuts.push_back({op, 0});
        from = op + 1;
    }
    return cuts;
}

std::vector<Cut> boundedCuts(const ForwardPass& forward, std::int64_t limit) {
    std::vector<Cut> cuts;
    OpIndex from = 0;
    for (OpIndex op = 0; op + 1 < forward.end; ++op) {
        if (forward.savedBytes(from, op + 1) <= limit) continue;
        OpIndex best = kNone;
        for (OpIndex at = op - 1;
             at >= from && (best == kNone || 2 * forward.savedBytes(from, at + 1) >= limit); --at)
            if (best == kNone || forward.crossing[at] < forward.crossing[best]) best = at;
        if (best == kNone) best = op;  // one op alone makes more
        cuts.push_back({best, 0});
        from = best + 1;
    }
    return cuts;
}

std::vector<Cut> splitFurther(const ForwardPass& forward, const std::vector<Cut>& cuts,
                              std::int64_t limit) {
    std::vector<Cut> all;
    OpIndex from = 0;
    for (const Cut& cut : cuts) {
        split(forward, from, cut.after + 1, cut.level + 1, limit, all);
        all.push_back(cut);
        from = cut.after + 1;
    }
    split(forward, from, forward.end, cuts.empty() ? 0 : cuts.back().level + 1, limit, all);
    return all;
}

namespace {

// Which segments the backward pass is in, and what must stay for them.
class Focus {
public:
    explicit Focus(const std::vector<Cut>& cuts)
        : cuts_(cuts),
          inFocus_(cuts.size() + 1, false),
          outerBefore_(cuts.size() + 1, 0),
          lastAround_(cuts.size()),
          nextAround_(cuts.size()) {
        const auto around = [&](std::size_t i, std::size_t next, const auto& further) {
            while (next < cuts.size() && cuts[next].level > cuts[i].level) next = further[next];
            return next;
        };
        for (std::size_t i = 0; i < cuts.size(); ++i) {
            outerBefore_[i + 1] = outerBefore_[i] + (cuts[i].level == 0 ? 1 : 0);
            lastAround_[i] = around(i, i - 1, lastAround_);
        }
        for (std::size_t i = cuts.size(); i-- > 0;) nextAround_[i] = around(i, i + 1, nextAround_);
    }

    /// The segments, of the deepest level, that make these storages.
    void set(std::vector<std::size_t> segments) {
        if (segments == segments_) return;
        for (const std::size_t segment : segments_) inFocus_[segment] = false;
        segments_ = std::move(segments);
        inner_.clear();
        for (const std::size_t segment : segments_) {
            inFocus_[segment] = true;
            activate(segment);
        }
        std::sort(inner_.begin(), inner_.end());
    }
    /// Number of cuts before `op`.
    std::size_t segmentOf(OpIndex op) const {
        return static_cast<std::size_t>(
            std::partition_point(cuts_.begin(), cuts_.end(),
                                 [&](const Cut& cut) { return cut.after < op; }) -
            cuts_.begin());
    }
    /// A cut that is active lies between.
    bool crosses(OpIndex creator, OpIndex lastUse) const {
        const std::size_t first = segmentOf(creator), end = segmentOf(lastUse);
        if (outerBefore_[end] > outerBefore_[first]) return true;
        const auto inner = std::lower_bound(inner_.begin(), inner_.end(), first);
        return inner != inner_.end() && *inner < end;
    }
    bool holds(OpIndex creator) const { return inFocus_[segmentOf(creator)]; }

private:
    // The cuts that split a segment around this one; those of level 0 always are.
    void activate(std::size_t segment) {
        const auto isInner = [&](std::size_t cut) {
            return cut < cuts_.size() && cuts_[cut].level > 0;
        };
        for (std::size_t i = segment - 1; isInner(i); i = lastAround_[i]) inner_.push_back(i);
        for (std::size_t i = segment; isInner(i); i = nextAround_[i]) inner_.push_back(i);
    }

    const std::vector<Cut>& cuts_;
    std::vector<bool> inFocus_;
    std::vector<std::size_t> segments_;
    std::vector<std::size_t> outerBefore_;  // cuts of level 0
    // Per cut, the nearest of its level or one further out; no cut where there is none.
    std::vector<std::size_t> lastAround_, nextAround_;
    std::vector<std::size_t> inner_;  // active cuts of the other levels
};

IndexLists savedByLastUse(const ForwardPass& forward) {
    std::vector<IndexLists::Entry> entries;
    for (StorageIndex s = 0; s < static_cast<StorageIndex>(forward.saved.size()); ++s)
        if (forward.saved[s]) entries.emplace_back(forward.lastUse[s], s);
    return {static_cast<std::size_t>(forward.end), entries};
}

}  // namespace

Schedule segmentSchedule(const TrainingGraph& graph, const RebuildInfo& info,
                         const ForwardPass& forward, const std::vector<Cut>& cuts,
                         bool keepUnsaved) {
    Focus focus(cuts);
    focus.set({cuts.size()});
    const auto crosses = [&](StorageIndex s) {
        return focus.crosses(graph.storages[s].creator, forward.lastUse[s]);
    };
    ScheduleBuilder builder(graph, info);
    builder.setLifetime([&](StorageIndex s) {
        using Lifetime = ScheduleBuilder::Lifetime;
        if (forward.lastUse[s] == kNone || !info.rematerializable[s]) return Lifetime::LastUse;
        if (crosses(s))
            return forward.saved[s] || !keepUnsaved ? Lifetime::LastUse : Lifetime::Rebuilds;
        return focus.holds(graph.storages[s].creator) ? Lifetime::LastUse : Lifetime::Passing;
    });
    const IndexLists endingAt = savedByLastUse(forward);
    while (!builder.done()) {
        const OpIndex op = builder.next();
        if (op >= forward.end) {
            std::vector<std::size_t> segments;
            for (const Use& use : graph.ops[op].inputs) {
                const StorageIndex s = graph.storageOf(use.tensor);
                if (!builder.resident(s) && forward.lastUse[s] != kNone)
                    segments.push_back(focus.segmentOf(graph.storages[s].creator));
            }
            if (!segments.empty()) {
                std::sort(segments.begin(), segments.end());
                focus.set(std::move(segments));
            }
        }
        builder.computeNext();
        if (op >= forward.end) continue;
        for (const StorageIndex s : endingAt[op])
            if (builder.resident(s) && !crosses(s) && !focus.holds(graph.storages[s].creator))
                builder.drop(s);
    }
    return builder.finish();
}

Schedule dropSchedule(const TrainingGraph& graph, const RebuildInfo& info,
                      const ForwardPass& forward, const std::vector<bool>& keep) {
    const IndexLists endingAt = savedByLastUse(forward);
    ScheduleBuilder builder(graph, info);
    while (!builder.done()) {
        const OpIndex op = builder.next();
        builder.computeNext();
        if (op >= forward.end) continue;
        for (const StorageIndex s : endingAt[op])
            if (!keep[s] && builder.resident(s)) builder.drop(s);
    }
    return builder.finish();
}

Nanoseconds makingTime(const TrainingGraph& graph, const RebuildInfo& info,
                       const ForwardPass& forward, StorageIndex s) {
    Nanoseconds time;
    for (const OpIndex op : info.chain[s])
        if (op < forward.end && !graph.ops[op].viewOnly) time += graph.ops[op].time;
    return time;
}

KeptSchedule keepEverything(const TrainingGraph& graph, const RebuildInfo& info,
                            const ForwardPass& forward) {
    Schedule kept =
        dropSchedule(graph, info, forward, std::vector<bool>(graph.storages.size(), true));
    const Evaluation judged = evaluate(graph, kept);
    Schedule baseline = baselineSchedule(graph);
    const Bytes peak = evaluate(graph, baseline).peak;
    if (judged.valid && judged.peak <= peak) return {std::move(kept), judged.peak};
    return {std::move(baseline), peak};
}

}  // namespace hw::planners::chen
