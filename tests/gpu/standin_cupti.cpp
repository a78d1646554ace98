// SPDX-License-Identifier: MIT
// Stands in for libcupti on machines without a GPU: answers with a refusal, or plays a device on
// which every op launches one kernel. The file that STANDIN_CUPTI names says what:
//   works (default), starves, segments, privileges, old-driver, no-driver, unsupported, fails,
//   held:NAME, lossy; enable:WHAT: a refusal that comes only when kernels are asked for
#include <cupti.h>

#include <cuda.h>

#include <unistd.h>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <mutex>
#include <string>
#include <vector>

namespace {

constexpr std::uint64_t kClockAhead = 5'000'000'000;  // of the host's steady clock, ns

std::string mode() {
    const char* file = std::getenv("STANDIN_CUPTI");
    std::string text = "works";
    if (file != nullptr) std::getline(std::ifstream(file), text);
    return text;
}

CUptiResult refusal(const std::string& what) {
    if (what == "privileges") return CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
    if (what == "old-driver") return CUPTI_ERROR_NOT_INITIALIZED;
    if (what == "no-driver") return CUPTI_ERROR_UNKNOWN;
    if (what == "unsupported") return CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED;
    if (what == "fails") return CUPTI_ERROR_OUT_OF_MEMORY;
    return CUPTI_SUCCESS;
}

std::uint64_t now() {
    return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()) +
           kClockAhead;
}

std::mutex gLock;
std::string gRecords, gMode;
CUpti_BuffersCallbackRequestFunc gRequest = nullptr;
CUpti_BuffersCallbackCompleteFunc gComplete = nullptr;
CUpti_CallbackFunc gCallback = nullptr;
void* gUserData = nullptr;
std::atomic<std::uint32_t> gCorrelation{0};
std::atomic<bool> gKernels{false};

template <class Record>
void add(const Record& record) {
    static_assert(sizeof(Record) % 8 == 0);
    gRecords.append(reinterpret_cast<const char*>(&record), sizeof(record));
}

void call(CUpti_CallbackDomain domain, CUpti_CallbackId id, void* arguments = nullptr) {
    if (gCallback == nullptr) return;
    CUresult done = CUDA_SUCCESS;
    CUpti_CallbackData data{};
    data.callbackSite = CUPTI_API_EXIT;
    data.functionParams = arguments;
    data.functionReturnValue = &done;
    gCallback(gUserData, domain, id, &data);
}

/// What an op does on this device: one launch, one copy, an allocation.
void work(std::uint64_t op) {
    const std::uint32_t id = ++gCorrelation;
    const std::uint64_t time = now();
    call(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000);
    if (gMode == "starves") return;
    const std::lock_guard<std::mutex> guard(gLock);
    CUpti_ActivityExternalCorrelation external{};
    external.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
    external.externalKind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2;
    external.externalId = op;
    external.correlationId = id;
    CUpti_ActivityAPI api{};
    api.kind = CUPTI_ACTIVITY_KIND_RUNTIME;
    api.cbid = CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000;
    api.start = time;
    api.end = time + 100;
    api.threadId = static_cast<std::uint32_t>(gettid());
    api.correlationId = id;
    add(api);
    // Every other launch has no id of ours: its thread and time tell the op.
    if (id % 2 == 0) add(external);
    CUpti_ActivityKernel10 kernel{};
    kernel.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    kernel.start = gMode == "lossy" ? 0 : time + 200;
    kernel.end = gMode == "lossy" ? 0 : time + 1200;
    kernel.streamId = 7;
    kernel.correlationId = id;
    kernel.name = "_Z6kernelPf";
    add(kernel);
    if (id % 10 == 0) {
        CUpti_ActivityMemcpy6 copy{};
        copy.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
        copy.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
        copy.bytes = 4096;
        copy.start = time + 1300;
        copy.end = time + 1400;
        copy.streamId = 7;
        copy.correlationId = id;
        add(copy);
    }
}

void allocation(std::uint64_t address, std::uint64_t bytes) {
    const std::lock_guard<std::mutex> guard(gLock);
    CUpti_ActivityMemory4 memory{};
    memory.kind = CUPTI_ACTIVITY_KIND_MEMORY2;
    memory.memoryOperationType = CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION;
    memory.memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
    memory.address = address;
    memory.bytes = bytes;
    memory.timestamp = now();
    add(memory);
}

