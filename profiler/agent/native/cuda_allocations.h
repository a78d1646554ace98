// SPDX-License-Identifier: MIT
// Blocks of the framework's caching allocator for GPUs, counted by the agent like those of the CPU:
// by address, with the bytes that were asked for. Frameworks from 2.1 on tell of each one.
#pragma once

#include "agent_api.h"

namespace hw::profiler::native {

/// Whom the blocks are told from now on. It outlives the program.
void tellCudaBlocks(const AgentApi* agent);
/// Of any op on a GPU, and once CUDA is initialized: sees to it that blocks are told. They are for
/// good, as the framework has no way to detach; the agent counts them while it counts anything.
void countCudaBlocks();
/// Whether they are told.
bool cudaBlocksCounted();
/// Why they are not and will not be; empty as long as that is open, and where they are.
const char* cudaBlocksMissed();

/// Whether this thread may wait for what is on the GPU: not where its work goes into a CUDA graph.
bool mayWaitForCuda();

}  // namespace hw::profiler::native
