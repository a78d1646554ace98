// SPDX-License-Identifier: MIT
#include "profiler/cupti/collector.h"

#include <cuda.h>
#include <time.h>

#include <algorithm>

#include "profiler/cupti/payload.h"

namespace hw::profiler::cupti {
namespace {

constexpr int kDrainMilliseconds = 2000;
constexpr timespec kPause{0, 5000000};

constexpr CUpti_ActivityKind kCapturedKinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                                 CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
                                                 CUPTI_ACTIVITY_KIND_MEMCPY,
                                                 CUPTI_ACTIVITY_KIND_MEMCPY2,
                                                 CUPTI_ACTIVITY_KIND_MEMSET,
                                                 CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
                                                 CUPTI_ACTIVITY_KIND_MARKER,
                                                 CUPTI_ACTIVITY_KIND_OVERHEAD};
constexpr CUpti_ActivityKind kMemoryKinds[] = {CUPTI_ACTIVITY_KIND_MEMORY2,
                                               CUPTI_ACTIVITY_KIND_MEMORY_POOL};

constexpr CUpti_CallbackId kRuntimeLaunches[] = {
    CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000,
    CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_v11060,
    CUPTI_RUNTIME_TRACE_CBID_cudaLaunchCooperativeKernel_v9000,
    CUPTI_RUNTIME_TRACE_CBID___cudaLaunchKernel_v13000};
constexpr CUpti_CallbackId kDriverLaunches[] = {CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,
                                                CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx};
constexpr CUpti_CallbackId kSegmentCalls[] = {
    CUPTI_DRIVER_TRACE_CBID_cuMemCreate, CUPTI_DRIVER_TRACE_CBID_cuMemRelease,
    CUPTI_DRIVER_TRACE_CBID_cuMemMap, CUPTI_DRIVER_TRACE_CBID_cuMemUnmap};
// What launches, copies, allocates or waits; the many other calls say nothing about memory.
constexpr CUpti_CallbackId kRuntimeCalls[] = {CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000,
                                              CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy_v3020,
                                              CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020,
                                              CUPTI_RUNTIME_TRACE_CBID_cudaMemset_v3020,
                                              CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_v3020,
                                              CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020,
                                              CUPTI_RUNTIME_TRACE_CBID_cudaFree_v3020,
                                              CUPTI_RUNTIME_TRACE_CBID_cudaHostAlloc_v3020,
                                              CUPTI_RUNTIME_TRACE_CBID_cudaFreeHost_v3020,
                                              CUPTI_RUNTIME_TRACE_CBID_cudaMallocAsync_v11020,
                                              CUPTI_RUNTIME_TRACE_CBID_cudaFreeAsync_v11020,
                                              CUPTI_RUNTIME_TRACE_CBID_cudaStreamSynchronize_v3020,
                                              CUPTI_RUNTIME_TRACE_CBID_cudaDeviceSynchronize_v3020};
constexpr CUpti_CallbackId kDriverCalls[] = {
    CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch, CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2, CUPTI_DRIVER_TRACE_CBID_cuMemAllocAsync,
    CUPTI_DRIVER_TRACE_CBID_cuMemFreeAsync};

}  // namespace

Collector& Collector::instance() {
    static Collector* collector = new Collector;
    return *collector;
}

void Collector::send(wire::Type type, const std::string& payload, bool wait) {
    host_.send(static_cast<int>(type), payload.data(), static_cast<std::int64_t>(payload.size()),
               wait ? 1 : 0);
}

void Collector::gap(const std::string& what, const std::string& why) {
    send(wire::Type::Gap, Payload().put<std::int64_t>(0).put<std::int64_t>(0).text(what).text(why));
}

bool Collector::refuse(const Refusal& refusal) {
    send(wire::Type::Refusal, Payload()
                                  .put(static_cast<std::uint32_t>(refusal.code))
                                  .text(refusal.what)
                                  .text(refusal.hint));
    return false;
}

