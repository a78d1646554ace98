// SPDX-License-Identifier: MIT
#include "executor/replay/profile_run.h"

#include <algorithm>

namespace hw::executor {
namespace {

using core::Bytes;
using core::Nanoseconds;

void noteChanges(const core::TrainingGraph& graph, const core::Signatures& before,
                 const core::Signatures& now, std::vector<std::string>& notes) {
    for (std::size_t i = 0; i < now.size(); ++i) {
        if (sameSizes(now[i], before[i])) continue;
        notes.push_back("op " + std::to_string(i) + " (" + graph.ops[i].name +
                        ") allocates differently from run to run");
        return;
    }
}

}  // namespace

bool sameSizes(const core::OpSignature& a, const core::OpSignature& b) {
    return std::equal(a.allocations.begin(), a.allocations.end(), b.allocations.begin(),
                      b.allocations.end(),
                      [](const Allocation& x, const Allocation& y) { return x.bytes == y.bytes; });
}

bool sameSizes(const core::Signatures& a, const core::Signatures& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const auto& x, const auto& y) { return sameSizes(x, y); });
}

void noteLeftovers(const RunResult& result, std::vector<std::string>& notes) {
    if (result.left > Bytes(0))
        notes.push_back(std::to_string(result.left.count()) + " bytes outlive the step");
    for (const std::string& held : result.held) notes.push_back(held);
}

core::Result<ProfiledOrder> profileOrder(Interpreter& interpreter, const core::TrainingGraph& graph,
                                         const core::Schedule& order, MemoryTracker& tracker,
                                         int repeat) {
    ProfiledOrder made;
    RunOptions options;
    options.profile = true;
    if (auto warm = interpreter.run(order, options); !warm) return warm.error();
    if (const Bytes kept = tracker.disownLive(); kept > Bytes(0))
        made.notes.push_back(std::to_string(kept.count()) +
                             " bytes stay allocated from step to step, not counted here");
    auto recorded = interpreter.run(order, options);
    if (!recorded) return recorded.error();
    noteLeftovers(*recorded, made.notes);
    made.profile.signatures = std::move(recorded->signatures);
    made.profile.workspaces = std::move(recorded->workspaces);
    made.peak = recorded->peak;
    made.arena = packSchedule(graph, order, made.profile.signatures, tracker.alignment());

    std::vector<std::vector<Nanoseconds>> times(graph.ops.size());
    options.arena = &made.arena;
    // The first pass brings the arena's pages in, and is not timed: in a training they stay.
    for (int pass = repeat > 0 ? -1 : 0; pass < repeat; ++pass) {
        auto result = interpreter.run(order, options);
        if (!result) return result.error();
        if (pass >= 0)
            for (std::size_t i = 0; i < times.size(); ++i) times[i].push_back(result->times[i]);
        else
            noteChanges(graph, made.profile.signatures, result->signatures, made.notes);
    }
    if (repeat > 0)
        for (auto& values : times) made.profile.times.push_back(median(std::move(values)));
    return made;
}

}  // namespace hw::executor
