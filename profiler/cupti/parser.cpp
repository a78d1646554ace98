// SPDX-License-Identifier: MIT
#include "profiler/cupti/parser.h"

#include <algorithm>
#include <cstring>

namespace hw::profiler::cupti {
namespace {

using wire::Activity;
using wire::ActivityKind;

constexpr std::size_t kAlignment = 8;  // ACTIVITY_RECORD_ALIGNMENT

/// The size of a record in this build's headers; 0 for kinds that are never enabled.
std::size_t sizeOf(CUpti_ActivityKind kind) {
    switch (kind) {
        case CUPTI_ACTIVITY_KIND_KERNEL:
        case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
            return sizeof(CUpti_ActivityKernel10);
        case CUPTI_ACTIVITY_KIND_MEMCPY:
            return sizeof(CUpti_ActivityMemcpy6);
        case CUPTI_ACTIVITY_KIND_MEMCPY2:
            return sizeof(CUpti_ActivityMemcpyPtoP4);
        case CUPTI_ACTIVITY_KIND_MEMSET:
            return sizeof(CUpti_ActivityMemset4);
        case CUPTI_ACTIVITY_KIND_MEMORY2:
            return sizeof(CUpti_ActivityMemory4);
        case CUPTI_ACTIVITY_KIND_MEMORY_POOL:
            return sizeof(CUpti_ActivityMemoryPool3);
        case CUPTI_ACTIVITY_KIND_RUNTIME:
        case CUPTI_ACTIVITY_KIND_DRIVER:
            return sizeof(CUpti_ActivityAPI);
        case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
            return sizeof(CUpti_ActivityExternalCorrelation);
        case CUPTI_ACTIVITY_KIND_MARKER:
            return sizeof(CUpti_ActivityMarker2);
        case CUPTI_ACTIVITY_KIND_MARKER_DATA:
            return sizeof(CUpti_ActivityMarkerData2);
        case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
            return sizeof(CUpti_ActivitySynchronization2);
        case CUPTI_ACTIVITY_KIND_OVERHEAD:
            return sizeof(CUpti_ActivityOverhead3);
        case CUPTI_ACTIVITY_KIND_DEVICE:
            return sizeof(CUpti_ActivityDevice5);
        case CUPTI_ACTIVITY_KIND_CONTEXT:
            return sizeof(CUpti_ActivityContext3);
        case CUPTI_ACTIVITY_KIND_NAME:
            return sizeof(CUpti_ActivityName);
        default:
            return 0;
    }
}

/// A copy of a record of which `bytes` are there; the fields behind them are zero.
template <class Record>
Record copyOf(const CUpti_Activity* record, std::size_t bytes) {
    Record copy{};
    std::memcpy(&copy, record, std::min(bytes, sizeof(copy)));
    return copy;
}

// Up to where a record must go, so that what is read of it is there.
#define HW_UP_TO(Record, field) (offsetof(Record, field) + sizeof(Record::field))

/// What a record says. A kind of 0: nothing for us.
struct Read {
    Activity activity;
    const char* name = nullptr;
};

template <class Record>
Read onDevice(ActivityKind kind, const Record& record, std::uint64_t bytes = 0) {
    Read read;
    Activity& activity = read.activity;
    activity.kind = static_cast<std::uint8_t>(kind);
    activity.correlation = record.correlationId;
    activity.device = record.deviceId;
    activity.stream = record.streamId;
    activity.begin = static_cast<std::int64_t>(record.start);
    activity.end = static_cast<std::int64_t>(record.end);
    activity.value = static_cast<std::int64_t>(bytes);
    return read;
}

Read ofKernel(const CUpti_ActivityKernel10& record) {
    Read read = onDevice(ActivityKind::Kernel, record);
    read.name = record.name;
    return read;
}

Read ofCopy(const CUpti_ActivityMemcpy6& record) {
    Read read = onDevice(ActivityKind::Copy, record, record.bytes);
    read.activity.detail = record.copyKind;
    return read;
}

Read ofPeerCopy(const CUpti_ActivityMemcpyPtoP4& record) {
    Read read = onDevice(ActivityKind::Copy, record, record.bytes);
    read.activity.detail = CUPTI_ACTIVITY_MEMCPY_KIND_PTOP;
    return read;
}

Read ofSet(const CUpti_ActivityMemset4& record) {
    return onDevice(ActivityKind::Set, record, record.bytes);
}

/// Those of other kinds are torch.profiler's.
Read ofExternal(const CUpti_ActivityExternalCorrelation& record) {
    Activity activity;
    if (record.externalKind == CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2)
        activity.kind = static_cast<std::uint8_t>(ActivityKind::External);
    activity.correlation = record.correlationId;
    activity.value = static_cast<std::int64_t>(record.externalId);
    return {activity};
}

Read ofApi(const CUpti_ActivityAPI& record) {
    Activity activity;
    activity.kind = static_cast<std::uint8_t>(ActivityKind::Api);
    activity.detail = record.kind == CUPTI_ACTIVITY_KIND_DRIVER ? 1 : 0;
    activity.correlation = record.correlationId;
    activity.stream = record.threadId;
    activity.begin = static_cast<std::int64_t>(record.start);
    activity.end = static_cast<std::int64_t>(record.end);
    activity.extra = record.cbid;
    return {activity};
}

Read ofMemory(const CUpti_ActivityMemory4& record) {
    Activity activity;
    activity.kind = static_cast<std::uint8_t>(ActivityKind::Memory);
    activity.detail = static_cast<std::uint8_t>(record.memoryOperationType);
    activity.correlation = record.correlationId;
    activity.device = record.deviceId;
    activity.stream = record.streamId;
    activity.begin = activity.end = static_cast<std::int64_t>(record.timestamp);
    activity.value = static_cast<std::int64_t>(record.bytes);
    activity.address = static_cast<std::int64_t>(record.address);
    activity.extra = static_cast<std::uint32_t>(record.memoryKind);
    return {activity};
}

Read ofPool(const CUpti_ActivityMemoryPool3& record) {
    Activity activity;
    activity.kind = static_cast<std::uint8_t>(ActivityKind::Pool);
    activity.detail = static_cast<std::uint8_t>(record.memoryPoolOperationType);
    activity.correlation = record.correlationId;
    activity.device = record.deviceId;
    activity.begin = static_cast<std::int64_t>(record.timestamp);
    activity.end = static_cast<std::int64_t>(record.utilizedSize);
    activity.value = static_cast<std::int64_t>(record.size);
    activity.address = static_cast<std::int64_t>(record.address);
    return {activity};
}

Read ofMarker(const CUpti_ActivityMarker2& record) {
    Activity activity;
    activity.kind = static_cast<std::uint8_t>(ActivityKind::Marker);
    const wire::MarkerDetail detail =
        (record.flags & CUPTI_ACTIVITY_FLAG_MARKER_START) != 0 ? wire::MarkerDetail::Start
        : (record.flags & CUPTI_ACTIVITY_FLAG_MARKER_END) != 0 ? wire::MarkerDetail::End
                                                               : wire::MarkerDetail::Instant;
    activity.detail = static_cast<std::uint8_t>(detail);
    if (record.objectKind == CUPTI_ACTIVITY_OBJECT_THREAD)
        activity.stream = record.objectId.pt.threadId;
    activity.begin = activity.end = static_cast<std::int64_t>(record.timestamp);
    activity.value = record.id;
    return {activity, record.name};
}

Read ofSync(const CUpti_ActivitySynchronization2& record) {
    Activity activity;
    activity.kind = static_cast<std::uint8_t>(ActivityKind::Sync);
    activity.detail = static_cast<std::uint8_t>(record.type);
    activity.correlation = record.correlationId;
    activity.stream = record.streamId;
    activity.begin = static_cast<std::int64_t>(record.start);
    activity.end = static_cast<std::int64_t>(record.end);
    return {activity};
}

Read ofOverhead(const CUpti_ActivityOverhead3& record) {
    Activity activity;
    activity.kind = static_cast<std::uint8_t>(ActivityKind::Overhead);
    activity.detail = static_cast<std::uint8_t>(static_cast<unsigned>(record.overheadKind) >> 16);
    if (record.objectKind == CUPTI_ACTIVITY_OBJECT_THREAD)
        activity.stream = record.objectId.pt.threadId;
    activity.begin = static_cast<std::int64_t>(record.start);
    activity.end = static_cast<std::int64_t>(record.end);
    return {activity};
}

}  // namespace

CUptiResult nextRecord(std::uint8_t* buffer, std::size_t validBytes, CUpti_Activity** record) {
    std::uint8_t* at = buffer;
    if (*record != nullptr) {
        const std::size_t size = sizeOf((*record)->kind);
        if (size == 0) return CUPTI_ERROR_INVALID_KIND;
        at = reinterpret_cast<std::uint8_t*>(*record) +
             (size + kAlignment - 1) / kAlignment * kAlignment;
    }
    if (at + sizeof(CUpti_Activity) > buffer + validBytes) return CUPTI_ERROR_MAX_LIMIT_REACHED;
    auto* next = reinterpret_cast<CUpti_Activity*>(at);
    if (sizeOf(next->kind) == 0) return CUPTI_ERROR_INVALID_KIND;
    *record = next;
    return CUPTI_SUCCESS;
}

Parsed& Parsed::operator+=(const Parsed& other) {
    records += other.records;
    kernels += other.kernels;
    others += other.others;
    shortRecords += other.shortRecords;
    untimed += other.untimed;
    unreadable += other.unreadable;
    return *this;
}

std::uint32_t Parser::idOf(const char* text, Sink& sink) {
    if (text == nullptr) return 0;
    const auto [at, isNew] =
        names_.try_emplace(text, static_cast<std::uint32_t>(names_.size()) + 1);
    if (isNew) sink.name(at->second, text);
    return at->second;
}

template <class Read>
void Parser::deliver(Read read, Sink& sink, Parsed& parsed) {
    Activity& activity = read.activity;
    if (activity.kind == 0) {
        ++parsed.others;
        return;
    }
    parsed.kernels += activity.kind == static_cast<int>(ActivityKind::Kernel) ? 1 : 0;
    const bool timed = activity.kind <= static_cast<int>(ActivityKind::Set);
    if (timed && activity.begin == 0 && activity.end == 0) {
        ++parsed.untimed;
        return;
    }
    activity.name = idOf(read.name, sink);
    sink.activity(activity);
    ++parsed.records;
}

void Parser::record(const CUpti_Activity* record, std::size_t bytes, Sink& sink, Parsed& parsed) {
    const auto take = [&]<class Record>(std::size_t needed, Read (*read)(const Record&)) {
        if (bytes < needed)
            ++parsed.shortRecords;
        else
            deliver(read(copyOf<Record>(record, bytes)), sink, parsed);
    };
    switch (record->kind) {
        case CUPTI_ACTIVITY_KIND_KERNEL:
        case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
            return take(HW_UP_TO(CUpti_ActivityKernel10, name), &ofKernel);
        case CUPTI_ACTIVITY_KIND_MEMCPY:
            return take(HW_UP_TO(CUpti_ActivityMemcpy6, correlationId), &ofCopy);
        case CUPTI_ACTIVITY_KIND_MEMCPY2:
            return take(HW_UP_TO(CUpti_ActivityMemcpyPtoP4, correlationId), &ofPeerCopy);
        case CUPTI_ACTIVITY_KIND_MEMSET:
            return take(HW_UP_TO(CUpti_ActivityMemset4, correlationId), &ofSet);
        case CUPTI_ACTIVITY_KIND_RUNTIME:
        case CUPTI_ACTIVITY_KIND_DRIVER:
            return take(HW_UP_TO(CUpti_ActivityAPI, correlationId), &ofApi);
        case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
            return take(HW_UP_TO(CUpti_ActivityExternalCorrelation, correlationId), &ofExternal);
        case CUPTI_ACTIVITY_KIND_MEMORY2:
            return take(HW_UP_TO(CUpti_ActivityMemory4, streamId), &ofMemory);
        case CUPTI_ACTIVITY_KIND_MEMORY_POOL:
            return take(HW_UP_TO(CUpti_ActivityMemoryPool3, timestamp), &ofPool);
        case CUPTI_ACTIVITY_KIND_MARKER:
            return take(HW_UP_TO(CUpti_ActivityMarker2, name), &ofMarker);
        case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
            return take(HW_UP_TO(CUpti_ActivitySynchronization2, streamId), &ofSync);
        case CUPTI_ACTIVITY_KIND_OVERHEAD:
            return take(HW_UP_TO(CUpti_ActivityOverhead3, end), &ofOverhead);
        case CUPTI_ACTIVITY_KIND_DEVICE:
            return device(record, bytes, sink, parsed);
        default:
            ++parsed.others;
    }
}

void Parser::device(const CUpti_Activity* record, std::size_t bytes, Sink& sink, Parsed& parsed) {
    if (bytes < HW_UP_TO(CUpti_ActivityDevice5, name)) {
        ++parsed.shortRecords;
        return;
    }
    const auto device = copyOf<CUpti_ActivityDevice5>(record, bytes);
    sink.device(device.id, device.globalMemorySize, device.name == nullptr ? "" : device.name);
    ++parsed.records;
}

Parsed Parser::parse(std::uint8_t* buffer, std::size_t validBytes, Sink& sink) {
    Parsed parsed;
    if (validBytes < sizeof(CUpti_Activity)) {
        parsed.unreadable = validBytes;
        return parsed;
    }
    CUpti_Activity* current = nullptr;
    CUptiResult status = next_(buffer, validBytes, &current);
    if (status != CUPTI_SUCCESS) {
        parsed.unreadable = validBytes;
        return parsed;
    }
    while (true) {
        CUpti_Activity* following = current;
        status = next_(buffer, validBytes, &following);
        const bool more = status == CUPTI_SUCCESS;
        const std::uint8_t* begin = reinterpret_cast<std::uint8_t*>(current);
        const std::uint8_t* end =
            more ? reinterpret_cast<std::uint8_t*>(following) : buffer + validBytes;
        auto bytes = static_cast<std::size_t>(end - begin);
        std::size_t& own = sizes_[current->kind];
        if (more) own = bytes;
        if (!more) {
            // What follows is cut off, or of a kind of unknown size.
            const std::size_t size = own > 0 ? own : sizeOf(current->kind);
            if (size > 0 && bytes > size) {
                if (status == CUPTI_ERROR_INVALID_KIND)
                    parsed.unreadable += bytes - size;
                else
                    ++parsed.shortRecords;
                bytes = size;
            }
        }
        record(current, bytes, sink, parsed);
        if (!more) return parsed;
        current = following;
    }
}

}  // namespace hw::profiler::cupti
