// SPDX-License-Identifier: MIT
#include "executor/replay/plan_arena.h"

#include "core/memory/plan_layout.h"
#include "executor/replay/profile_run.h"

namespace hw::executor {

core::Result<Arena> arenaOf(const core::Plan& plan, const core::TrainingGraph& graph,
                            const core::Signatures& signatures, const core::Signatures& stored,
                            core::Bytes alignment, std::vector<std::string>& notes) {
    const auto pack = [&] { return packSchedule(graph, plan.schedule, signatures, alignment); };
    if (!plan.layout) return pack();
    if (stored.empty()) {
        if (core::Status sound = core::verifyLayout(*plan.layout, graph, plan.schedule, alignment);
            !sound)
            return sound.error();
        notes.emplace_back(
            "the plan's layout was made before allocations were recorded; packed again");
        return pack();
    }
    if (!plan.implementations.empty() && !sameSizes(stored, signatures)) {
        notes.emplace_back(
            "the plan's layout was made for other allocations than those of its implementations "
            "in this run; packed again");
        return pack();
    }
    return arenaFromLayout(*plan.layout, graph, plan.schedule, stored, alignment);
}

}  // namespace hw::executor
