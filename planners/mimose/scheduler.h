// SPDX-License-Identifier: MIT
// Mimose's responsive memory scheduler: which layers to drop, and plans by input size.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "core/base/units.h"

namespace hw::planners {

/// Layers that are dropped, as indices into the forward order, ascending.
using LayerChoice = std::vector<int>;

/// Liao et al., "Mimose" (2022), Algorithm 1: layers whose bytes differ by at most 10 % share a
/// bucket. While bytes in excess remain, a layer is taken from the bucket of the smallest layers
/// that cover them alone, or from that of the largest where none does; within a bucket the earliest
/// in forward order goes first, since its recomputation comes last in the backward pass, when the
/// others have released theirs. `layers`: bytes by layer in forward order; layers of no bytes are
/// never taken. All layers when the excess is more than they hold. O(n log n + taken x buckets).
LayerChoice chooseLayers(const std::vector<core::Bytes>& layers, core::Bytes excess);

/// Peak of a step whose layers save `layers` bytes each on top of `rest` when those of `choice` are
/// dropped: the highest of the end of the forward pass and of the start of each layer's backward
/// pass, where a dropped layer is back. The paper subtracts the dropped bytes only, which holds
/// while the last layer stays.
core::Bytes layerPeak(const std::vector<core::Bytes>& layers, core::Bytes rest,
                      const LayerChoice& choice);

/// chooseLayers() with the excess raised until layerPeak() keeps the budget; none when even
/// dropping everything does not.
std::optional<LayerChoice> layersWithin(const std::vector<core::Bytes>& layers, core::Bytes rest,
                                        core::Bytes budget);

/// Plans by input size. A plan serves its own size and smaller ones down to the share `tolerance`
/// below it: they need less memory.
class PlanCache {
public:
    explicit PlanCache(double tolerance) : tolerance_(tolerance) {}

    /// None when no plan serves the size.
    const LayerChoice* find(double size);
    const LayerChoice* insert(double size, LayerChoice choice);
    std::int64_t hits() const { return hits_; }
    std::int64_t misses() const { return misses_; }

private:
    double tolerance_;
    std::map<double, LayerChoice> plans_;
    std::int64_t hits_ = 0, misses_ = 0;
};

}  // namespace hw::planners
