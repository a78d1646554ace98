// SPDX-License-Identifier: MIT
// The libraries that Python modules bring with ops of their own.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"

namespace hw::executor {

/// Imports the modules with `python`, after its torch, and gives what that has loaded: libraries
/// that use torch's, and Python's own first, where there is one. Modules are looked for in the
/// current folder, too, but not torch. Errors: Target, with what Python says.
core::Result<std::vector<std::string>> librariesOfModules(const std::string& python,
                                                          const std::vector<std::string>& modules);

}  // namespace hw::executor
