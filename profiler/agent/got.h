// SPDX-License-Identifier: MIT
// Redirects calls that one loaded library makes, through its global offset table.
#pragma once

#include <span>

namespace hw::profiler::agent {

/// In every loaded library whose file name starts with `library`, makes the slots of `symbol` that
/// hold one of `from` (or are not resolved yet) hold `to`. Returns the number of slots that now do.
/// Slots that somebody else has redirected are left alone.
int patchSlots(const char* library, const char* symbol, std::span<void* const> from, void* to);

}  // namespace hw::profiler::agent
