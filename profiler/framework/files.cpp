// SPDX-License-Identifier: MIT
#include "profiler/framework/files.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

#include "core/base/file.h"
#include "profiler/framework/command.h"

namespace hw::profiler {
namespace {

namespace fs = std::filesystem;

const char kProbe[] =
    "import importlib.util as u; s = u.find_spec('torch'); "
    "print(s.submodule_search_locations[0] if s else '')";

core::Error noFramework(const std::string& why) {
    return {core::ErrorCode::Target, why, ""};
}

/// Of a program that is named by a path; others are looked for in PATH.
std::string absolute(const std::string& program) {
    return fs::path(program).has_parent_path() ? fs::absolute(program).string() : program;
}

std::string resolved(const fs::path& path) {
    std::error_code error;
    const fs::path real = fs::canonical(path, error);
    return error ? std::string() : real.string();
}

/// The folder with the headers of CUDA's runtime: of a package beside the framework's, or of a
/// toolkit; empty where there is none. Packages of some versions hold them in part only.
std::string cudaHeaders(const fs::path& packages) {
    std::vector<fs::path> folders;
    const auto eachIn = [&](const fs::path& parent, const std::string& begin,
                            const std::string& below) {
        std::error_code error;
        std::vector<fs::path> found;
        for (const auto& entry : fs::directory_iterator(parent, error))
            if (entry.path().filename().string().starts_with(begin))
                found.push_back(entry.path() / below);
        std::sort(found.rbegin(), found.rend());
        folders.insert(folders.end(), found.begin(), found.end());
    };
    eachIn(packages / "nvidia", "cu", "include");
    folders.emplace_back("/usr/local/cuda/include");
    eachIn("/usr/local", "cuda-", "include");
    folders.push_back(packages / "triton/backends/nvidia/include");  // comes with the framework
    for (const fs::path& folder : folders)
        if (fs::exists(folder / "cuda_runtime_api.h") && fs::exists(folder / "crt/host_defines.h"))
            return folder.string();
    return "";
}

void findCuda(FrameworkFiles& files) {
    const fs::path libraries = fs::path(files.libtorch).parent_path();
    files.cuda = resolved(libraries / "libc10_cuda.so");
    if (!files.cuda.empty()) files.cudaHeaders = cudaHeaders(libraries.parent_path().parent_path());
}

/// Headers of a library: beside it as in a wheel, or in the system's folder of headers.
core::Result<FrameworkFiles> withHeaders(FrameworkFiles files) {
    if (files.libtorch.empty() || files.libc10.empty())
        return noFramework("its libraries were not found");
    for (const fs::path& folder : {fs::path(files.libtorch).parent_path().parent_path() / "include",
                                   fs::path("/usr/include")})
        if (fs::exists(folder / "ATen/record_function.h")) {
            files.headers = folder.string();
            files.version =
                versionOfPackage(fs::path(files.libtorch).parent_path().parent_path().string());
            findCuda(files);
            return files;
        }
    return noFramework("the framework's headers are not installed");
}

}  // namespace

// By the framework's own names: PyPI's libraries with the older ABI hold parts of the standard
// library, which has both.
bool FrameworkFiles::hasNewAbi() const {
    constexpr std::string_view kNewString = "__cxx1112basic_string";
    const std::string content = contentsOf(libc10);
    for (auto at = content.find(kNewString); at != std::string::npos;
         at = content.find(kNewString, at + 1)) {
        const auto begin = content.rfind('\0', at) + 1;  // 0 where there is none
        const auto name = std::string_view(content).substr(begin, at - begin);
        if (name.starts_with("_ZN3c10") || name.starts_with("_ZNK3c10")) return true;
    }
    return false;
}

// torch 2.12 and later refuse an older one.
std::string FrameworkFiles::standard() const {
    const bool newer =
        contentsOf(headers + "/ATen/ATen.h").find("C++20 or later") != std::string::npos;
    return newer ? "-std=c++20" : "-std=c++17";
}

core::Result<FrameworkFiles> frameworkOf(const std::vector<std::string>& mappedFiles) {
    FrameworkFiles files;
    for (const std::string& path : mappedFiles) {
        const std::string name = fs::path(path).filename().string();
        if (name.starts_with("libtorch_cpu.so")) files.libtorch = resolved(path);
        if (name.starts_with("libc10.so")) files.libc10 = resolved(path);
    }
    return withHeaders(files);
}

core::Result<FrameworkFiles> frameworkIn(const std::string& package) {
    FrameworkFiles files;
    files.libtorch = resolved(fs::path(package) / "lib/libtorch_cpu.so");
    files.libc10 = resolved(fs::path(package) / "lib/libc10.so");
    return withHeaders(files);
}

core::Result<std::string> packageOfPython(const std::string& python) {
    if (!fs::path(python).filename().string().starts_with("python"))
        return noFramework("'" + python + "' is not a Python interpreter");
    const core::ScratchFolder scratch;
    const fs::path output = scratch.path() / "output";
    if (runInto({absolute(python), "-c", kProbe}, output, "/") != Ran::Well)
        return noFramework("'" + python + "' could not be asked");
    std::istringstream lines(contentsOf(output));
    std::string package;
    std::getline(lines, package);
    if (package.empty()) return noFramework("'" + python + "' has no torch");
    return package;
}

core::Result<FrameworkFiles> frameworkOfPython(const std::string& python) {
    const auto package = packageOfPython(python);
    if (!package) return package.error();
    return frameworkIn(*package);
}

std::string versionOfPackage(const std::string& package) {
    std::ifstream file(fs::path(package) / "version.py");
    for (std::string line; std::getline(file, line);) {
        if (!line.starts_with("__version__")) continue;
        const auto begin = line.find_first_of("'\"");
        const auto end = line.find_last_of("'\"");
        if (begin < end && end != std::string::npos) return line.substr(begin + 1, end - begin - 1);
    }
    return "";
}

std::string release(const std::string& version) {
    return version.substr(0, version.find('.', version.find('.') + 1));
}

}  // namespace hw::profiler
