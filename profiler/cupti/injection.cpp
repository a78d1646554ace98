// SPDX-License-Identifier: MIT
// The entries of the library: for the agent, and for the driver, which loads what
// CUDA_INJECTION64_PATH names when a program first uses CUDA.
#include <dlfcn.h>

#include "profiler/cupti/collector.h"

using namespace hw::profiler::cupti;
using hw::profiler::wire::GpuApi;
using hw::profiler::wire::GpuHost;

#define HW_EXPORT extern "C" __attribute__((visibility("default")))

HW_EXPORT const GpuApi* hw_gpu_api() {
    static const GpuApi api{
        sizeof(GpuApi),
        [](const GpuHost* host) { return Collector::instance().start(*host) ? 0 : 1; },
        [] { return Collector::instance().begin() ? 0 : 1; },
        [] { Collector::instance().end(); },
        [] { Collector::instance().flush(); },
        [] { Collector::instance().stop(); },
        [](std::int64_t op) { Collector::instance().push(op); },
        [] { Collector::instance().pop(); },
        [] { Collector::instance().abandon(); }};
    return &api;
}

/// In a process without the agent (what the training starts) nothing happens.
HW_EXPORT int InitializeInjection() {
    using Start = int (*)(int);
    const auto start = reinterpret_cast<Start>(dlsym(RTLD_DEFAULT, "hw_gpu_start"));
    if (start != nullptr) start(0);
    return 1;
}