bool Collector::subscribe() {
    char holder[CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN * 2] = "";
    CUptiResult status;
    const char* call = "cuptiSubscribe";
    if (cupti_->subscribeNamed != nullptr) {
        CUpti_SubscriberParams parameters{};
        parameters.structSize = CUpti_SubscriberParams_STRUCT_SIZE;
        parameters.subscriberName = "Highwater";
        parameters.oldSubscriberName = holder;
        parameters.oldSubscriberSize = sizeof(holder) - 1;
        call = "cuptiSubscribe_v2";
        status = cupti_->subscribeNamed(&subscriber_, &called, this, &parameters);
    } else {
        status = cupti_->subscribe(&subscriber_, &called, this);
    }
    return status == CUPTI_SUCCESS || refuse(refusalOf(status, call, holder, hasDriver()));
}

bool Collector::enable(CUpti_ActivityKind kind, bool needed) {
    const CUptiResult status = cupti_->enable(kind);
    if (status == CUPTI_SUCCESS) return true;
    if (needed) return refuse(refusalOf(status, "cuptiActivityEnable", "", hasDriver()));
    gap("GPU records of kind " + std::to_string(kind),
        "this CUPTI does not enable them: error " + std::to_string(status));
    return false;
}

void Collector::watch(CUpti_CallbackDomain domain, CUpti_CallbackId id, bool on) {
    cupti_->enableCallback(on ? 1 : 0, subscriber_, domain, id);
}

bool Collector::start(const wire::GpuHost& host) {
    const std::lock_guard<std::mutex> guard(control_);
    if (state_.load() != State::Off) return true;
    host_ = host;
    Refusal why;
    cupti_ = loadLibrary(why);
    if (cupti_ == nullptr) return refuse(why);
    if (!subscribe()) return false;
    cupti_->setThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
    const CUptiResult registered = cupti_->registerCallbacks(&requested, &completed);
    if (registered != CUPTI_SUCCESS) {
        cupti_->unsubscribe(subscriber_);
        return refuse(refusalOf(registered, "cuptiActivityRegisterCallbacks", "", hasDriver()));
    }
    if (parser_ == nullptr) parser_ = new Parser(cupti_->nextRecord);
    refusedBefore_ = buffers_.refused();
    launchesOfRuntime_ = launchesOfDriver_ = 0;
    ++readers_;
    if (host_.startThread([](void*) -> void* {
            instance().read();
            return nullptr;
        }) == 0) {
        cupti_->unsubscribe(subscriber_);
        return refuse({0, "no thread could be started to read CUPTI's records", ""});
    }
    for (const CUpti_ActivityKind kind : kMemoryKinds) enable(kind, false);
    if (cupti_->enableAndDump != nullptr) cupti_->enableAndDump(CUPTI_ACTIVITY_KIND_DEVICE);
    for (const CUpti_CallbackId id : kSegmentCalls) watch(CUPTI_CB_DOMAIN_DRIVER_API, id, true);
    state_ = State::Ready;
    sendClock();
    return true;
}

/// All of them, and then none but ours: once CUDA is in use, CUPTI 13 records no call that is
/// enabled by itself, and so nothing that leads from a kernel to its op.
void Collector::enableCalls(bool on) {
    for (const CUpti_ActivityKind kind : {CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_DRIVER})
        on ? cupti_->enable(kind) : cupti_->disable(kind);
    if (!on) return;
    const auto leave = [](auto function, int count, const auto& launches, const auto& calls) {
        const auto among = [](CUpti_CallbackId id, const auto& ids) {
            return std::find(std::begin(ids), std::end(ids), id) != std::end(ids);
        };
        for (CUpti_CallbackId id = 1; function != nullptr && id < CUpti_CallbackId(count); ++id)
            if (!among(id, launches) && !among(id, calls)) function(id, 0);
    };
    leave(cupti_->enableRuntime, CUPTI_RUNTIME_TRACE_CBID_SIZE, kRuntimeLaunches, kRuntimeCalls);
    leave(cupti_->enableDriver, CUPTI_DRIVER_TRACE_CBID_SIZE, kDriverLaunches, kDriverCalls);
}

