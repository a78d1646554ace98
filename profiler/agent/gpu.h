// SPDX-License-Identifier: MIT
// Loads the CUPTI library (profiler/cupti), where the process uses a GPU, and leads it.
#pragma once

#include <cstdint>

namespace hw::profiler::agent {

/// 0: it takes part, 1: it refuses or is not installed, which the recorder has been told, 2: there
/// is no GPU in use. With `required`, whether or not a GPU is in use.
int startGpu(bool required);
/// Kernels, copies and calls from here on; startGpu() where it has not been.
int beginGpu(bool required);
void endGpu();
void flushGpu();
/// Waits for what is under way.
void stopGpu();
/// The calling thread works on the op that began then, until leaveOp().
void enterOp(std::int64_t beginNs);
void leaveOp();
/// In a forked child.
void abandonGpu();

}  // namespace hw::profiler::agent
