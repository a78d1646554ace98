// SPDX-License-Identifier: MIT
// The capture in C++ (agent/native), compiled for the framework at hand.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

#include "core/base/result.h"
#include "profiler/framework/build.h"

namespace hw::profiler {

/// The framework of a running process. Errors: as frameworkOf(), and where the process cannot be
/// looked into.
core::Result<FrameworkFiles> frameworkOfProcess(pid_t pid);

/// What the capture is compiled from and how.
Unit captureUnit(const FrameworkFiles& files);

/// The library for this build of the framework, which the user trains with (used_torches.h).
/// Errors: those of built(); the capture through Python needs none.
core::Result<std::string> nativeCapture(const FrameworkFiles& files,
                                        const std::function<void(const std::string&)>& progress);

}  // namespace hw::profiler
