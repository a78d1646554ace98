// SPDX-License-Identifier: MIT
// In a container, or as a service with a /tmp of its own, a process may see other files than we do
// under the same path.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <vector>

#include "core/base/result.h"

namespace hw::profiler {

/// Whether the process finds the same file, or folder, at that path.
bool sees(pid_t pid, const std::filesystem::path& path);

/// A folder for temporary files that we may write to and all of them see. Errors: Target.
core::Result<std::filesystem::path> folderSeenBy(const std::vector<pid_t>& pids);

}  // namespace hw::profiler
