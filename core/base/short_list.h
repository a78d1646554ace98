// SPDX-License-Identifier: MIT
// Lists that are short nearly always, by the million.
#pragma once

// GCC takes the unused part of a moved list for a read of it.
#pragma GCC diagnostic push
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <absl/container/inlined_vector.h>
#pragma GCC diagnostic pop

namespace hw::core {

/// As large as a std::vector; the first 16 bytes' worth of elements lie in it, where a vector would
/// allocate: the operands of nearly every op are there when the op is.
template <typename T>
using ShortList = absl::InlinedVector<T, 16 / sizeof(T)>;

}  // namespace hw::core
