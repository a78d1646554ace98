// SPDX-License-Identifier: MIT
#include "profiler/agent/gpu.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include <atomic>

#include "profiler/agent/channel.h"
#include "profiler/agent/clock.h"
#include "profiler/wire/gpu_api.h"

namespace hw::profiler::agent {
namespace {

using wire::GpuApi;
using wire::GpuHost;

constexpr char kCuptiLibrary[] = "libhighwater_cupti.so";

std::atomic<const GpuApi*> gApi{nullptr};
std::atomic<bool> gCollecting{false};
std::atomic<bool> gRefused{false};  // in this recording: it is said once
thread_local bool tInOp __attribute__((tls_model("initial-exec"))) = false;

int sendFromLibrary(int type, const void* data, std::int64_t bytes, int wait) {
    return static_cast<int>(sendFrame(static_cast<wire::Type>(type), data,
                                      static_cast<std::size_t>(bytes), nullptr, 0, wait != 0));
}

int startThread(void* (*body)(void*)) {
    return startDetachedThread(body) ? 1 : 0;
}

/// Beside the agent.
const GpuApi* load() {
    Dl_info self{};
    if (dladdr(reinterpret_cast<void*>(&load), &self) == 0) return nullptr;
    const char* slash = strrchr(self.dli_fname, '/');
    const int folder = slash == nullptr ? 0 : static_cast<int>(slash - self.dli_fname + 1);
    static char path[wire::kPathBytes];
    if (snprintf(path, sizeof(path), "%.*s%s", folder, self.dli_fname, kCuptiLibrary) >=
        static_cast<int>(sizeof(path)))
        return nullptr;
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return nullptr;
    using Entry = const GpuApi* (*)();
    const auto entry = reinterpret_cast<Entry>(dlsym(library, wire::kGpuEntry));
    const GpuApi* api = entry == nullptr ? nullptr : entry();
    return api != nullptr && api->size == sizeof(GpuApi) ? api : nullptr;
}

/// The driver's library, which the CUDA runtime loads at its first call.
bool usesGpu() {
    void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (driver != nullptr) dlclose(driver);
    return driver != nullptr;
}

void refuse(const char* what, const char* hint) {
    struct {
        std::uint32_t code = 0;
        std::uint32_t length = 0;
    } head;
    char tail[512];
    head.length = static_cast<std::uint32_t>(strlen(what));
    const auto hintLength = static_cast<std::uint32_t>(strlen(hint));
    memcpy(tail, what, head.length);
    memcpy(tail + head.length, &hintLength, sizeof(hintLength));
    memcpy(tail + head.length + sizeof(hintLength), hint, hintLength);
    sendFrame(wire::Type::Refusal, &head, sizeof(head), tail,
              head.length + sizeof(hintLength) + hintLength, false);
}

}  // namespace

int startGpu(bool required) {
    gRefused.store(false);
    if (channelBroken() || (!required && !usesGpu())) return 2;
    if (gApi.load() == nullptr) gApi.store(load());
    const GpuApi* api = gApi.load();
    if (api == nullptr) {
        refuse("this build of Highwater has no CUPTI library",
               "build it where the CUDA toolkit's headers are installed");
        gRefused.store(true);
        return 1;
    }
    static const GpuHost host{sizeof(GpuHost), &sendFromLibrary, &now, &startThread};
    const int started = api->start(&host);
    gRefused.store(started != 0);
    return started;
}

int beginGpu(bool required) {
    if (gRefused.load()) return 1;
    const int started = startGpu(required);
    if (started != 0) return started;
    const int begun = gApi.load()->begin();
    gCollecting.store(begun == 0);
    gRefused.store(begun != 0);
    return begun;
}

void endGpu() {
    gCollecting.store(false);
    if (const GpuApi* api = gApi.load()) api->end();
}

void flushGpu() {
    if (const GpuApi* api = gApi.load()) api->flush();
}

void stopGpu() {
    gCollecting.store(false);
    if (const GpuApi* api = gApi.load()) api->stop();
}

void enterOp(std::int64_t beginNs) {
    if (!gCollecting.load(std::memory_order_relaxed)) return;
    leaveOp();  // an op that failed has not left
    tInOp = true;
    gApi.load(std::memory_order_relaxed)->push(beginNs);
}

void leaveOp() {
    if (!tInOp) return;
    tInOp = false;
    gApi.load(std::memory_order_relaxed)->pop();
}

void abandonGpu() {
    gCollecting.store(false);
    if (const GpuApi* api = gApi.exchange(nullptr)) api->abandon();  // its locks may be held
}

}  // namespace hw::profiler::agent
