// SPDX-License-Identifier: MIT
// The JSON of reports: keys stay in the order in which they are written.
#pragma once

#include <nlohmann/json.hpp>

namespace hw::live {

using Json = nlohmann::ordered_json;

}  // namespace hw::live
