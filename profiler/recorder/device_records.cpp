// SPDX-License-Identifier: MIT
#include "profiler/recorder/device_records.h"

#include <algorithm>
#include <cmath>

namespace hw::profiler {
namespace {

using wire::Activity;
using wire::ActivityKind;
using wire::MarkerDetail;
using wire::MemoryDetail;

/// Records of one launch may come in different buffers, and those a step later.
constexpr int kOldest = 2;

const char* const kCopyKinds[] = {"unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
                                  "AtoD",    "DtoA", "DtoD", "HtoH", "PtoP"};
const char* const kSyncKinds[] = {"synchronize", "cudaEventSynchronize", "cudaStreamWaitEvent",
                                  "cudaStreamSynchronize", "cudaDeviceSynchronize"};
const char* const kOverheadKinds[] = {
    "driver compiler", "CUPTI buffer flush",   "CUPTI instrumentation",
    "CUPTI resources", "module loading",       "lazy function loading",
    "command buffer",  "CUPTI buffer request", "UVM activity"};

template <std::size_t N>
std::string nameOf(const char* const (&names)[N], std::size_t index) {
    return index < N ? names[index] : "other";
}

// CUpti_ActivityMemoryKind.
constexpr std::uint32_t kPinned = 2, kDevice = 3, kManaged = 5;

}  // namespace

void DeviceClock::add(const wire::ClockRecord& moment) {
    const auto at =
        std::upper_bound(moments_.begin(), moments_.end(), moment,
                         [](const auto& a, const auto& b) { return a.deviceNs < b.deviceNs; });
    moments_.insert(at, moment);
}

std::int64_t DeviceClock::toHost(std::int64_t deviceNs) const {
    if (moments_.empty()) return deviceNs;
    const auto after =
        std::upper_bound(moments_.begin(), moments_.end(), deviceNs,
                         [](std::int64_t at, const auto& moment) { return at < moment.deviceNs; });
    if (after == moments_.begin()) return deviceNs - after->deviceNs + after->hostNs;
    const auto& a = *(after - 1);
    const std::int64_t since = deviceNs - a.deviceNs;
    if (after == moments_.end() || after->deviceNs == a.deviceNs) return a.hostNs + since;
    const double slope = static_cast<double>(after->hostNs - a.hostNs) /
                         static_cast<double>(after->deviceNs - a.deviceNs);
    return a.hostNs + static_cast<std::int64_t>(std::llround(static_cast<double>(since) * slope));
}

std::string DeviceClock::describe() const {
    const auto& first = moments_.front();
    const auto& last = moments_.back();
    std::int64_t width = 0;
    for (const auto& moment : moments_) width = std::max(width, moment.widthNs);
    const std::int64_t passed = last.deviceNs - first.deviceNs;
    const double drift = passed <= 0 ? 0
                                     : static_cast<double>(last.hostNs - first.hostNs - passed) *
                                           1e9 / static_cast<double>(passed);
    return "{\"offset_ns\":" + std::to_string(first.hostNs - first.deviceNs) +
           ",\"drift_ppb\":" + std::to_string(std::llround(drift)) +
           ",\"uncertainty_ns\":" + std::to_string(width) +
           ",\"moments\":" + std::to_string(moments_.size()) + "}";
}

void DeviceRecords::take(const wire::ActivitiesRecord& record) {
    for (const Activity& activity : record.activities) {
        if ((activity.flags & wire::kActivityHostClock) == 0)
            newest_ = std::max(newest_, activity.begin);
        Launch* launch = nullptr;
        switch (static_cast<ActivityKind>(activity.kind)) {
            case ActivityKind::Kernel:
            case ActivityKind::Copy:
            case ActivityKind::Set:
                work_.push_back({activity});
                break;
            case ActivityKind::Api:
                launch = &launches_[activity.correlation];
                launch->begin = activity.begin;
                launch->thread = activity.stream;
                launch->age = 0;
                break;
            case ActivityKind::External:
                launch = &launches_[activity.correlation];
                launch->external = activity.value;
                launch->age = 0;
                break;
            case ActivityKind::Memory:
            case ActivityKind::Pool:
                memory_.push_back(activity);
                break;
            case ActivityKind::Marker:
                if (activity.detail == static_cast<int>(MarkerDetail::Start)) {
                    open_[activity.value] = activity;
                } else if (const auto at = open_.find(activity.value); at != open_.end()) {
                    closed_.emplace_back(at->second, activity.begin);
                    open_.erase(at);
                } else if (activity.detail == static_cast<int>(MarkerDetail::Instant)) {
                    closed_.emplace_back(activity, activity.begin);
                }
                break;
            case ActivityKind::Sync:
            case ActivityKind::Overhead:
                ranges_.push_back(activity);
                break;
        }
    }
}

std::int64_t DeviceRecords::begin(const Activity& activity) const {
    return (activity.flags & wire::kActivityHostClock) != 0 ? activity.begin
                                                            : clock_.toHost(activity.begin);
}

std::int64_t DeviceRecords::end(const Activity& activity) const {
    return (activity.flags & wire::kActivityHostClock) != 0 ? activity.end
                                                            : clock_.toHost(activity.end);
}

/// The last op that began by then; ops_ is sorted by begin.
const DeviceRecords::OpSpan* DeviceRecords::opBefore(std::int64_t hostNs) const {
    const auto after =
        std::upper_bound(ops_.begin(), ops_.end(), hostNs,
                         [](std::int64_t time, const OpSpan& span) { return time < span.begin; });
    return after == ops_.begin() ? nullptr : &*(after - 1);
}

std::optional<std::int64_t> DeviceRecords::opOf(std::uint32_t correlation) const {
    const auto at = launches_.find(correlation);
    if (at == launches_.end()) return std::nullopt;
    const Launch& launch = at->second;
    if (launch.external != 0)
        if (const OpSpan* op = opBefore(launch.external); op && op->begin == launch.external)
            return op->id;
    if (launch.begin == 0) return std::nullopt;
    const std::int64_t time = clock_.toHost(launch.begin);
    const OpSpan* op = opBefore(time);
    return op && time <= op->end && op->thread == launch.thread ? std::optional(op->id)
                                                                : std::nullopt;
}

core::Status DeviceRecords::writeWork(core::SessionWriter& session, const Activity& activity,
                                      std::optional<std::int64_t> op) {
    const auto device = session.device("cuda", activity.device);
    if (!device) return device.error();
    core::DeviceWorkRow work;
    work.device = *device;
    work.stream = activity.stream;
    work.beginNs = begin(activity);
    work.endNs = end(activity);
    work.bytes = activity.value;
    work.op = op;
    work.correlation = activity.correlation;
    if (activity.kind == static_cast<int>(ActivityKind::Kernel)) {
        const auto name = names_.find(activity.name);
        work.name = name == names_.end() ? "unknown" : name->second;
        return session.insertKernel(work);
    }
    work.name = activity.kind == static_cast<int>(ActivityKind::Set)
                    ? "memset"
                    : nameOf(kCopyKinds, activity.detail);
    return session.insertCopy(work);
}

/// Expandable segments are told by the driver's call and, since CUPTI 13, by a memory record, too.
bool DeviceRecords::toldAlready(const Activity& activity) {
    const auto detail = static_cast<MemoryDetail>(activity.detail);
    if (activity.extra != kDevice) return false;
    if (detail == MemoryDetail::Allocate || detail == MemoryDetail::Map) {
        released_.erase(activity.address);
        return !segments_.insert(activity.address).second;
    }
    if (detail != MemoryDetail::Release && detail != MemoryDetail::Unmap) return false;
    if (segments_.erase(activity.address) == 0) return released_.contains(activity.address);
    released_.insert(activity.address);
    return false;
}

/// Segments are what the framework's caching allocator takes from the driver.
core::Status DeviceRecords::writeMemory(core::SessionWriter& session, const Activity& activity) {
    core::MemoryEventRow row;
    row.timeNs = begin(activity);
    row.address = activity.address;
    row.device = activity.device;
    row.bytes = core::Bytes(activity.value);
    row.op = opOf(activity.correlation);
    if (activity.kind == static_cast<int>(ActivityKind::Pool)) {
        static const char* const kPools[] = {"pool", "pool_create", "pool_destroy", "pool_trim"};
        row.kind = nameOf(kPools, activity.detail);
        return session.insert(row);
    }
    if (toldAlready(activity)) return {};
    const auto detail = static_cast<MemoryDetail>(activity.detail);
    const bool release = detail == MemoryDetail::Release;
    switch (detail) {
        case MemoryDetail::Map:
            row.kind = "segment_map";
            break;
        case MemoryDetail::Unmap:
            row.kind = "segment_unmap";
            break;
        case MemoryDetail::Create:
            created_[activity.address] = activity.value;
            row.kind = "physical_create";
            break;
        case MemoryDetail::Destroy:
            row.kind = "physical_release";
            row.bytes = core::Bytes(created_[activity.address]);
            created_.erase(activity.address);
            break;
        default:
            if (activity.extra == kPinned) {
                row.kind = release ? "pinned_free" : "pinned_alloc";
                row.device = -1;
            } else if (activity.extra == kDevice) {
                row.kind = release ? "segment_free" : "segment_alloc";
            } else {
                row.kind = std::string(activity.extra == kManaged ? "managed" : "other") +
                           (release ? "_free" : "_alloc");
            }
    }
    return session.insert(row);
}

/// In the order of their times: calls are told at once, records when a buffer is handed over, which
/// may be several steps later. So each waits until the buffers have told of something later, and
/// for one step more, as they are not in order among themselves.
core::Status DeviceRecords::writeMemoryEvents(core::SessionWriter& session, bool last) {
    const std::int64_t told = clock_.toHost(std::exchange(toldBefore_, newest_));
    const auto waits = [&](const Activity& activity) { return !last && begin(activity) > told; };
    const auto kept = std::stable_partition(memory_.begin(), memory_.end(), waits);
    std::stable_sort(kept, memory_.end(),
                     [&](const Activity& a, const Activity& b) { return begin(a) < begin(b); });
    for (auto each = kept; each != memory_.end(); ++each) HW_TRY(writeMemory(session, *each));
    memory_.erase(kept, memory_.end());
    return {};
}

core::Status DeviceRecords::writeRanges(core::SessionWriter& session) {
    for (const auto& [activity, endNs] : closed_) {
        const auto name = names_.find(activity.name);
        HW_TRY(
            session.insert(core::RangeRow{"nvtx", name == names_.end() ? "" : name->second,
                                          activity.stream, begin(activity), clock_.toHost(endNs)}));
    }
    for (const Activity& activity : ranges_) {
        const bool sync = activity.kind == static_cast<int>(ActivityKind::Sync);
        HW_TRY(session.insert(core::RangeRow{
            sync ? "sync" : "overhead",
            sync ? nameOf(kSyncKinds, activity.detail) : nameOf(kOverheadKinds, activity.detail),
            activity.stream, begin(activity), end(activity)}));
    }
    ranges_.clear();
    closed_.clear();
    return {};
}

core::Status DeviceRecords::writeFootprints(core::SessionWriter& session) {
    std::map<std::int64_t, std::vector<core::Sample>> bands;
    for (const auto& each : footprints_) bands[each.ordinal].push_back({each.timeNs, each.bytes});
    for (const auto& [ordinal, samples] : bands) {
        core::SeriesKey key;
        key.name = (ordinal < 0 ? "host" : "device " + std::to_string(ordinal)) + " CUPTI";
        key.device = ordinal;
        HW_TRY(session.insertSamples(key, samples));
    }
    footprints_.clear();
    return {};
}

void DeviceRecords::forgetOld() {
    for (auto& [correlation, launch] : launches_) ++launch.age;
    std::erase_if(launches_, [](const auto& each) { return each.second.age > kOldest; });
}

core::Status DeviceRecords::writeAllWork(core::SessionWriter& session, bool last) {
    std::vector<Pending> later;
    for (Pending& each : work_) {
        const auto op = opOf(each.activity.correlation);
        const std::int64_t at = begin(each.activity);
        if (!op && !last && (++each.age <= kOldest || at > lastEnd_)) {
            later.push_back(each);
            continue;
        }
        // Outside of the recorded steps there is nothing to show them beside.
        if (!op && (!firstBegin_ || at < *firstBegin_ || at > lastEnd_)) continue;
        HW_TRY(writeWork(session, each.activity, op));
        changed_ = true;
    }
    work_ = std::move(later);
    return {};
}

core::Status DeviceRecords::write(core::SessionWriter& session, std::int64_t stepBegin,
                                  std::int64_t stepEnd, bool last) {
    if (!any()) return {};
    if (stepEnd > 0) {
        firstBegin_ = std::min(firstBegin_.value_or(stepBegin), stepBegin);
        lastEnd_ = std::max(lastEnd_, stepEnd);
    }
    std::stable_sort(ops_.begin(), ops_.end(),
                     [](const OpSpan& a, const OpSpan& b) { return a.begin < b.begin; });
    for (const auto& told : devices_) {
        const auto device = session.device("cuda", told.ordinal);
        if (!device) return device.error();
        HW_TRY(session.describeDevice(*device, told.name, told.capacity));
    }
    devices_.clear();
    HW_TRY(writeMemoryEvents(session, last));
    HW_TRY(writeAllWork(session, last));
    HW_TRY(writeRanges(session));
    HW_TRY(writeFootprints(session));
    if (last && std::exchange(changed_, false)) HW_TRY(session.chargeKernels());
    forgetOld();
    return session.setMeta("device_clock", clock_.describe());
}

}  // namespace hw::profiler
