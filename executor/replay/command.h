// SPDX-License-Identifier: MIT
#pragma once

namespace hw::executor {

/// highwater-exec SESSION [PLAN]: runs a recorded step natively, under a plan, and compares every
/// result. Returns the exit status.
int runCommand(int argc, char** argv);

}  // namespace hw::executor
