// SPDX-License-Identifier: MIT
#include "core/memory/schedule_blocks.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <string_view>

#include "core/memory/replay.h"

namespace hw::core {
namespace {

// Ops whose every output element depends on the input elements at its place only.
constexpr std::array<std::string_view, 32> kElementWise{
    "abs",        "add",           "bitwise_not",   "clamp",
    "cos",        "div",           "dropout",       "elu",
    "exp",        "gelu",          "gelu_backward", "hardtanh",
    "leaky_relu", "log",           "_masked_scale", "mul",
    "neg",        "pow",           "reciprocal",    "relu",
    "rsqrt",      "rsub",          "sigmoid",       "sigmoid_backward",
    "silu",       "silu_backward", "sin",           "sqrt",
    "sub",        "tanh",          "tanh_backward", "threshold_backward"};

// "aten::add.Tensor" -> "add"
bool isElementWise(std::string_view name) {
    if (const std::size_t colons = name.rfind("::"); colons != std::string_view::npos)
        name.remove_prefix(colons + 2);
    name = name.substr(0, name.find('.'));
    return std::find(kElementWise.begin(), kElementWise.end(), name) != kElementWise.end();
}

// An action runs for one instant, an op with a signature for one more than the events inside it;
// what it leaves behind, and constants that come into being after it, are there at the instant that
// follows. A free takes effect at once.
class BlockMaker : public ReplayListener {
public:
    BlockMaker(const TrainingGraph& graph, const Schedule& schedule, const BlockOptions& options)
        : graph_(graph),
          schedule_(schedule),
          options_(options),
          blockOf_(graph.storages.size(), kNoBlock) {}

    ScheduleBlocks make() {
        made_.blocks.reserve(schedule_.size());
        made_.owners.reserve(schedule_.size());
        made_.firstOfAction.reserve(schedule_.size() + 1);
        made_.beginOfAction.reserve(schedule_.size() + 1);
        for (const ConstantStart& start : capturedOrder(graph_).constants) {
            made_.constants.emplace(start.storage, made_.blocks.size());
            add({0, 0, graph_.storages[start.storage].bytes}, {start.storage, kNone});
        }
        replayValid(graph_, schedule_, *this);
        made_.firstOfAction.resize(schedule_.size() + 1, made_.blocks.size());
        made_.beginOfAction.resize(schedule_.size() + 1, now_);
        for (Block& block : made_.blocks)
            if (block.end == kOpen) block.end = now_;
        nameMerged();
        return std::move(made_);
    }

    void begins(const ReplayState&, const Action&) {
        made_.firstOfAction.push_back(made_.blocks.size());
        made_.beginOfAction.push_back(now_);
        done_ = now_ + 1;
    }
    void ends(const ReplayState&, const Action&) { now_ = done_ + 1; }

    void runs(const ReplayState& state, const Action& action) {
        if (options_.signatures && !options_.signatures->empty())
            runAsRecorded(state, action, (*options_.signatures)[action.target]);
        else
            runInOwnForm(state, action);
    }
    void constant(const ReplayState&, StorageIndex s) {
        const bool fromTheStart = made_.firstOfAction.empty();
        blockOf_[s] = constantsPlaced_++;  // they have the first blocks, in this order
        made_.blocks[blockOf_[s]].begin = fromTheStart ? -1 : done_;
        made_.blocks[blockOf_[s]].end = kOpen;
    }
    void freed(const ReplayState&, StorageIndex s) { release(blockOf_[s], now_); }
    void freedStandIn(const ReplayState&, StorageIndex s, const StandIn&) { endStandIn(s, now_); }

    // The old form stays while the new one is made; what is in host memory takes no block.
    void replaced(const ReplayState& state, StorageIndex s, const StandIn& form) {
        if (state.isOffloaded(s)) return release(blockOf_[s], now_);
        encodedBlockOf_[s] = add({now_, kOpen, form.bytes}, {s, graph_.storages[s].creator});
        release(blockOf_[s], done_);
    }
    void restored(const ReplayState&, StorageIndex s, const StandIn&) {
        blockOf_[s] = add({now_, kOpen, graph_.storages[s].bytes}, {s, graph_.storages[s].creator});
        endStandIn(s, done_);
    }

private:
    static constexpr std::size_t kNoBlock = static_cast<std::size_t>(-1);
    static constexpr std::int64_t kOpen = INT64_MAX;

    std::size_t add(const Block& block, const BlockOwner& owner) {
        made_.blocks.push_back(block);
        made_.owners.push_back(owner);
        return made_.blocks.size() - 1;
    }

