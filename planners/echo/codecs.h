// SPDX-License-Identifier: MIT
// Echo's one-bit encodings: feature maps of which the backward pass needs one bit an element; and
// narrow pooling indices.
#pragma once

#include <string_view>
#include <vector>

#include "core/graph/training_graph.h"
#include "core/plan/codec.h"
#include "core/plan/plan.h"

namespace hw::planners {

/// A storage that may be replaced by an encoded form once its last writer has run.
struct CodecSite {
    core::StorageIndex storage = core::kNone;
    std::string_view codec;
    core::Bytes bytes;  // of the encoded form
};

/// Storages of a captured step that a codec fits. The graph knows no element sizes: floating-point
/// elements are taken to have two bytes, bool ones one, so that the sizes are upper bounds.
/// Masks: aten::native_dropout's second result, and what aten::bernoulli_ draws and
/// aten::div_.Scalar scales. Signs: what aten::relu or aten::relu_ wrote last; none where an
/// aten::threshold reads it, whose gradient compares with another value. Indices: the second result
/// of aten::max_pool2d_with_indices and aten::max_pool3d_with_indices, places in one plane.
std::vector<CodecSite> codecSites(const core::TrainingGraph& graph);

/// Encodes each site's storage in the longest time in which `schedule` does not need it, and
/// decodes it right before its next reader. Sites where that is impossible (a later reader that the
/// codec does not serve, or one that reads a view) are left alone.
core::Schedule withCodecs(const core::TrainingGraph& graph, const core::Schedule& schedule,
                          const std::vector<CodecSite>& sites);

}  // namespace hw::planners