void range(std::uint32_t id) {
    const std::lock_guard<std::mutex> guard(gLock);
    CUpti_ActivityMarker2 marker{};
    marker.kind = CUPTI_ACTIVITY_KIND_MARKER;
    marker.flags = CUPTI_ACTIVITY_FLAG_MARKER_START;
    marker.id = id;
    marker.timestamp = now();
    marker.name = "a range";
    add(marker);
    marker.flags = CUPTI_ACTIVITY_FLAG_MARKER_END;
    marker.timestamp = now() + 10;
    marker.name = nullptr;
    add(marker);
}

/// An expandable segment grows by 2 MiB and shrinks by as much.
void segment() {
    CUmemGenericAllocationHandle handle = 77;
    CUmemAllocationProp properties{};
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    struct {
        CUmemGenericAllocationHandle* handle;
        std::size_t size;
        const CUmemAllocationProp* properties;
        unsigned long long flags;
    } create{&handle, 2 << 20, &properties, 0};
    struct {
        CUdeviceptr address;
        std::size_t size, offset;
        CUmemGenericAllocationHandle handle;
        unsigned long long flags;
    } map{0x10000, 2 << 20, 0, handle, 0};
    call(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuMemCreate, &create);
    call(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuMemMap, &map);
    call(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuMemUnmap, &map);
    call(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuMemRelease, &map.handle);
}

}  // namespace

#define STANDIN extern "C" __attribute__((visibility("default"))) CUptiResult CUPTIAPI

