// SPDX-License-Identifier: MIT
// The capture in C++ (agent/native) is compiled for each build of the framework, once, on the
// user's machine: its ABI is the framework's own, which no library that we could ship would fit.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "core/base/result.h"

namespace hw::profiler {

/// Where a framework lies.
struct FrameworkFiles {
    std::string libtorch;     // libtorch_cpu.so, resolved
    std::string libc10;       // libc10.so, resolved
    std::string headers;      // the folder with ATen/
    std::string cuda;         // libc10_cuda.so; empty: the framework is not built for CUDA
    std::string cudaHeaders;  // the folder with cuda_runtime_api.h; empty: there is none
};

/// Of a process that has mapped the framework. Errors: Target, saying what is missing.
core::Result<FrameworkFiles> frameworkOf(const std::vector<std::string>& mappedFiles);
/// Of a running process. Errors: as above, and where it cannot be looked into.
core::Result<FrameworkFiles> frameworkOfProcess(pid_t pid);
/// Of what `python` would import. Errors: Target when it is no Python or has no framework.
core::Result<FrameworkFiles> frameworkOfPython(const std::string& python);

/// The library for this build of the framework, from the cache or built into it (about a minute;
/// `progress` is told). The cache: $XDG_CACHE_HOME/highwater or ~/.cache/highwater; or
/// $HIGHWATER_CAPTURES, which may be carried to machines without a compiler.
/// Errors: Target, saying why there is none; the capture through Python needs none.
core::Result<std::string> nativeCapture(const FrameworkFiles& files,
                                        const std::function<void(const std::string&)>& progress);

}  // namespace hw::profiler
