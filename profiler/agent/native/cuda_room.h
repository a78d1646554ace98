// SPDX-License-Identifier: MIT
// The framework's caching allocator for GPUs keeps to the agent's limit on live bytes, and asks for
// room where it has no memory, as that of the CPU does (profiler/agent/allocations.h).
#pragma once

#include "agent_api.h"

namespace hw::profiler::native {

/// Once CUDA is initialized, and blocks are counted. False: this framework's allocator does not do
/// so. For good; without a limit, and with nothing to make room, allocations are as before.
bool keepCudaLimit(const AgentApi& agent);

}  // namespace hw::profiler::native
