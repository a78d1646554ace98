// SPDX-License-Identifier: MIT
// Which dimension of what a step trains on differs between records, and so is their size.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/result.h"
#include "core/graph/training_graph.h"

namespace hw::core {

/// By record, then by tensor of the first one: its shape. Empty: not recorded.
using ShapesOfRecords = std::vector<std::vector<std::vector<std::int64_t>>>;

struct SizeAxis {
    TensorIndex tensor = kNone;       // of the batch
    int dimension = 0;                // of that tensor
    std::vector<std::int64_t> sizes;  // by record; 0: it differs in another dimension too
};

/// @param graph the first record
/// @param vary the dimension wanted where several vary
/// Errors: BadInput where no dimension varies, or several do and none is wanted; Usage where the
/// wanted one does not.
Result<SizeAxis> findSizeAxis(const TrainingGraph& graph, const ShapesOfRecords& shapes,
                              std::optional<int> vary);

}  // namespace hw::core
