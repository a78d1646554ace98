// SPDX-License-Identifier: MIT
// Sizes as people write them, on the command line and in the window.
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/base/units.h"

namespace hw::core {

/// "4GiB", "500 MB", "123456". Errors: Usage.
Result<Bytes> parseBytes(const std::string& text);

}  // namespace hw::core
