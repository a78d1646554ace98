// SPDX-License-Identifier: MIT
// The part of Collector that sees expandable segments.
#include <cuda.h>

#include "profiler/cupti/collector.h"
#include "profiler/cupti/payload.h"

namespace hw::profiler::cupti {
namespace {

// Arguments of the driver's calls, as CUPTI hands them over (generated_cuda_meta.h, which needs
// headers that the toolkit does not always bring).
struct CreateArguments {
    CUmemGenericAllocationHandle* handle;
    std::size_t size;
    const CUmemAllocationProp* properties;
    unsigned long long flags;
};
struct ReleaseArguments {
    CUmemGenericAllocationHandle handle;
};
struct MapArguments {
    CUdeviceptr address;
    std::size_t size, offset;
    CUmemGenericAllocationHandle handle;
    unsigned long long flags;
};
struct UnmapArguments {
    CUdeviceptr address;
    std::size_t size;
};

}  // namespace

/// Expandable segments: the memory records of older CUPTIs leave these calls out.
void Collector::memoryCall(CUpti_CallbackId id, const CUpti_CallbackData& call) {
    wire::Activity activity;
    activity.kind = static_cast<std::uint8_t>(wire::ActivityKind::Memory);
    activity.flags = wire::kActivityHostClock;
    activity.correlation = call.correlationId;
    activity.begin = activity.end = host_.now();
    activity.extra = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
    if (call.context == nullptr ||
        cupti_->deviceOf(call.context, &activity.device) != CUPTI_SUCCESS)
        activity.device = 0;
    const auto is = [&](wire::MemoryDetail detail, std::uint64_t address, std::size_t bytes) {
        activity.detail = static_cast<std::uint8_t>(detail);
        activity.address = static_cast<std::int64_t>(address);
        activity.value = static_cast<std::int64_t>(bytes);
    };
    switch (id) {
        case CUPTI_DRIVER_TRACE_CBID_cuMemCreate: {
            const auto& to = *static_cast<const CreateArguments*>(call.functionParams);
            if (to.properties != nullptr &&
                to.properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE)
                activity.device = static_cast<std::uint32_t>(to.properties->location.id);
            is(wire::MemoryDetail::Create, to.handle == nullptr ? 0 : *to.handle, to.size);
            break;
        }
        case CUPTI_DRIVER_TRACE_CBID_cuMemRelease:
            is(wire::MemoryDetail::Destroy,
               static_cast<const ReleaseArguments*>(call.functionParams)->handle, 0);
            break;
        case CUPTI_DRIVER_TRACE_CBID_cuMemMap: {
            const auto& to = *static_cast<const MapArguments*>(call.functionParams);
            is(wire::MemoryDetail::Map, to.address, to.size);
            break;
        }
        case CUPTI_DRIVER_TRACE_CBID_cuMemUnmap: {
            const auto& to = *static_cast<const UnmapArguments*>(call.functionParams);
            is(wire::MemoryDetail::Unmap, to.address, to.size);
            break;
        }
        default:
            return;
    }
    send(wire::Type::Activities, Payload().put<std::uint32_t>(1).put(activity), false);
}

}  // namespace hw::profiler::cupti
