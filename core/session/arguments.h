// SPDX-License-Identifier: MIT
// The arguments of ops (core/session/rows.h) on their way into a session of several processes.
#pragma once

#include <cstdint>
#include <string>

namespace hw::core {

/// The same arguments with `base` added to the ids of all tensors. What is no JSON stays as it is.
std::string withTensorsMoved(const std::string& arguments, std::int64_t base);

}  // namespace hw::core
