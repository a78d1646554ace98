// SPDX-License-Identifier: MIT
#include "executor/arena_layout.h"

#include <algorithm>

namespace hw::executor {

using core::Action;
using core::ActionKind;
using core::Bytes;
using core::OpIndex;
using core::StorageIndex;
using core::TrainingGraph;

namespace {

bool runsOp(const Action& action) {
    return action.kind == ActionKind::Compute || action.kind == ActionKind::Recompute;
}

// Walks a schedule and turns each allocation into a block on a time axis on which every event
// inside an op has its own instant.
class BlockMaker {
public:
    BlockMaker(const TrainingGraph& graph, const core::Schedule& schedule,
               const std::vector<OpSignature>& signatures)
        : graph_(graph),
          schedule_(schedule),
          signatures_(signatures),
          arrivals_(constantArrivals(graph)),
          blockOf_(graph.storages.size(), kNoBlock) {}

    Arena pack() {
        walk();
        const core::Packing packing = core::packBlocks(blocks_, kArenaAlignment);
        Arena arena;
        arena.bytes = packing.arena;
        arena.lowerBound = packing.lowerBound;
        arena.actions.resize(schedule_.size());
        for (std::size_t i = 0; i < schedule_.size(); ++i)
            for (std::size_t b = firstBlock_[i]; b < firstBlock_[i] + blockCount_[i]; ++b)
                arena.actions[i].push_back({packing.offsets[b], blocks_[b].size});
        for (const auto& [storage, block] : constants_)
            arena.constants[storage] = {packing.offsets[block], blocks_[block].size};
        return arena;
    }

private:
    static constexpr std::size_t kNoBlock = static_cast<std::size_t>(-1);

    void walk() {
        arrive();
        for (const Action& action : schedule_) {
            firstBlock_.push_back(blocks_.size());
            if (runsOp(action))
                run(action);
            else if (action.kind == ActionKind::Free)
                free(action.target);
            blockCount_.push_back(blocks_.size() - firstBlock_.back());
            ++now_;
            if (action.kind == ActionKind::Compute && !graph_.ops[action.target].viewOnly()) {
                ++fixedDone_;
                arrive();
            }
        }
        for (core::Block& block : blocks_)
            if (block.end == kOpen) block.end = now_;
    }

    void run(const Action& action) {
        const core::Op& op = graph_.ops[action.target];
        const OpSignature& signature = signatures_[action.target];
        const std::int64_t end = now_ + signature.events + 1;
        for (const Allocation& allocation : signature.allocations) {
            core::Block block{now_ + allocation.beginEvent, kOpen, allocation.bytes};
            if (allocation.endEvent) {
                block.end = now_ + *allocation.endEvent;
            } else if (allocation.output) {
                const core::OpOutput& output = op.outputs[*allocation.output];
                const StorageIndex s = graph_.storageOf(output.tensor);
                const bool wanted = action.kind == ActionKind::Compute ||
                                    std::find(action.outputs.begin(), action.outputs.end(),
                                              *allocation.output) != action.outputs.end();
                if (output.makesStorage && wanted && blockOf_[s] == kNoBlock)
                    blockOf_[s] = blocks_.size();
                else if (output.makesStorage)
                    block.end = end;  // dropped right after the op
            }
            blocks_.push_back(block);
        }
        now_ = end;
    }

    void free(StorageIndex s) {
        if (blockOf_[s] == kNoBlock) return;  // a storage of no bytes
        blocks_[blockOf_[s]].end = now_;
        blockOf_[s] = kNoBlock;
    }

    void arrive() {
        for (; arrived_ < arrivals_.size() && arrivals_[arrived_].fixedOpsBefore <= fixedDone_;
             ++arrived_) {
            const StorageIndex s = arrivals_[arrived_].storage;
            if (graph_.storages[s].bytes == Bytes(0)) continue;
            blockOf_[s] = constants_[s] = blocks_.size();
            blocks_.push_back({now_, kOpen, graph_.storages[s].bytes});
        }
        ++now_;
    }

    static constexpr std::int64_t kOpen = INT64_MAX;
    const TrainingGraph& graph_;
    const core::Schedule& schedule_;
    const std::vector<OpSignature>& signatures_;
    std::vector<Arrival> arrivals_;
    std::size_t arrived_ = 0;
    std::int32_t fixedDone_ = 0;
    std::int64_t now_ = 0;
    std::vector<core::Block> blocks_;
    std::vector<std::size_t> firstBlock_, blockCount_;
    std::vector<std::size_t> blockOf_;  // block in which a resident storage lives
    std::map<StorageIndex, std::size_t> constants_;
};

}  // namespace

Arena packSchedule(const TrainingGraph& graph, const core::Schedule& schedule,
                   const std::vector<OpSignature>& signatures) {
    return BlockMaker(graph, schedule, signatures).pack();
}

core::Result<Arena> arenaFromLayout(const core::AddressLayout& layout, const TrainingGraph& graph,
                                    const core::Schedule& schedule,
                                    const std::vector<OpSignature>& signatures) {
    const auto refuse = [](std::string what) {
        return core::badInput("the plan's address layout does not fit: " + std::move(what),
                              "run the plan without its layout, one is made then");
    };
    if (layout.offsets.size() != schedule.size())
        return refuse("it has " + std::to_string(layout.offsets.size()) + " entries for " +
                      std::to_string(schedule.size()) + " actions");
    Arena arena;
    arena.bytes = arena.lowerBound = layout.arena;
    arena.actions.resize(schedule.size());
    const auto inside = [&](Bytes offset, Bytes bytes) {
        return offset >= Bytes(0) && offset + bytes <= layout.arena;
    };
    for (std::size_t i = 0; i < schedule.size(); ++i) {
        if (!runsOp(schedule[i])) continue;
        const auto& allocations = signatures[schedule[i].target].allocations;
        if (allocations.size() != layout.offsets[i].size())
            return refuse("action " + std::to_string(i) + " has " +
                          std::to_string(layout.offsets[i].size()) + " offsets for " +
                          std::to_string(allocations.size()) + " allocations");
        for (std::size_t k = 0; k < allocations.size(); ++k) {
            if (!inside(layout.offsets[i][k], allocations[k].bytes))
                return refuse("an allocation of action " + std::to_string(i) +
                              " lies outside the arena");
            arena.actions[i].push_back({layout.offsets[i][k], allocations[k].bytes});
        }
    }
    for (const Arrival& arrival : constantArrivals(graph)) {
        const Bytes bytes = graph.storages[arrival.storage].bytes;
        const auto at = layout.constants.find(arrival.storage);
        if (bytes == Bytes(0)) continue;
        if (at == layout.constants.end())
            return refuse("constant " + std::to_string(arrival.storage) + " has no place");
        if (!inside(at->second, bytes))
            return refuse("constant " + std::to_string(arrival.storage) +
                          " lies outside the arena");
        arena.constants[arrival.storage] = {at->second, bytes};
    }
    return arena;
}

}  // namespace hw::executor
