// SPDX-License-Identifier: MIT
#include "profiler/attach/native_capture.h"

#include "profiler/agent/embedded.h"
#include "profiler/attach/process.h"
#include "profiler/framework/used_torches.h"

namespace hw::profiler {

core::Result<FrameworkFiles> frameworkOfProcess(pid_t pid) {
    const auto mapped = mappedFiles(pid);
    if (!mapped) return mapped.error();
    std::vector<std::string> paths;
    for (const MappedFile& file : *mapped) paths.push_back(file.path);
    return frameworkOf(paths);
}

Unit captureUnit(const FrameworkFiles& files) {
    Unit unit;
    unit.what = "the native capture";
    unit.suffix = ".so";
    unit.travels = true;
    for (const EmbeddedFile* source = kNativeFiles; source->name != nullptr; ++source)
        unit.sources.push_back({source->name, source->text});
    unit.flags = {"-O2", "-fPIC", "-shared", "-fvisibility=hidden"};
    // Without CUDA's headers, only what the GPU allocates goes unseen.
    if (!files.cuda.empty() && !files.cudaHeaders.empty())
        unit.cudaFlags = {"-DHIGHWATER_CUDA", "-I" + files.cudaHeaders, files.cuda};
    return unit;
}

core::Result<std::string> nativeCapture(const FrameworkFiles& files,
                                        const std::function<void(const std::string&)>& progress) {
    rememberTorch(files.libtorch);
    return built(captureUnit(files), files, progress);
}

}  // namespace hw::profiler
