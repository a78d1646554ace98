// SPDX-License-Identifier: MIT
// What a session's ops may do while they are replayed: compute, and nothing else. A session may
// come from anybody, and a kernel that is given indices out of range may do anything.
#pragma once

#include <string>

#include "executor/replay/step.h"

namespace hw::executor {

/// Takes from this process, for good, the rights to open files for writing, to change folders, to
/// open sockets, to start programs and to touch other processes: such calls fail with EPERM from
/// then on, in all of its threads. What is open stays open. On a GPU, whose driver opens devices as
/// it needs them, files that exist can still be written. Returns what kept that from being done;
/// empty where nothing did.
std::string enterSandbox(Device device);

/// Whether this kernel has what enterSandbox() needs.
bool sandboxAvailable();

}  // namespace hw::executor
