// SPDX-License-Identifier: GPL-3.0-or-later
// `highwater info --by`: which lines, files, functions or layers made the memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "app/cli.h"

namespace hw::app {

/// The choices of --by.
extern const std::vector<std::string> kOriginKeys;

/// The exit code. `step`: of a session with steps; none: the last complete one.
int printOrigins(const std::string& file, const std::string& by, std::optional<std::int64_t> step,
                 std::optional<core::CostSet> costs, const std::string& device,
                 const Common& common);

}  // namespace hw::app
