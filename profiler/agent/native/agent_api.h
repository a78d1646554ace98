// SPDX-License-Identifier: MIT
// What the native capture calls of the agent that loaded it; filled in agent/exports.cpp.
#pragma once

#include <cstdint>

namespace hw::profiler::native {

struct AgentApi {
    std::uint64_t size;  // of this structure: an agent of another build is not called
    int (*sendFrames)(const void* data, std::int64_t bytes);  // whole frames; 0 queued, -1 broken
    std::int64_t (*block)(std::uint64_t address);    // bytes of a counted block, -1: not counted
    int (*watch)(std::uint64_t address);             // 1: its release will be among the freed ones
    std::int64_t (*freed)(std::int64_t* addresses);  // -1: some were lost
    void (*begin)(std::int64_t* figures);            // see hw_begin
    void (*end)(std::int64_t* figures);              // see hw_end
    void (*pause)(int paused);
};

}  // namespace hw::profiler::native
