// SPDX-License-Identifier: MIT
// Comma-separated values, as RFC 4180 quotes them.
#pragma once

#include <string>
#include <string_view>

namespace hw::core {

/// Appends `field`; between quotes, which are doubled inside, where it has a comma, a quote or a
/// line break.
void appendCsv(std::string& line, std::string_view field);

}  // namespace hw::core
