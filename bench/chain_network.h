// SPDX-License-Identifier: MIT
#pragma once

#include "core/graph/training_graph.h"

namespace hw::bench {

/// The linear feedforward network of the theory of DTR (Kirisame et al., ICLR 2021, section 3 and
/// Appendix A), as its simulator generates it: `layers` forward ops, each reading the activation
/// before, then as many backward ops, each reading the gradient after and the activation before its
/// layer. Every activation and every gradient is one byte, every op takes one nanosecond, there are
/// no weights and no input. An activation is released before the backward op of its layer, a
/// gradient after its only reader; the last gradient stays. A budget thus counts activations and
/// gradients alike, the results of the op in progress among them.
core::TrainingGraph chainNetwork(int layers);

}  // namespace hw::bench
