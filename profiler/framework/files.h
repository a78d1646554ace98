// SPDX-License-Identifier: MIT
// Where a framework lies, which version it is, and what is there to compile against.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"

namespace hw::profiler {

/// Where a framework lies.
struct FrameworkFiles {
    std::string libtorch;     // libtorch_cpu.so, resolved
    std::string libc10;       // libc10.so, resolved
    std::string headers;      // the folder with ATen/
    std::string version;      // "2.11.0+cu130" of a Python package; empty: it is in none
    std::string cuda;         // libc10_cuda.so; empty: the framework is not built for CUDA
    std::string cudaHeaders;  // the folder with cuda_runtime_api.h; empty: there is none

    /// Its functions take strings of the current C++ ABI.
    bool hasNewAbi() const;
    /// "-std=c++17", or the newer standard that its headers ask for.
    std::string standard() const;
};

/// Of a process that has mapped the framework. Errors: Target, saying what is missing.
core::Result<FrameworkFiles> frameworkOf(const std::vector<std::string>& mappedFiles);
/// Of the folder of the Python package `torch`. Errors: as above.
core::Result<FrameworkFiles> frameworkIn(const std::string& package);
/// Of what `python` would import. Errors: Target when it is no Python or has no framework.
core::Result<FrameworkFiles> frameworkOfPython(const std::string& python);

/// The folder of the package `torch` that `python` would import. Errors: as frameworkOfPython().
core::Result<std::string> packageOfPython(const std::string& python);
/// "2.11.0+cu130", of the package in that folder; empty where there is none.
std::string versionOfPackage(const std::string& package);
/// "2.11" of "2.11.0+cu130".
std::string release(const std::string& version);

}  // namespace hw::profiler
