// SPDX-License-Identifier: MIT
// What this system and this user's rights allow, whichever process it is about.
#pragma once

#include <string>

#include "core/base/result.h"

namespace hw::profiler {

inline constexpr const char* kLaunchInstead = "start it with 'highwater record -- …' instead";
/// An error of the target.
core::Error refuse(const std::string& what, const std::string& hint);

/// Whether we hold the capability SYS_PTRACE.
bool mayTraceAnything();

/// Whether this system lets us attach to processes of our own user. `descends`: that we started.
/// Errors: Target, with what to do about it: ptrace_scope forbids it, or a container does.
core::Status mayAttach(bool descends);

}  // namespace hw::profiler
