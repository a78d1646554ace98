// SPDX-License-Identifier: MIT
// A session may come from anybody, so not every op that it names is run.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"

namespace hw::executor {

/// Whether an op, such as "aten::mm", with arguments of these names works on its arguments and its
/// own results alone: the framework's own ops do, but for those that open files, and those that
/// trust indices without a look. What the user has loaded (--import) is not asked about.
/// Errors: BadInput for all others, with what to do instead.
core::Status requireAllowed(const std::string& op, const std::vector<std::string>& arguments);

}  // namespace hw::executor
