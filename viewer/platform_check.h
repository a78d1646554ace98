// SPDX-License-Identifier: GPL-3.0-or-later
// Whether Qt will find what it takes to open a window. It ends the process where it does not.
#pragma once

#include <string>

#include "core/base/result.h"

namespace hw::viewer {

/// What keeps Qt from opening windows, from what it said before it ended.
core::Error platformError(const std::string& said, const std::string& display);

/// Lets another process try, before this one has threads. Errors: Usage where there is no display,
/// Target where it does not answer or a library is missing.
core::Status checkPlatform();

}  // namespace hw::viewer