STANDIN cuptiSubscribe_v2(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc callback,
                          void* userData, CUpti_SubscriberParams* parameters) {
    const std::string what = gMode = mode();
    if (what.rfind("held:", 0) == 0) {
        std::strncpy(parameters->oldSubscriberName, what.c_str() + 5,
                     parameters->oldSubscriberSize);
        return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    }
    if (const CUptiResult refused = refusal(mode()); refused != CUPTI_SUCCESS) return refused;
    *subscriber = reinterpret_cast<CUpti_SubscriberHandle>(&gLock);
    gCallback = callback;
    gUserData = userData;
    return CUPTI_SUCCESS;
}
STANDIN cuptiSubscribe(CUpti_SubscriberHandle*, CUpti_CallbackFunc, void*) {
    return CUPTI_ERROR_UNKNOWN;
}
STANDIN cuptiUnsubscribe(CUpti_SubscriberHandle) {
    gCallback = nullptr;
    return CUPTI_SUCCESS;
}
STANDIN cuptiEnableCallback(std::uint32_t, CUpti_SubscriberHandle, CUpti_CallbackDomain,
                            CUpti_CallbackId) {
    return CUPTI_SUCCESS;
}
STANDIN cuptiGetTimestamp(std::uint64_t* timestamp) {
    *timestamp = now();
    return CUPTI_SUCCESS;
}
STANDIN cuptiSetThreadIdType(CUpti_ActivityThreadIdType) {
    return CUPTI_SUCCESS;
}
STANDIN cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                       CUpti_BuffersCallbackCompleteFunc complete) {
    gRequest = request;
    gComplete = complete;
    return CUPTI_SUCCESS;
}
STANDIN cuptiActivityEnable(CUpti_ActivityKind kind) {
    const std::string late = "enable:";
    if (kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL && gMode.rfind(late, 0) == 0)
        return refusal(gMode.substr(late.size()));
    if (kind == CUPTI_ACTIVITY_KIND_MEMORY2) allocation(0x7000000, 20 << 20);
    if (kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
        gKernels = true;
        if (gMode == "segments") segment();
        range(++gCorrelation);
    }
    return CUPTI_SUCCESS;
}
STANDIN cuptiActivityEnableAndDump(CUpti_ActivityKind) {
    const std::lock_guard<std::mutex> guard(gLock);
    CUpti_ActivityDevice5 device{};
    device.kind = CUPTI_ACTIVITY_KIND_DEVICE;
    device.globalMemorySize = 80ull << 30;
    device.name = "Stand-in GPU";
    add(device);
    return CUPTI_SUCCESS;
}
STANDIN cuptiActivityDisable(CUpti_ActivityKind kind) {
    if (kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) gKernels = false;
    return CUPTI_SUCCESS;
}
STANDIN cuptiActivityEnableRuntimeApi(CUpti_CallbackId, std::uint8_t) {
    return CUPTI_SUCCESS;
}
STANDIN cuptiActivityEnableDriverApi(CUpti_CallbackId, std::uint8_t) {
    return CUPTI_SUCCESS;
}
STANDIN cuptiActivityGetAttribute(CUpti_ActivityAttribute attribute, std::size_t*, void* value) {
    *static_cast<std::size_t*>(value) =
        attribute == CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE ? 3'200'000 : 3;
    return CUPTI_SUCCESS;
}
STANDIN cuptiActivityFlushAll(std::uint32_t) {
    std::string records;
    {
        const std::lock_guard<std::mutex> guard(gLock);
        records.swap(gRecords);
    }
    if (gMode == "starves") return CUPTI_SUCCESS;
    for (std::size_t at = 0; at < records.size();) {
        std::uint8_t* buffer = nullptr;
        std::size_t bytes = 0, most = 0;
        gRequest(&buffer, &bytes, &most);
        if (buffer == nullptr) return CUPTI_SUCCESS;
        // Whole records only, as the real one does.
        std::size_t used = 0;
        CUpti_Activity* record = nullptr;
        const auto begin = reinterpret_cast<std::uint8_t*>(records.data()) + at;
        while (cuptiActivityGetNextRecord(begin, records.size() - at, &record) == CUPTI_SUCCESS) {
            CUpti_Activity* next = record;
            const bool more =
                cuptiActivityGetNextRecord(begin, records.size() - at, &next) == CUPTI_SUCCESS;
            const auto end =
                more ? static_cast<std::size_t>(reinterpret_cast<std::uint8_t*>(next) - begin)
                     : records.size() - at;
            if (end > bytes) break;
            used = end;
        }
        std::memcpy(buffer, begin, used);
        gComplete(nullptr, 0, buffer, bytes, used);
        at += used;
    }
    return CUPTI_SUCCESS;
}
STANDIN cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t valid,
                                   CUpti_Activity** record) {
    static const auto sizeOf = [](CUpti_ActivityKind kind) -> std::size_t {
        switch (kind) {
            case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
                return sizeof(CUpti_ActivityKernel10);
            case CUPTI_ACTIVITY_KIND_MEMCPY:
                return sizeof(CUpti_ActivityMemcpy6);
            case CUPTI_ACTIVITY_KIND_RUNTIME:
                return sizeof(CUpti_ActivityAPI);
            case CUPTI_ACTIVITY_KIND_MEMORY2:
                return sizeof(CUpti_ActivityMemory4);
            case CUPTI_ACTIVITY_KIND_DEVICE:
                return sizeof(CUpti_ActivityDevice5);
            case CUPTI_ACTIVITY_KIND_MARKER:
                return sizeof(CUpti_ActivityMarker2);
            default:
                return sizeof(CUpti_ActivityExternalCorrelation);
        }
    };
    std::uint8_t* at = *record == nullptr
                           ? buffer
                           : reinterpret_cast<std::uint8_t*>(*record) + sizeOf((*record)->kind);
    if (at >= buffer + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
    *record = reinterpret_cast<CUpti_Activity*>(at);
    return CUPTI_SUCCESS;
}
STANDIN cuptiActivityGetNumDroppedRecords(CUcontext, std::uint32_t, std::size_t* dropped) {
    *dropped = gMode == "lossy" ? 12 : 0;
    return CUPTI_SUCCESS;
}
STANDIN cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind, std::uint64_t id) {
    if (gKernels) work(id);
    return CUPTI_SUCCESS;
}
STANDIN cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind, std::uint64_t* last) {
    *last = 0;
    return CUPTI_SUCCESS;
}
STANDIN cuptiGetDeviceId(CUcontext, std::uint32_t* device) {
    *device = 0;
    return CUPTI_SUCCESS;
}
