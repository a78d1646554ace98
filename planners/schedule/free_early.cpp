// SPDX-License-Identifier: MIT
#include "planners/schedule/free_early.h"

#include <algorithm>
#include <utility>

namespace hw::planners {
namespace {

using namespace hw::core;

constexpr std::ptrdiff_t kUntouched = -1;

class LastTouches {
public:
    LastTouches(const TrainingGraph& graph, Schedule schedule, std::ptrdiff_t held)
        : graph_(graph),
          schedule_(std::move(schedule)),
          held_(held),
          touched_(graph.storages.size(), kUntouched),
          resident_(graph.storages.size(), false),
          firstFree_(schedule_.size(), kUntouched),
          moved_(schedule_.size(), false) {}

    Schedule run() {
        const auto count = static_cast<std::ptrdiff_t>(schedule_.size());
        for (std::ptrdiff_t i = 0; i < count; ++i) {
            const Action& action = schedule_[i];
            if (action.runsOp())
                execute(action, i);
            else
                free(action.target, i);
        }
        for (StorageIndex s = 0; s < static_cast<StorageIndex>(touched_.size()); ++s)
            if (resident_[s] && !graph_.storages[s].aliveAtEnd)
                freeAfter(earliestFree(s, count - 1), s);
        Schedule result;
        result.reserve(schedule_.size() + touched_.size());
        for (std::ptrdiff_t i = 0; i < count; ++i) {
            if (!moved_[i]) result.push_back(std::move(schedule_[i]));
            for (auto f = firstFree_[i]; f != kUntouched; f = frees_[f].next)
                result.push_back(Action::free(frees_[f].storage));
        }
        return result;
    }

private:
    struct MovedFree {
        StorageIndex storage;
        std::ptrdiff_t next;  // after the same action
    };

    void freeAfter(std::ptrdiff_t action, StorageIndex s) {
        frees_.push_back({s, firstFree_[action]});
        firstFree_[action] = static_cast<std::ptrdiff_t>(frees_.size()) - 1;
    }

    void touch(StorageIndex s, std::ptrdiff_t at) { touched_[s] = at; }

    void execute(const Action& action, std::ptrdiff_t at) {
        const Op& op = graph_.ops[action.target];
        for (const Use& use : op.inputs) touch(graph_.storageOf(use.tensor), at);
        for (const Write& write : op.writes) touch(write.storage, at);
        for (std::size_t j = 0; j < op.outputs.size(); ++j) {
            if (!action.wants(j)) continue;
            const StorageIndex s = graph_.storageOf(op.outputs[j].tensor);
            touch(s, at);
            if (op.outputs[j].makesStorage) resident_[s] = true;
        }
    }

    // A constant that no action has touched, or that is a program's, stays until its own free.
    void free(StorageIndex s, std::ptrdiff_t at) {
        resident_[s] = false;
        if (touched_[s] == kUntouched || (graph_.recorded && graph_.storages[s].isConstant()))
            return;
        freeAfter(earliestFree(s, at), s);
        moved_[at] = true;
        touched_[s] = kUntouched;
    }

    // The action after which the free at `at` may stand.
    std::ptrdiff_t earliestFree(StorageIndex s, std::ptrdiff_t at) const {
        return touched_[s] < held_ && held_ <= at ? held_ : touched_[s];
    }

    const TrainingGraph& graph_;
    Schedule schedule_;
    std::ptrdiff_t held_;  // before the first action: none
    std::vector<std::ptrdiff_t>
        touched_;                 // last action of the present lifetime that needs the storage
    std::vector<bool> resident_;  // made by an op; constants stay as they are
    std::vector<MovedFree> frees_;
    std::vector<std::ptrdiff_t> firstFree_;  // by action: in frees_, of those right after it
    std::vector<bool> moved_;
};

}  // namespace

Schedule freeEarly(const TrainingGraph& graph, Schedule schedule, std::optional<std::size_t> held) {
    const auto at = held ? static_cast<std::ptrdiff_t>(*held) : kUntouched;
    return LastTouches(graph, std::move(schedule), at).run();
}

}  // namespace hw::planners
