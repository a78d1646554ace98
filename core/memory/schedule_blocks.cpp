// SPDX-License-Identifier: MIT
#include "core/memory/schedule_blocks.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <string_view>

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

// Walks a schedule. An action runs for one instant, an op with a signature for one more than the
// events inside it; what it leaves behind, and constants that arrive after it, are there at the
// instant that follows. A free takes effect at once.
class BlockMaker {
public:
    BlockMaker(const TrainingGraph& graph, const Schedule& schedule, const BlockOptions& options)
        : graph_(graph),
          schedule_(schedule),
          options_(options),
          arrivals_(constantArrivals(graph)),
          blockOf_(graph.storages.size(), kNoBlock) {}

    ScheduleBlocks make() {
        for (const Arrival& arrival : arrivals_) {
            made_.constants[arrival.storage] = made_.blocks.size();
            made_.blocks.push_back({0, 0, graph_.storages[arrival.storage].bytes});
        }
        arrive();
        for (action_ = 0; action_ < schedule_.size(); ++action_) {
            made_.firstOfAction.push_back(made_.blocks.size());
            done_ = now_ + 1;
            apply(schedule_[action_]);
            now_ = done_ + 1;
        }
        made_.firstOfAction.push_back(made_.blocks.size());
        for (Block& block : made_.blocks)
            if (block.end == kOpen) block.end = now_;
        nameMerged();
        return std::move(made_);
    }

private:
    static constexpr std::size_t kNoBlock = static_cast<std::size_t>(-1);
    static constexpr std::int64_t kOpen = INT64_MAX;

    void apply(const Action& action) {
        switch (action.kind) {
            case ActionKind::Compute:
            case ActionKind::Recompute:
                return run(action);
            case ActionKind::Free:
                return release(action.target, now_);
            case ActionKind::Encode:
                return exchange(action.target, action.encodedBytes);
            case ActionKind::Decode:
                return exchange(action.target, graph_.storages[action.target].bytes);
        }
    }

    void run(const Action& action) {
        const Op& op = graph_.ops[action.target];
        if (options_.signatures && !options_.signatures->empty())
            runAsRecorded(action, op, (*options_.signatures)[action.target]);
        else
            runInOwnForm(action, op);
        if (action.kind == ActionKind::Compute && !op.viewOnly()) {
            ++fixedDone_;
            arrive();
        }
    }

    void runInOwnForm(const Action& action, const Op& op) {
        for (std::size_t j = 0; j < op.outputs.size(); ++j) {
            if (!op.outputs[j].makesStorage) continue;
            const StorageIndex s = graph_.storageOf(op.outputs[j].tensor);
            const std::size_t block = allocate(graph_.storages[s].bytes);
            if (keeps(action, j)) hold(s, block, op);
        }
        if (op.workspace > Bytes(0)) allocate(op.workspace);
    }

    // Every event inside the op has an instant of its own.
    void runAsRecorded(const Action& action, const Op& op, const OpSignature& signature) {
        done_ = now_ + signature.events + 1;
        for (const Allocation& allocation : signature.allocations) {
            const std::size_t block = made_.blocks.size();
            made_.blocks.push_back({now_ + allocation.beginEvent, kOpen, allocation.bytes});
            if (allocation.endEvent) {
                made_.blocks[block].end = now_ + *allocation.endEvent;
            } else if (allocation.output && op.outputs[*allocation.output].makesStorage) {
                made_.blocks[block].end = done_;  // dropped right after the op, unless it is held
                if (keeps(action, static_cast<std::size_t>(*allocation.output)))
                    hold(graph_.storageOf(op.outputs[*allocation.output].tensor), block, op);
            }
        }
    }

    // Does result `j` of the action stay, by the accounting rules?
    bool keeps(const Action& action, std::size_t j) const {
        const StorageIndex s = graph_.storageOf(graph_.ops[action.target].outputs[j].tensor);
        const bool wanted = action.kind == ActionKind::Compute ||
                            std::find(action.outputs.begin(), action.outputs.end(),
                                      static_cast<std::int32_t>(j)) != action.outputs.end();
        return wanted && blockOf_[s] == kNoBlock;
    }

    // A block that dies with the action unless something holds it.
    std::size_t allocate(Bytes bytes) {
        made_.blocks.push_back({now_, done_, bytes});
        return made_.blocks.size() - 1;
    }

    void hold(StorageIndex s, std::size_t block, const Op& op) {
        blockOf_[s] = block;
        made_.blocks[block].end = kOpen;
        if (!options_.inPlace) return;
        const StorageIndex overwritten = inputToOverwrite(op, graph_.storages[s].bytes);
        if (overwritten == kNone) return;
        merges_.emplace_back(block, blockOf_[overwritten]);
        blockOf_[s] = blockOf_[overwritten];
        blockOf_[overwritten] = kNoBlock;
    }

    StorageIndex inputToOverwrite(const Op& op, Bytes bytes) const {
        if (op.outputs.size() != 1 || !op.writes.empty() || !isElementWise(op.name)) return kNone;
        for (const Use& use : op.inputs) {
            const StorageIndex s = graph_.storageOf(use.tensor);
            const Storage& storage = graph_.storages[s];
            if (!storage.isConstant() && storage.bytes == bytes &&
                storage.tensors.front() == use.tensor && diesNow(s))
                return s;
        }
        return kNone;
    }

    // Freed by an action that follows without another op in between.
    bool diesNow(StorageIndex s) const {
        for (std::size_t i = action_ + 1;
             i < schedule_.size() && schedule_[i].kind == ActionKind::Free; ++i)
            if (schedule_[i].target == s) return true;
        return false;
    }

    void release(StorageIndex s, std::int64_t end) {
        if (blockOf_[s] == kNoBlock) return;  // another storage has taken its place
        made_.blocks[blockOf_[s]].end = end;
        blockOf_[s] = kNoBlock;
    }

    // Encoding and decoding: the old form stays while the new one is made.
    void exchange(StorageIndex s, Bytes bytes) {
        const std::size_t block = allocate(bytes);
        release(s, done_);
        blockOf_[s] = block;
        made_.blocks[block].end = kOpen;
    }

    void arrive() {
        const std::int64_t begin = fixedDone_ == 0 ? -1 : done_;
        for (; arrived_ < arrivals_.size() && arrivals_[arrived_].fixedOpsBefore <= fixedDone_;
             ++arrived_) {
            blockOf_[arrivals_[arrived_].storage] = arrived_;
            made_.blocks[arrived_].begin = begin;
            made_.blocks[arrived_].end = kOpen;
        }
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
    std::vector<Arrival> arrivals_;
    std::size_t arrived_ = 0;
    std::int32_t fixedDone_ = 0;
    std::size_t action_ = 0;
    std::int64_t now_ = 0, done_ = 1;   // the action's first instant, and the first after it
    std::vector<std::size_t> blockOf_;  // of the resident form of each storage
    std::vector<std::pair<std::size_t, std::size_t>> merges_;
    ScheduleBlocks made_;
};

}  // namespace

std::vector<Arrival> constantArrivals(const TrainingGraph& graph) {
    std::vector<Arrival> arrivals;
    std::int32_t fixed = 0;
    for (const Event& event : graph.events) {
        if (event.kind == Event::Kind::Constant) arrivals.push_back({fixed, event.index});
        if (event.kind == Event::Kind::Compute && !graph.ops[event.index].viewOnly()) ++fixed;
    }
    return arrivals;
}

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
