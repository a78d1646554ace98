// SPDX-License-Identifier: MIT
// Segments of the forward pass: where Chen's algorithms cut it, and the schedule that follows.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "core/graph/training_graph.h"
#include "core/memory/rebuild.h"
#include "core/plan/plan.h"

namespace hw::planners::chen {

/// The forward pass as the algorithms see it. *Saved* storages are those that it makes, that later
/// ops read and that can be rebuilt: the feature maps. All others keep the baseline's life.
struct ForwardPass {
    core::OpIndex end = 0;               // ops before the first backward op
    std::vector<core::OpIndex> lastUse;  // per storage: last forward op that reads, writes or views
                                         // it; kNone when the forward pass does not make it
    std::vector<bool> saved;             // per storage
    std::vector<std::int64_t> crossing;  // [op]: rebuildable bytes there that later forward ops use
    std::vector<std::int64_t> savedBefore;  // [op], 0..end: saved bytes made by the ops before it

    /// The paper's n, by size: (sum b)^2 / (sum b^2) over the saved storages of b bytes, so that n
    /// equal ones count n and tiny ones nothing.
    double effectiveLength = 0;
    std::int64_t savedBytes(core::OpIndex from, core::OpIndex to) const {
        return savedBefore[to] - savedBefore[from];
    }
};

ForwardPass forwardPass(const core::TrainingGraph& graph, const core::RebuildInfo& info);
/// The same for the ops before `end`, whatever their phase.
ForwardPass forwardPass(const core::TrainingGraph& graph, const core::RebuildInfo& info,
                        core::OpIndex end);

/// A cut lies after op `after`. Level 0 cuts make the segments of the forward pass, level l cuts
/// split a segment of level l - 1 while its backward pass runs (section 4.4).
struct Cut {
    core::OpIndex after = 0;
    int level = 0;
    auto operator<=>(const Cut&) const = default;
};

/// `parts` segments of about equal saved bytes; each cut moves to where little crosses it.
std::vector<Cut> equalCuts(const ForwardPass& forward, int parts);

/// A cut where the least crosses near each of these places, in saved bytes before it, ascending: no
/// further from it than half of the way to the next.
std::vector<Cut> narrowCuts(const ForwardPass& forward, const std::vector<std::int64_t>& places);

/// Algorithm 3: a cut once the open segment holds more than `limit` saved bytes, at the next op
/// where what crosses is locally least (the paper's candidate points).
std::vector<Cut> greedyCuts(const ForwardPass& forward, std::int64_t limit);

/// The same from the other side: a cut before the open segment would hold more than `limit`, in its
/// second half where the least crosses. A segment holds more only where a single op makes more.
std::vector<Cut> boundedCuts(const ForwardPass& forward, std::int64_t limit);

/// Section 4.4: splits every segment in two, again and again, while it holds more than `limit`
/// saved bytes and the split lowers what its backward pass must hold. Returns all cuts, sorted.
std::vector<Cut> splitFurther(const ForwardPass& forward, const std::vector<Cut>& cuts,
                              std::int64_t limit);

/// The schedule of these cuts. After the forward pass those storages stay that cross a cut of level
/// 0, and what the last segment's own backward pass needs; the rest is dropped at its last forward
/// use. When a backward op misses something of a segment, what its segment still needs is rebuilt
/// from the cut before; on the way through an enclosing segment only what crosses that one's cuts
/// stays. `keepUnsaved`: what crosses a cut stays although no backward op reads it, so that a
/// segment is rebuilt from its own cut; otherwise less is held and more is rebuilt.
core::Schedule segmentSchedule(const core::TrainingGraph& graph, const core::RebuildInfo& info,
                               const ForwardPass& forward, const std::vector<Cut>& cuts,
                               bool keepUnsaved = true);

/// The schedule that drops the saved storages with `keep` false at their last forward use; they are
/// rebuilt when they are first needed again and stay until their last use.
core::Schedule dropSchedule(const core::TrainingGraph& graph, const core::RebuildInfo& info,
                            const ForwardPass& forward, const std::vector<bool>& keep);

/// Time of the ops of the forward pass that make a storage: its creator, then what writes it; not
/// of what they read.
core::Nanoseconds makingTime(const core::TrainingGraph& graph, const core::RebuildInfo& info,
                             const ForwardPass& forward, core::StorageIndex s);

struct KeptSchedule {
    core::Schedule schedule;
    core::Bytes peak;
};

/// Everything kept, freed at its last use rather than at the program's release; the baseline itself
/// where that is not lower.
KeptSchedule keepEverything(const core::TrainingGraph& graph, const core::RebuildInfo& info,
                            const ForwardPass& forward);

}  // namespace hw::planners::chen