    // What the op does not leave behind dies with it.
    void runInOwnForm(const ReplayState& state, const Action& action) {
        const Op& op = graph_.ops[action.target];
        for (std::size_t j = 0; j < op.outputs.size(); ++j) {
            if (!op.outputs[j].makesStorage) continue;
            const StorageIndex s = graph_.storageOf(op.outputs[j].tensor);
            const std::size_t block =
                add({now_, done_, graph_.storages[s].bytes}, {s, action.target});
            if (state.holds(action, j)) hold(state, s, block, op);
        }
        if (op.workspace > Bytes(0)) add({now_, done_, op.workspace}, {kNone, action.target});
    }

    // Every event inside the op has an instant of its own.
    void runAsRecorded(const ReplayState& state, const Action& action,
                       const OpSignature& signature) {
        const Op& op = graph_.ops[action.target];
        done_ = now_ + signature.events + 1;
        for (const Allocation& allocation : signature.allocations) {
            const OpOutput* output = allocation.output
                                         ? &op.outputs[static_cast<std::size_t>(*allocation.output)]
                                         : nullptr;
            const StorageIndex s = output ? graph_.storageOf(output->tensor) : kNone;
            const std::size_t block =
                add({now_ + allocation.beginEvent, kOpen, allocation.bytes}, {s, action.target});
            if (allocation.endEvent) {
                made_.blocks[block].end = now_ + *allocation.endEvent;
            } else if (output && output->makesStorage) {
                made_.blocks[block].end = done_;  // dropped right after the op, unless it is held
                if (state.holds(action, static_cast<std::size_t>(*allocation.output)))
                    hold(state, s, block, op);
            }
        }
    }

    void hold(const ReplayState& state, StorageIndex s, std::size_t block, const Op& op) {
        blockOf_[s] = block;
        made_.blocks[block].end = kOpen;
        if (!options_.inPlace) return;
        const StorageIndex overwritten = inputToOverwrite(state, op, graph_.storages[s].bytes);
        if (overwritten == kNone) return;
        merges_.emplace_back(block, blockOf_[overwritten]);
        blockOf_[s] = blockOf_[overwritten];
        blockOf_[overwritten] = kNoBlock;
    }

    StorageIndex inputToOverwrite(const ReplayState& state, const Op& op, Bytes bytes) const {
        if (op.outputs.size() != 1 || !op.writes.empty() || !isElementWise(op.name)) return kNone;
        for (const Use& use : op.inputs) {
            const StorageIndex s = graph_.storageOf(use.tensor);
            const Storage& storage = graph_.storages[s];
            if (!storage.isConstant() && storage.bytes == bytes &&
                storage.tensors.front() == use.tensor && diesNow(state.action(), s))
                return s;
        }
        return kNone;
    }

    // Freed by an action that follows with no op in between.
    bool diesNow(std::size_t action, StorageIndex s) const {
        for (std::size_t i = action + 1; i < schedule_.size() && !schedule_[i].takesTime(); ++i)
            if (schedule_[i].target == s) return true;
        return false;
    }

    void endStandIn(StorageIndex s, std::int64_t end) {
        if (const auto block = encodedBlockOf_.find(s); block != encodedBlockOf_.end())
            release(block->second, end);
    }
    void release(std::size_t& block, std::int64_t end) {
        if (block == kNoBlock) return;  // another storage has taken its place
        made_.blocks[block].end = end;
        block = kNoBlock;
    }

    void nameMerged() {
        made_.placedIn.resize(made_.blocks.size());
        std::iota(made_.placedIn.begin(), made_.placedIn.end(), std::size_t{0});
        made_.merged = merges_.size();
        for (const auto& [block, into] : merges_) {  // in order: `into` is resolved already
            made_.placedIn[block] = made_.placedIn[into];
            made_.blocks[block].size = Bytes(0);
        }
    }

    const TrainingGraph& graph_;
    const Schedule& schedule_;
    const BlockOptions& options_;
    std::int64_t now_ = 0, done_ = 1;   // the action's first instant, and the first after it
    std::vector<std::size_t> blockOf_;  // of each resident storage
    std::size_t constantsPlaced_ = 0;
    std::map<StorageIndex, std::size_t> encodedBlockOf_;
    std::vector<std::pair<std::size_t, std::size_t>> merges_;
    ScheduleBlocks made_;
};

}  // namespace

ScheduleBlocks scheduleBlocks(const TrainingGraph& graph, const Schedule& schedule,
                              const BlockOptions& options) {
    return BlockMaker(graph, schedule, options).make();
}

std::vector<std::string> blockNames(const ScheduleBlocks& blocks) {
    std::vector<std::string> names(blocks.blocks.size());
    for (const auto& [storage, block] : blocks.constants)
        names[block] = "c" + std::to_string(storage);
    for (std::size_t i = 0; i + 1 < blocks.firstOfAction.size(); ++i)
        for (std::size_t k = 0; k < blocks.allocations(i); ++k)
            names[blocks.firstOfAction[i] + k] = "a" + std::to_string(i) + "." + std::to_string(k);
    return names;
}

}  // namespace hw::core
