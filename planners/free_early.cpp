// SPDX-License-Identifier: MIT
#include "planners/free_early.h"

#include <algorithm>
#include <utility>

namespace hw::planners {
namespace {

using namespace hw::core;

constexpr std::ptrdiff_t kUntouched = -1;

class LastTouches {
public:
    LastTouches(const TrainingGraph& graph, Schedule schedule)
        : graph_(graph),
          schedule_(std::move(schedule)),
          touched_(graph.storages.size(), kUntouched),
          resident_(graph.storages.size(), false),
          freeAfter_(schedule_.size()),
          moved_(schedule_.size(), false) {}

    Schedule run() {
        const auto count = static_cast<std::ptrdiff_t>(schedule_.size());
        for (std::ptrdiff_t i = 0; i < count; ++i) {
            const Action& action = schedule_[i];
            if (action.kind == ActionKind::Free)
                free(action.target, i);
            else
                execute(action, i);
        }
        for (StorageIndex s = 0; s < static_cast<StorageIndex>(touched_.size()); ++s)
            if (resident_[s] && !graph_.storages[s].aliveAtEnd)
                freeAfter_[touched_[s]].push_back(s);
        Schedule result;
        result.reserve(schedule_.size() + touched_.size());
        for (std::ptrdiff_t i = 0; i < count; ++i) {
            if (!moved_[i]) result.push_back(std::move(schedule_[i]));
            for (const StorageIndex s : freeAfter_[i]) result.push_back(Action::free(s));
        }
        return result;
    }

private:
    void touch(StorageIndex s, std::ptrdiff_t at) { touched_[s] = at; }

    void execute(const Action& action, std::ptrdiff_t at) {
        const Op& op = graph_.ops[action.target];
        for (const Use& use : op.inputs) touch(graph_.storageOf(use.tensor), at);
        for (const Write& write : op.writes) touch(write.storage, at);
        for (std::size_t j = 0; j < op.outputs.size(); ++j) {
            const bool kept = action.kind == ActionKind::Compute ||
                              std::find(action.outputs.begin(), action.outputs.end(),
                                        static_cast<std::int32_t>(j)) != action.outputs.end();
            if (!kept) continue;
            const StorageIndex s = graph_.storageOf(op.outputs[j].tensor);
            touch(s, at);
            if (op.outputs[j].makesStorage) resident_[s] = true;
        }
    }

    // A constant that no action has touched stays until its own free.
    void free(StorageIndex s, std::ptrdiff_t at) {
        resident_[s] = false;
        if (touched_[s] == kUntouched) return;
        freeAfter_[touched_[s]].push_back(s);
        moved_[at] = true;
        touched_[s] = kUntouched;
    }

    const TrainingGraph& graph_;
    Schedule schedule_;
    std::vector<std::ptrdiff_t> touched_;  // last action of the present stay that needs the storage
    std::vector<bool> resident_;           // made by an op; constants stay as they are
    std::vector<std::vector<StorageIndex>> freeAfter_;
    std::vector<bool> moved_;
};

}  // namespace

Schedule freeEarly(const TrainingGraph& graph, Schedule schedule) {
    return LastTouches(graph, std::move(schedule)).run();
}

}  // namespace hw::planners
