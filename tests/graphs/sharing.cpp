// SPDX-License-Identifier: MIT
#include "tests/graphs/sharing.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "core/memory/layout.h"

namespace hw::bench {

using namespace hw::core;

namespace {

// Last op that touches each storage; the number of ops when it stays.
std::vector<OpIndex> lastTouch(const TrainingGraph& graph) {
    std::vector<OpIndex> last(graph.storages.size(), kNone);
    for (OpIndex i = 0; i < static_cast<OpIndex>(graph.ops.size()); ++i) {
        for (const Use& use : graph.ops[i].inputs) last[graph.storageOf(use.tensor)] = i;
        for (const OpOutput& output : graph.ops[i].outputs)
            last[graph.storageOf(output.tensor)] = i;
    }
    for (StorageIndex s = 0; s < static_cast<StorageIndex>(last.size()); ++s)
        if (graph.storages[s].aliveAtEnd) last[s] = static_cast<OpIndex>(graph.ops.size());
    return last;
}

}  // namespace

SharedMemory sharedMemory(const TrainingGraph& graph,
                          const std::function<bool(const Op&)>& mayOverwrite) {
    const std::vector<OpIndex> last = lastTouch(graph);
    std::vector<StorageIndex> memory(graph.storages.size());  // whose memory a storage lies in
    std::vector<Block> blocks(graph.storages.size());
    SharedMemory used;
    for (OpIndex i = 0; i < static_cast<OpIndex>(graph.ops.size()); ++i) {
        const Op& op = graph.ops[i];
        bool mayTake = mayOverwrite(op);
        for (const OpOutput& output : op.outputs) {
            if (!output.makesStorage) continue;
            const StorageIndex s = graph.storageOf(output.tensor);
            const Bytes bytes = graph.storages[s].bytes;
            used.separate += bytes;
            const auto taken = std::find_if(op.inputs.begin(), op.inputs.end(), [&](Use use) {
                const StorageIndex input = graph.storageOf(use.tensor);
                return mayTake && !graph.storages[input].isConstant() && last[input] == i &&
                       graph.storages[input].bytes == bytes;
            });
            if (taken != op.inputs.end()) {
                memory[s] = memory[graph.storageOf(taken->tensor)];
            } else {
                memory[s] = s;
                used.inPlace += bytes;
                blocks[s] = {i, i + 1, bytes};
            }
            mayTake = false;  // one result only
            Block& block = blocks[memory[s]];
            block.end = std::max<std::int64_t>(block.end, last[s] + 1);
        }
    }
    used.sharing = packBlocks(blocks, Bytes(1)).arena;
    return used;
}

bool elementWise(const Op& op) {
    constexpr std::array<std::string_view, 6> kNames{"batch_norm", "relu", "sigmoid",
                                                     "tanh",       "add",  "mul"};
    return std::any_of(kNames.begin(), kNames.end(), [&](std::string_view name) {
        return op.name == name || op.name == std::string(name) + "_backward";
    });
}

}  // namespace hw::bench
