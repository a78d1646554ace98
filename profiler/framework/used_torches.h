// SPDX-License-Identifier: MIT
// Builds of torch that this user has trained with under Highwater. A session may come from anybody
// and name any folder: what it names is loaded only where the user has run it before.
#pragma once

#include <string>

namespace hw::profiler {

/// `libtorch`: a resolved libtorch_cpu.so of a process of the user's. Kept in
/// $XDG_STATE_HOME/highwater/torches (~/.local/state); where that cannot be written, for nothing.
void rememberTorch(const std::string& libtorch);

/// Whether the package of torch in that folder is one of these.
bool isUsedTorch(const std::string& package);

}  // namespace hw::profiler
