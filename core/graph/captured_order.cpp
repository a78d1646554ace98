// SPDX-License-Identifier: MIT
#include "core/graph/captured_order.h"

namespace hw::core {

CapturedOrder capturedOrder(const TrainingGraph& graph) {
    CapturedOrder order;
    order.fixedOps.reserve(graph.ops.size());
    for (const Event& event : graph.events) {
        if (event.kind == Event::Kind::Constant)
            order.constants.push_back({event.index, static_cast<OpIndex>(order.fixedOps.size()),
                                       order.fixedOps.empty() ? kNone : order.fixedOps.back()});
        else if (event.kind == Event::Kind::Compute && !graph.ops[event.index].viewOnly)
            order.fixedOps.push_back(event.index);
    }
    return order;
}

}  // namespace hw::core
