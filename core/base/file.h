// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "core/base/result.h"

namespace hw::core {

/// Writes `text` to a temporary file beside `path`, then renames it: `path` holds all of it or what
/// it held before. What is no plain file, such as /dev/stdout, is written to as it is.
/// Errors: BadInput.
Status writeFileAtomically(const std::string& path, const std::string& text);

}  // namespace hw::core
