// SPDX-License-Identifier: GPL-3.0-or-later
// The window as a program of its own, highwater-window, beside one that needs no Qt: in wheels.
#pragma once

#include <string>

#include "core/base/result.h"

namespace hw::app {

/// Its path. Errors: Usage where it was not built, Target where it cannot be loaded, with what is
/// missing and how to get it.
core::Result<std::string> windowApart();

/// Goes on as that program where the command is one of its own; returns where it is not, or where
/// there is no such program.
void becomeWindow(int argc, char** argv);

}  // namespace hw::app
