// SPDX-License-Identifier: MIT
#include "core/memory/plan_layout.h"

#include <algorithm>
#include <string>

namespace hw::core {
namespace {

Error misfit(std::string what) {
    return badInput("the address layout does not fit the schedule: " + std::move(what),
                    "lay the plan out again with 'highwater layout'");
}

// One offset per block; BadInput when the layout has another form.
Result<std::vector<Bytes>> offsetsOf(const AddressLayout& layout, const ScheduleBlocks& made) {
    const std::size_t actions = made.firstOfAction.size() - 1;
    if (layout.offsets.size() != actions)
        return misfit("it has " + std::to_string(layout.offsets.size()) + " entries for " +
                      std::to_string(actions) + " schedule entries");
    std::vector<Bytes> offsets(made.blocks.size());
    for (std::size_t i = 0; i < actions; ++i) {
        if (layout.offsets[i].size() != made.allocations(i))
            return misfit("schedule entry " + std::to_string(i) + " has " +
                          std::to_string(layout.offsets[i].size()) + " offsets for " +
                          std::to_string(made.allocations(i)) + " allocations");
        std::copy(layout.offsets[i].begin(), layout.offsets[i].end(),
                  offsets.begin() + static_cast<std::ptrdiff_t>(made.firstOfAction[i]));
    }
    for (const auto& [storage, block] : made.constants) {
        const auto at = layout.constants.find(storage);
        if (at == layout.constants.end())
            return misfit("constant " + std::to_string(storage) + " has no place");
        offsets[block] = at->second;
    }
    return offsets;
}

// "a34.0 (op 12, aten::convolution)"
std::string describe(const ScheduleBlocks& made, std::size_t block, const TrainingGraph& graph,
                     const Schedule& schedule) {
    std::string text = blockNames(made)[block];
    if (block < made.firstOfAction.front()) return text + " (a constant)";
    const auto after =
        std::upper_bound(made.firstOfAction.begin(), made.firstOfAction.end(), block);
    const Action& action =
        schedule[static_cast<std::size_t>(after - made.firstOfAction.begin()) - 1];
    const std::string target = std::to_string(action.target);
    if (action.runsOp())
        return text + " (op " + target + ", " + graph.ops[action.target].name + ")";
    return text + " (storage " + target + ")";
}

// Sweeps over time with the live blocks by offset: neighbours must not overlap.
Status checkOverlaps(const ScheduleBlocks& made, const std::vector<Bytes>& offsets,
                     const TrainingGraph& graph, const Schedule& schedule) {
    const std::vector<Block>& blocks = made.blocks;
    std::vector<std::pair<std::int64_t, std::size_t>> begins, ends;
    for (std::size_t b = 0; b < blocks.size(); ++b) {
        if (!blocks[b].takesSpace()) continue;
        begins.emplace_back(blocks[b].begin, b);
        ends.emplace_back(blocks[b].end, b);
    }
    std::sort(begins.begin(), begins.end());
    std::sort(ends.begin(), ends.end());
    std::map<Bytes, std::size_t> live;
    std::size_t ended = 0;
    for (const auto& [time, b] : begins) {
        for (; ended < ends.size() && ends[ended].first <= time; ++ended)
            live.erase(offsets[ends[ended].second]);
        const auto above = live.lower_bound(offsets[b]);
        const std::size_t none = blocks.size();
        std::size_t other = none;
        if (above != live.end() && above->first < offsets[b] + blocks[b].size)
            other = above->second;
        else if (above != live.begin())
            if (const auto below = std::prev(above);
                below->first + blocks[below->second].size > offsets[b])
                other = below->second;
        if (other != none) {
            return Error{ErrorCode::Verification,
                         "the address layout lets " + describe(made, other, graph, schedule) +
                             " and " + describe(made, b, graph, schedule) +
                             " overlap while both are alive",
                         "lay the plan out again with 'highwater layout'"};
        }
        live.emplace(offsets[b], b);
    }
    return {};
}

}  // namespace

AddressLayout addressLayout(const ScheduleBlocks& blocks, const Packing& packing) {
    AddressLayout layout;
    layout.arena = packing.arena;
    for (const auto& [storage, block] : blocks.constants)
        layout.constants[storage] = packing.offsets[block];
    for (std::size_t i = 0; i + 1 < blocks.firstOfAction.size(); ++i)
        layout.offsets.emplace_back(
            packing.offsets.begin() + static_cast<std::ptrdiff_t>(blocks.firstOfAction[i]),
            packing.offsets.begin() + static_cast<std::ptrdiff_t>(blocks.firstOfAction[i + 1]));
    return layout;
}

AddressLayout layOut(const TrainingGraph& graph, const Schedule& schedule,
                     const PackOptions& options, const Signatures* signatures) {
    const ScheduleBlocks blocks = scheduleBlocks(graph, schedule, {.signatures = signatures});
    return addressLayout(blocks, packBlocks(blocks.blocks, options));
}

Status verifyLayout(const AddressLayout& layout, const TrainingGraph& graph,
                    const Schedule& schedule, Bytes alignment, const Signatures* signatures) {
    const ScheduleBlocks made = scheduleBlocks(graph, schedule, {.signatures = signatures});
    const auto offsets = offsetsOf(layout, made);
    if (!offsets) return offsets.error();
    for (std::size_t b = 0; b < made.blocks.size(); ++b) {
        const Bytes offset = (*offsets)[b];
        if (offset < Bytes(0) || offset > layout.arena ||
            made.blocks[b].size > layout.arena - offset ||
            offset.count() % std::max<std::int64_t>(alignment.count(), 1) != 0)
            return Error{ErrorCode::Verification,
                         "the address layout puts " + describe(made, b, graph, schedule) + " at " +
                             std::to_string(offset.count()) +
                             ", which is not aligned or not inside the arena",
                         "lay the plan out again with 'highwater layout'"};
    }
    return checkOverlaps(made, *offsets, graph, schedule);
}

Fragmentation fragmentation(const std::vector<Block>& blocks, const Packing& packing) {
    std::vector<std::pair<std::int64_t, std::int64_t>> changes;
    for (const Block& block : blocks) {
        if (!block.takesSpace()) continue;
        changes.emplace_back(block.begin, block.size.count());
        changes.emplace_back(block.end, -block.size.count());
    }
    std::sort(changes.begin(), changes.end());
    std::int64_t live = 0, peak = 0, when = 0;
    for (const auto& [time, change] : changes)
        if ((live += change) > peak) peak = live, when = time;

    std::vector<std::pair<Bytes, Bytes>> taken;
    for (std::size_t b = 0; b < blocks.size(); ++b)
        if (blocks[b].takesSpace() && blocks[b].begin <= when && when < blocks[b].end)
            taken.emplace_back(packing.offsets[b], packing.offsets[b] + blocks[b].size);
    std::sort(taken.begin(), taken.end());
    taken.emplace_back(packing.arena, packing.arena);
    Fragmentation result;
    result.livePeak = Bytes(peak);
    Bytes free;
    for (const auto& [from, to] : taken) {
        result.largestHoleAtPeak = std::max(result.largestHoleAtPeak, from - free);
        free = std::max(free, to);
    }
    result.overhead = peak == 0 ? 0.0 : ratio(packing.arena, Bytes(peak)) - 1;
    return result;
}

}  // namespace hw::core