bool Collector::begin() {
    const std::lock_guard<std::mutex> guard(control_);
    if (state_.load() != State::Ready) return state_.load() == State::Collecting;
    for (const CUpti_ActivityKind kind : kCapturedKinds) {
        const bool needed = kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
        if (!enable(kind, needed) && needed) return false;
    }
    enableCalls(true);
    for (const CUpti_CallbackId id : kRuntimeLaunches) watch(CUPTI_CB_DOMAIN_RUNTIME_API, id, true);
    for (const CUpti_CallbackId id : kDriverLaunches) watch(CUPTI_CB_DOMAIN_DRIVER_API, id, true);
    std::size_t size = sizeof(std::size_t), one = 0, count = 0;
    if (cupti_->attribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, &size, &one) == CUPTI_SUCCESS &&
        cupti_->attribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_PRE_ALLOCATE_VALUE, &size, &count) ==
            CUPTI_SUCCESS)
        deviceBytes_ = static_cast<std::int64_t>(one * count);
    sendClock();
    state_ = State::Collecting;
    return true;
}

void Collector::end() {
    const std::lock_guard<std::mutex> guard(control_);
    if (state_.load() != State::Collecting) return;
    state_ = State::Ready;
    for (const CUpti_CallbackId id : kRuntimeLaunches)
        watch(CUPTI_CB_DOMAIN_RUNTIME_API, id, false);
    for (const CUpti_CallbackId id : kDriverLaunches) watch(CUPTI_CB_DOMAIN_DRIVER_API, id, false);
    enableCalls(false);
    for (const CUpti_ActivityKind kind : kCapturedKinds) cupti_->disable(kind);
    flush();
}

void Collector::flush() {
    if (state_.load() == State::Off) return;
    flushing_ = true;
    buffers_.wake();
}

void Collector::stop() {
    end();
    const std::lock_guard<std::mutex> guard(control_);
    if (state_.load() == State::Off) return;
    draining_ = true;
    buffers_.wake();
    for (int waited = 0; draining_.load() && waited < kDrainMilliseconds; waited += 5)
        nanosleep(&kPause, nullptr);
    for (const CUpti_ActivityKind kind : kMemoryKinds) cupti_->disable(kind);
    cupti_->disable(CUPTI_ACTIVITY_KIND_DEVICE);
    for (const CUpti_CallbackId id : kSegmentCalls) watch(CUPTI_CB_DOMAIN_DRIVER_API, id, false);
    state_ = State::Off;
    ++readers_;  // ends the thread
    buffers_.wake();
    cupti_->unsubscribe(subscriber_);
}

void Collector::push(std::int64_t op) {
    if (state_.load(std::memory_order_relaxed) == State::Collecting)
        cupti_->push(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2, static_cast<std::uint64_t>(op));
}

void Collector::pop() {
    std::uint64_t last = 0;
    if (state_.load(std::memory_order_relaxed) == State::Collecting)
        cupti_->pop(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2, &last);
}

void Collector::abandon() {
    state_ = State::Off;
    ++readers_;
}

void CUPTIAPI Collector::requested(std::uint8_t** buffer, std::size_t* bytes,
                                   std::size_t* records) {
    *buffer = instance().buffers_.lend();
    *bytes = *buffer == nullptr ? 0 : Buffers::kBytes;
    *records = 0;  // as many as fit
}

void CUPTIAPI Collector::completed(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t,
                                   std::size_t validBytes) {
    instance().buffers_.take(buffer, validBytes);
}

void CUPTIAPI Collector::called(void* self, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                                const void* data) {
    auto& collector = *static_cast<Collector*>(self);
    const auto& call = *static_cast<const CUpti_CallbackData*>(data);
    if (call.callbackSite != CUPTI_API_EXIT || collector.state_.load() == State::Off) return;
    if (domain == CUPTI_CB_DOMAIN_RUNTIME_API) {
        collector.launchesOfRuntime_.fetch_add(1, std::memory_order_relaxed);
    } else if (std::find(std::begin(kDriverLaunches), std::end(kDriverLaunches), id) !=
               std::end(kDriverLaunches)) {
        collector.launchesOfDriver_.fetch_add(1, std::memory_order_relaxed);
    } else if (call.functionReturnValue != nullptr &&
               *static_cast<const CUresult*>(call.functionReturnValue) == CUDA_SUCCESS) {
        collector.memoryCall(id, call);
    }
}

/// The runtime launches through the driver, so that most launches are counted by both.
std::uint64_t Collector::launches() const {
    return std::max(launchesOfRuntime_.load(), launchesOfDriver_.load());
}

}  // namespace hw::profiler::cupti
