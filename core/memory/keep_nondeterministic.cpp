// SPDX-License-Identifier: MIT
#include "core/memory/keep_nondeterministic.h"

#include <algorithm>
#include <vector>

#include "core/graph/nondeterministic_ops.h"
#include "core/memory/evaluate.h"

namespace hw::core {
namespace {

/// Whether such an op makes or writes it.
std::vector<bool> madeByThem(const TrainingGraph& graph, bool onGpu) {
    std::vector<bool> made(graph.storages.size());
    for (const Op& op : graph.ops) {
        if (!isNondeterministic(op.name, onGpu)) continue;
        for (const OpOutput& output : op.outputs)
            made[static_cast<std::size_t>(graph.storageOf(output.tensor))] = true;
        for (const Write& write : op.writes) made[static_cast<std::size_t>(write.storage)] = true;
    }
    return made;
}

/// Those that come back after they were dropped, in the order of their creators.
std::vector<StorageIndex> dropped(const TrainingGraph& graph, const Schedule& schedule,
                                  const std::vector<bool>& of) {
    std::vector<StorageIndex> found;
    for (const Action& action : schedule) {
        if (!action.recomputes()) continue;
        const Op& op = graph.ops[static_cast<std::size_t>(action.target)];
        const auto note = [&](StorageIndex s) {
            if (of[static_cast<std::size_t>(s)]) found.push_back(s);
        };
        for (const std::int32_t output : action.outputs)
            note(graph.storageOf(op.outputs[static_cast<std::size_t>(output)].tensor));
        for (const Write& write : op.writes) note(write.storage);
    }
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
}

/// Freed once, where it is freed last, and never made or written again.
Schedule withoutDrops(const TrainingGraph& graph, const Schedule& schedule, StorageIndex kept) {
    std::size_t last = schedule.size();
    for (std::size_t i = 0; i < schedule.size(); ++i)
        if (schedule[i].kind == ActionKind::Free && schedule[i].target == kept) last = i;
    Schedule result;
    for (std::size_t i = 0; i < schedule.size(); ++i) {
        Action action = schedule[i];
        if (!action.runsOp()) {
            if (action.target != kept || i == last) result.push_back(std::move(action));
            continue;
        }
        if (!action.recomputes()) {
            result.push_back(std::move(action));
            continue;
        }
        const Op& op = graph.ops[static_cast<std::size_t>(action.target)];
        const bool writes = std::any_of(op.writes.begin(), op.writes.end(),
                                        [&](const Write& write) { return write.storage == kept; });
        ShortList<std::int32_t> outputs;
        for (const std::int32_t output : action.outputs)
            if (graph.storageOf(op.outputs[static_cast<std::size_t>(output)].tensor) != kept)
                outputs.push_back(output);
        const bool asked = outputs.size() == action.outputs.size();
        action.outputs = std::move(outputs);
        if (!writes && (asked || action.outputs.size() > 0)) result.push_back(std::move(action));
    }
    return result;
}

}  // namespace

std::optional<Schedule> keepNondeterministic(const TrainingGraph& graph, const Schedule& schedule,
                                             Bytes budget, bool onGpu) {
    std::optional<Schedule> best;
    for (const StorageIndex s : dropped(graph, schedule, madeByThem(graph, onGpu))) {
        Schedule tried = withoutDrops(graph, best ? *best : schedule, s);
        const Evaluation judged = evaluate(graph, tried);
        if (judged.valid && judged.peak <= budget) best = std::move(tried);
    }
    return best;
}

}  // namespace hw::core
