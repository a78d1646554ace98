// SPDX-License-Identifier: MIT
#include "profiler/cupti/library.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>
#include <cstring>
#include <vector>

namespace hw::profiler::cupti {
namespace {

constexpr const char* kNames[] = {"libcupti.so.13", "libcupti.so.12"};

/// Folders where a CUPTI may lie, from where the CUDA runtime of the process does.
int visit(dl_phdr_info* info, std::size_t, void* data) {
    const char* slash = std::strrchr(info->dlpi_name, '/');
    if (slash == nullptr || std::strncmp(slash + 1, "libcudart", 9) != 0) return 0;
    const std::string folder(info->dlpi_name, static_cast<std::size_t>(slash - info->dlpi_name));
    auto& folders = *static_cast<std::vector<std::string>*>(data);
    folders.push_back(folder);
    folders.push_back(folder + "/../../cuda_cupti/lib");
    folders.push_back(folder + "/../extras/CUPTI/lib64");
    return 0;
}

void* open(std::string& looked) {
    if (const char* given = std::getenv("HIGHWATER_CUPTI"); given != nullptr && *given != '\0') {
        looked = given;
        return dlopen(given, RTLD_NOW | RTLD_LOCAL);
    }
    looked = "libcupti.so.13 and libcupti.so.12";
    for (const char* name : kNames)
        if (void* library = dlopen(name, RTLD_NOW | RTLD_NOLOAD)) return library;
    for (const char* name : kNames)
        if (void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
    std::vector<std::string> folders;
    dl_iterate_phdr(&visit, &folders);
    folders.insert(folders.end(), {"/usr/local/cuda/extras/CUPTI/lib64", "/usr/local/cuda/lib64"});
    for (const std::string& folder : folders)
        for (const char* name : kNames)
            if (void* library = dlopen((folder + "/" + name).c_str(), RTLD_NOW | RTLD_LOCAL))
                return library;
    return nullptr;
}

template <class Function>
bool find(void* library, Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    return function != nullptr;
}

bool findAll(void* from, Library& to) {
    find(from, to.subscribeNamed, "cuptiSubscribe_v2");
    find(from, to.enableAndDump, "cuptiActivityEnableAndDump");
    find(from, to.enableRuntime, "cuptiActivityEnableRuntimeApi");
    find(from, to.enableDriver, "cuptiActivityEnableDriverApi");
    return find(from, to.subscribe, "cuptiSubscribe") &&
           find(from, to.unsubscribe, "cuptiUnsubscribe") &&
           find(from, to.enableCallback, "cuptiEnableCallback") &&
           find(from, to.timestamp, "cuptiGetTimestamp") &&
           find(from, to.setThreadIdType, "cuptiSetThreadIdType") &&
           find(from, to.registerCallbacks, "cuptiActivityRegisterCallbacks") &&
           find(from, to.enable, "cuptiActivityEnable") &&
           find(from, to.disable, "cuptiActivityDisable") &&
           find(from, to.attribute, "cuptiActivityGetAttribute") &&
           find(from, to.flushAll, "cuptiActivityFlushAll") &&
           find(from, to.nextRecord, "cuptiActivityGetNextRecord") &&
           find(from, to.dropped, "cuptiActivityGetNumDroppedRecords") &&
           find(from, to.push, "cuptiActivityPushExternalCorrelationId") &&
           find(from, to.pop, "cuptiActivityPopExternalCorrelationId") &&
           find(from, to.deviceOf, "cuptiGetDeviceId");
}

}  // namespace

const Library* loadLibrary(Refusal& why) {
    static Library library{};
    static bool loaded = false;
    if (loaded) return &library;
    // Some CUPTIs end the process where there is no driver (13.2 recurses for ever): they are not
    // asked.
    if (const char* given = std::getenv("HIGHWATER_CUPTI");
        (given == nullptr || *given == '\0') && !hasDriver()) {
        why = noDriver();
        return nullptr;
    }
    std::string looked;
    void* handle = open(looked);
    loaded = handle != nullptr && findAll(handle, library);
    if (!loaded) why = noLibrary(looked);
    return loaded ? &library : nullptr;
}

bool hasDriver() {
    void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (driver != nullptr) dlclose(driver);
    return driver != nullptr;
}

}  // namespace hw::profiler::cupti
