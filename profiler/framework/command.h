// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace hw::profiler {

enum class Ran { Well, Badly, Never };

/// Runs a program to its end, in `folder` (empty: here), with its output going to a file.
Ran runInto(const std::vector<std::string>& command, const std::filesystem::path& output,
            const std::string& folder = {});

/// Empty where it cannot be read.
std::string contentsOf(const std::filesystem::path& path);

}  // namespace hw::profiler
