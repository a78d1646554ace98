// SPDX-License-Identifier: MIT
#include "planners/windows/step_windows.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "core/base/digest.h"
#include "core/graph/valleys.h"
#include "core/memory/replay.h"

namespace hw::planners {

using namespace hw::core;

namespace {

constexpr std::int64_t kAroundSteps = 200;  // of the highest memory: bytes around count as equal

// Tells windows apart by all that their plans depend on, times left out.
std::string keyOf(const GraphWindow& window, Bytes highest) {
    Digest digest;
    digest.add(window.graph.fingerprint());
    for (const Op& op : window.graph.ops) {
        digest.add(op.workspace.count());
        digest.add(op.once);
    }
    for (const Storage& storage : window.graph.storages) digest.add(storage.unseen);
    for (const Event& event : window.graph.events) {
        digest.add(static_cast<std::int64_t>(event.kind));
        digest.add(event.index);
    }
    digest.add(window.around.count() / std::max<std::int64_t>(1, highest.count() / kAroundSteps));
    return digest.hex();
}

// The simulator's logs mark no phases, and their import tells one pass only, by the highest memory
// of the step: here it is told for each.
void tellPhases(GraphWindow& window, OpIndex peak) {
    OpIndex at = window.from;
    for (Op& op : window.graph.ops) {
        const bool before = at < peak || (at == peak && op.name.find("backward") == op.name.npos);
        op.phase = before ? Phase::Forward : Phase::Backward;
        ++at;
    }
}

// What the schedule leaves resident and nothing after the window needs: constants that a rebuild
// might have read.
std::vector<StorageIndex> leftBehind(const TrainingGraph& graph, const Schedule& schedule) {
    ReplayListener nothing;
    Replay<ReplayListener, false> replay(graph, nothing);
    replay.run(schedule);
    std::vector<StorageIndex> left;
    for (StorageIndex s = 0; s < static_cast<StorageIndex>(graph.storages.size()); ++s)
        if (replay.resident(s) && !graph.storages[s].aliveAtEnd) left.push_back(s);
    return left;
}

}  // namespace

StepWindows::StepWindows(const TrainingGraph& graph, Bytes level) {
    const Lifetimes lives = lifetimes(graph, rebuildInfo(graph));
    cut(graph, memoryByOp(graph, lives), lives, level);
}

StepWindows::StepWindows(const TrainingGraph& graph) {
    const Lifetimes lives = lifetimes(graph, rebuildInfo(graph));
    const MemoryByOp memory = memoryByOp(graph, lives);
    cut(graph, memory, lives, halfHeight(memory.during, memory.after));
}

void StepWindows::cut(const TrainingGraph& graph, const MemoryByOp& memory, const Lifetimes& lives,
                      Bytes level) {
    std::vector<std::size_t> ends = splitAtValleys(memory.during, memory.after, level);
    if (ends.empty()) return;
    ends.push_back(graph.ops.size());
    const Bytes highest = *std::max_element(memory.during.begin(), memory.during.end());
    WindowCutter cutter(graph, lives);
    std::map<std::string, std::size_t> known;
    for (const std::size_t end : ends) {
        std::optional<GraphWindow> window = cutter.next(static_cast<OpIndex>(end));
        if (!window) {
            places_.clear(), classes_.clear(), peaks_.clear();
            return;
        }
        const auto begin = memory.during.begin();
        peaks_.push_back(static_cast<OpIndex>(
            std::max_element(begin + window->from, begin + window->to) - begin));
        if (graph.framework == "simrd") tellPhases(*window, peaks_.back());
        const auto [at, isNew] = known.try_emplace(keyOf(*window, highest), classes_.size());
        places_.push_back({at->second, window->from, window->storages});
        if (isNew) {
            classes_.push_back({std::move(*window), 1});
            continue;
        }
        WindowClass& same = classes_[at->second];
        ++same.count;
        same.window.around = std::max(same.window.around, window->around);
        for (std::size_t i = 0; i < window->graph.ops.size(); ++i)
            same.window.graph.ops[i].time += window->graph.ops[i].time;
    }
    for (WindowClass& each : classes_)
        for (Op& op : each.window.graph.ops)
            op.time = Nanoseconds(op.time.count() / static_cast<std::int64_t>(each.count));
}

Schedule StepWindows::join(const std::vector<Schedule>& byClass) const {
    std::vector<std::vector<StorageIndex>> left;
    for (std::size_t of = 0; of < classes_.size(); ++of)
        left.push_back(leftBehind(classes_[of].window.graph, byClass[of]));
    Schedule joined;
    for (const Place& place : places_) {
        for (const Action& action : byClass[place.of]) {
            Action& made = joined.emplace_back(action);
            made.target =
                action.runsOp() ? action.target + place.from : place.storages[action.target];
        }
        for (const StorageIndex s : left[place.of])
            joined.push_back(Action::free(place.storages[s]));
    }
    return joined;
}

}  // namespace hw::planners
