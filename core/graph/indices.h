// SPDX-License-Identifier: MIT
// What ops, storages and tensors of a graph are counted by. In C++17, with all that includes only
// this: the live runtime is compiled as frameworks ask for.
#pragma once

#include <cstdint>

namespace hw::core {

using OpIndex = std::int32_t;       // captured ops from 0 in captured order; constants are not ops
using StorageIndex = std::int32_t;  // storages from 0 in the order in which they come into being
using TensorIndex = std::int32_t;
using LayerIndex = std::int32_t;
inline constexpr std::int32_t kNone = -1;

}  // namespace hw::core
