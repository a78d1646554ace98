// SPDX-License-Identifier: MIT
#include "core/plan/codec.h"

namespace hw::core {

bool codecServes(const TrainingGraph& graph, std::string_view codec, OpIndex op, StorageIndex s) {
    if (codec != kSignCodec) return true;
    const Op& reader = graph.ops[op];
    if (!reader.is("aten::threshold_backward") || reader.inputs.size() != 2) return false;
    return graph.storageOf(reader.inputs[0].tensor) != s &&
           graph.storageOf(reader.inputs[1].tensor) == s;
}

}  // namespace hw::core
