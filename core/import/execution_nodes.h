// SPDX-License-Identifier: MIT
// The nodes of an execution trace (ExecutionTraceObserver, Chakra), schemas 1.0.1 to 1.1.1.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/import/text_source.h"

namespace hw::core {

/// A tensor as an op reads or returns it. Ids are the writer's; it gives them again after a free.
struct ExecutionTensor {
    std::int64_t id = 0, storage = 0;
    std::int64_t offset = 0, elements = 0, itemBytes = 0;
    std::string device, dtype, sizes;  // sizes: a JSON array
    std::int32_t argument = 0;         // index of the argument or result that it stands in

    std::int64_t bytes() const;  // up to its end in the storage; throws when it does not fit
};
struct ExecutionNode {
    std::int64_t id = 0, parent = 0, recordFunction = 0, forwardParent = 0, thread = 0;
    std::string name, schema;  // an op has a schema, an annotation none
    std::vector<ExecutionTensor> inputs, outputs;
};
struct ExecutionNodes {
    std::string schema;  // "1.0.1"
    std::int64_t pid = 0;
    std::vector<ExecutionNode> nodes;  // in the file's order
    std::int64_t unreadable = 0;       // nodes that are left out as they lack their fields
    std::string stopped;               // why it was not read to its end; empty when it was
};

/// Memory grows with the ops and tensors, not with the rest of the file.
ExecutionNodes readExecutionNodes(TextSource& source);

}  // namespace hw::core
