// SPDX-License-Identifier: GPL-3.0-or-later
// What `info` says of a trace that holds no step, and of a device's work and gaps in any session.
#pragma once

#include <string>

#include "app/cli.h"

namespace hw::app {

/// What was not recorded, and why.
Json gapList(const core::Session& session);
void printGaps(const core::Session& session);

/// What was recorded of a GPU; null where nothing was.
Json gpuFigures(const core::Session& session);
void printGpu(const Json& gpu);

/// Prints what a trace without a step recorded: the memory of every device, and of `device` (empty:
/// the one with the highest peak) more. Returns the exit code.
int printRecorded(const core::Session& session, const core::SessionCounts& counts,
                  const std::string& file, const std::string& device, const Common& common);

}  // namespace hw::app
