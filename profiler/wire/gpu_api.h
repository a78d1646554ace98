// SPDX-License-Identifier: MIT
// Between the agent and the CUPTI library that it loads: two tables of functions.
#pragma once

#include <cstdint>

namespace hw::profiler::wire {

/// What the library calls of the agent.
struct GpuHost {
    std::uint64_t size;  // of this structure: an agent of another build is not used
    /// One frame; 0 queued, 1 no room (never with `wait`), -1 the recorder is gone.
    int (*send)(int type, const void* data, std::int64_t bytes, int wait);
    std::int64_t (*now)();  // the clock of the ops, ns
    /// Runs `body` on a thread that takes no signals; 0 when it cannot be started.
    int (*startThread)(void* (*body)(void*));
};

/// What the agent calls of the library. None of it raises; all of it may be called in any order.
struct GpuApi {
    std::uint64_t size;
    /// 0: CUPTI takes part, 1: it refuses, which the recorder has been told.
    int (*start)(const GpuHost* host);
    int (*begin)();                 // kernels, copies and calls from here on; as start()
    void (*end)();                  // … until here
    void (*flush)();                // asks for what is complete; does not wait
    void (*stop)();                 // gives everything back to CUPTI, waiting for what is under way
    void (*push)(std::int64_t op);  // the calling thread works on the op …
    void (*pop)();                  // … until here
    void (*abandon)();              // in a forked child
};

/// The name under which the library exports `const GpuApi* ()`.
inline constexpr char kGpuEntry[] = "hw_gpu_api";

}  // namespace hw::profiler::wire
