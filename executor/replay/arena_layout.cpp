// SPDX-License-Identifier: MIT
#include "executor/replay/arena_layout.h"

#include "core/memory/plan_layout.h"

namespace hw::executor {
namespace {

using core::Bytes;

// Blocks of no bytes take no slot: the tracker never hears of them.
Arena slotsOf(const core::AddressLayout& layout, const core::ScheduleBlocks& made) {
    Arena arena;
    arena.bytes = arena.lowerBound = layout.arena;
    arena.actions.resize(layout.offsets.size());
    for (std::size_t i = 0; i < layout.offsets.size(); ++i)
        for (std::size_t k = 0; k < layout.offsets[i].size(); ++k)
            if (const Bytes size = made.blocks[made.firstOfAction[i] + k].size; size > Bytes(0))
                arena.actions[i].push_back({layout.offsets[i][k], size});
    for (const auto& [storage, block] : made.constants)
        if (made.blocks[block].size > Bytes(0))
            arena.constants[storage] = {layout.constants.at(storage), made.blocks[block].size};
    return arena;
}

}  // namespace

Arena packSchedule(const core::TrainingGraph& graph, const core::Schedule& schedule,
                   const core::Signatures& signatures, core::Bytes alignment) {
    const core::ScheduleBlocks made =
        core::scheduleBlocks(graph, schedule, {.signatures = &signatures});
    const core::Packing packing = core::packBlocks(made.blocks, alignment);
    Arena arena = slotsOf(core::addressLayout(made, packing), made);
    arena.lowerBound = packing.lowerBound;
    return arena;
}

core::Result<Arena> arenaFromLayout(const core::AddressLayout& layout,
                                    const core::TrainingGraph& graph,
                                    const core::Schedule& schedule,
                                    const core::Signatures& signatures, core::Bytes alignment) {
    if (const core::Status good =
            core::verifyLayout(layout, graph, schedule, alignment, &signatures);
        !good)
        return good.error();
    return slotsOf(layout, core::scheduleBlocks(graph, schedule, {.signatures = &signatures}));
}

}  // namespace hw::executor
