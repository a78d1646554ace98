// SPDX-License-Identifier: MIT
#include "core/memory/restore_early.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "core/memory/defer_frees.h"
#include "core/memory/evaluate.h"

namespace hw::core {
namespace {

/// The actions after the last op that make something again or free what that was made from, and
/// what comes of them.
struct Ending {
    std::size_t begin = 0;         // in the schedule: the action after the last op
    std::vector<bool> moves;       // by action from there on
    std::vector<bool> storages;    // that it makes, reads or writes
    std::vector<bool> freed;       // of these
    std::vector<bool> ops;         // that it runs, or that have made what it reads
    Bytes highest{0}, lasting{0};  // above what is there before

    bool empty() const {
        return std::none_of(moves.begin(), moves.end(), [](bool m) { return m; });
    }
};

class EndingFinder {
public:
    EndingFinder(const TrainingGraph& graph, const Schedule& schedule,
                 const std::vector<MemoryPoint>& curve)
        : graph_(graph), schedule_(schedule), curve_(curve) {}

    Ending find() const {
        Ending ending;
        ending.begin = schedule_.size();
        while (ending.begin > 0 && !isFixed(schedule_[ending.begin - 1])) --ending.begin;
        ending.storages.assign(graph_.storages.size(), false);
        ending.freed.assign(graph_.storages.size(), false);
        ending.ops.assign(graph_.ops.size(), false);
        ending.moves.assign(schedule_.size() - ending.begin, false);
        const Bytes start = before(ending.begin);
        for (std::size_t a = ending.begin; a < schedule_.size(); ++a) {
            const Action& action = schedule_[a];
            bool moves = action.recomputes() || traitsOf(action.kind).restores;
            if (action.kind == ActionKind::Free) moves = ending.storages[action.target];
            ending.moves[a - ending.begin] = moves;
            if (!moves) continue;
            note(action, ending);
            ending.highest = std::max(ending.highest, curve_[a].during - start);
            ending.lasting = curve_[a].after - start;
        }
        return ending;
    }

    /// The first action before which the ending may come; its own place where there is none.
    std::size_t place(const Ending& ending, Bytes room) const {
        std::size_t at = ending.begin;
        while (at > 0 && mayPass(ending, schedule_[at - 1]) &&
               curve_[at - 1].during + ending.lasting <= room)
            --at;
        while (at < ending.begin &&
               (schedule_[at].kind == ActionKind::Free || before(at) + ending.highest > room))
            ++at;
        return at;
    }

private:
    bool isFixed(const Action& action) const {
        return action.kind == ActionKind::Compute && !graph_.ops[action.target].viewOnly;
    }
    Bytes before(std::size_t action) const {
        return action == 0 ? Bytes(0) : curve_[action - 1].after;
    }
    void note(const Action& action, Ending& ending) const {
        if (!action.runsOp()) {
            ending.storages[action.target] = true;
            ending.freed[action.target] = action.kind == ActionKind::Free;
            return;
        }
        const Op& op = graph_.ops[action.target];
        ending.ops[action.target] = true;
        for (const Use& use : op.inputs) {
            ending.storages[graph_.storageOf(use.tensor)] = true;
            if (const OpIndex creator = graph_.tensors[use.tensor].creator; creator != kNone)
                ending.ops[creator] = true;
        }
        for (const Write& write : op.writes) ending.storages[write.storage] = true;
        for (const std::int32_t output : action.outputs)
            ending.storages[graph_.storageOf(op.outputs[output].tensor)] = true;
    }
    /// The ending may come before the action: neither changes what the other finds, and it is none
    /// of those after which a plan has still to be kept to.
    bool mayPass(const Ending& ending, const Action& action) const {
        if (action.kind == ActionKind::Free) return !ending.storages[action.target];
        if (action.kind != ActionKind::Compute || ending.ops[action.target]) return false;
        const Op& op = graph_.ops[action.target];
        return std::none_of(op.writes.begin(), op.writes.end(),
                            [&](const Write& w) { return ending.storages[w.storage]; }) &&
               std::none_of(op.inputs.begin(), op.inputs.end(), [&](const Use& use) {
                   return ending.freed[graph_.storageOf(use.tensor)];
               });
    }

    const TrainingGraph& graph_;
    const Schedule& schedule_;
    const std::vector<MemoryPoint>& curve_;
};

}  // namespace

Schedule restoreEarly(const TrainingGraph& graph, const Schedule& schedule) {
    std::vector<MemoryPoint> curve;
    const Evaluation judged = evaluate(graph, schedule, curve);
    if (!judged.valid) return schedule;
    const EndingFinder finder(graph, schedule, curve);
    const Ending ending = finder.find();
    if (ending.empty()) return schedule;
    const std::size_t place = finder.place(ending, withoutSpare(judged.peak));
    if (place == ending.begin) return schedule;
    Schedule early, rest;
    early.reserve(schedule.size());
    for (std::size_t i = 0; i < ending.moves.size(); ++i)
        (ending.moves[i] ? early : rest).push_back(schedule[ending.begin + i]);
    const auto at = [&](std::size_t a) {
        return schedule.begin() + static_cast<std::ptrdiff_t>(a);
    };
    early.insert(early.begin(), schedule.begin(), at(place));
    early.insert(early.end(), at(place), at(ending.begin));
    early.insert(early.end(), rest.begin(), rest.end());
    const Evaluation after = evaluate(graph, early);
    return after.valid && after.peak <= judged.peak ? early : schedule;
}

}  // namespace hw::core
