// SPDX-License-Identifier: MIT
// The arguments of ops, as core/session/rows.h keeps them.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace hw::core {

/// Those that have no name, as a list; null where it is no JSON.
nlohmann::json positionalArguments(const std::string& arguments);

/// For a session of several processes: the same arguments with `base` added to the ids of all
/// tensors. What is no JSON stays as it is.
std::string withTensorsMoved(const std::string& arguments, std::int64_t base);

}  // namespace hw::core
