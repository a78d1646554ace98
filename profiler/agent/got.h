// SPDX-License-Identifier: MIT
// Redirects what a loaded library calls or reads of others, through its global offset table.
#pragma once

#include <span>

namespace hw::profiler::agent {

/// Loaded libraries whose file names start so, or all others.
struct Libraries {
    const char* prefix;
    bool others = false;
};

/// In each of the libraries makes the slots of `symbol` that hold one of `from` (or are not
/// resolved yet) hold `to`. Returns the number of slots that now do. Slots that somebody else has
/// redirected are left alone.
int patchSlots(Libraries libraries, const char* symbol, std::span<void* const> from, void* to);

}  // namespace hw::profiler::agent
