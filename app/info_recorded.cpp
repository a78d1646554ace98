// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/info_recorded.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include "core/session/annotations.h"
#include "core/session/device_work.h"
#include "core/session/recorded_memory.h"
#include "core/session/replay_events.h"
#include "core/session/shortages.h"

namespace hw::app {

using namespace hw::core;

Json gapList(const Session& session) {
    Json list = Json::array();
    if (const auto gaps = session.gaps())
        for (const GapRow& gap : *gaps) list.push_back({{"what", gap.what}, {"why", gap.why}});
    return list;
}

void printGaps(const Session& session) {
    if (const auto gaps = session.gaps())
        for (const GapRow& gap : *gaps)
            std::printf("  gap: %s: %s\n", gap.what.c_str(), gap.why.c_str());
}

Json gpuFigures(const Session& session) {
    const auto counts = session.deviceWorkCounts();
    if (!counts || counts->kernels + counts->copies == 0) return nullptr;
    Json figures{{"kernels", counts->kernels},
                 {"copies", counts->copies},
                 {"kernels_without_op", counts->kernelsWithoutOp}};
    if (const auto clock = session.meta("device_clock"); clock && !clock->empty())
        figures["clock"] = Json::parse(*clock, nullptr, false);
    if (const auto series = session.series())
        for (const SeriesRow& row : *series)
            if (row.key.name.ends_with(" CUPTI"))
                figures["cupti_bytes"][row.key.name] = row.maximum;
    return figures;
}

void printGpu(const Json& gpu) {
    if (gpu.is_null()) return;
    std::printf("  GPU: %lld kernels, %lld copies\n", gpu["kernels"].get<long long>(),
                gpu["copies"].get<long long>());
    if (!gpu.contains("streams")) return;
    for (const Json& stream : gpu["streams"])
        std::printf("    stream %lld busy %.1f %% of the trace\n",
                    stream["stream"].get<long long>(), stream["busy"].get<double>() * 100);
}

namespace {

/// Adds how busy each stream was, from the trace's beginning to the end of its last kernel.
void addStreams(Json& gpu, const Session& session, const RecordedMemory& recorded) {
    const auto work = loadDeviceWork(session, recorded.ordinal, recorded.originNs);
    if (gpu.is_null() || !work) return;
    Nanoseconds end;
    for (const DeviceWork::Stream& stream : work->streams)
        for (const DeviceWork::Span& span : stream.spans) end = std::max(end, span.end);
    for (const DeviceWork::Stream& stream : work->streams)
        gpu["streams"].push_back({{"stream", stream.id}, {"busy", ratio(stream.busy, end)}});
}

Json deviceJson(const RecordedDevice& device) {
    return {{"device", device.label},
            {"name", device.name.empty() ? Json(nullptr) : Json(device.name)},
            {"events", device.events},
            {"peak_bytes", device.peak.count()},
            {"end_bytes", device.end.count()},
            {"reserved_bytes", device.reserved.count()}};
}

/// A stretch that the program named: how often, and the most bytes that its device held in it.
struct NamedStretch {
    std::string name;
    std::int64_t times = 0;
    Nanoseconds time;
    Bytes peak;
};

// Of the device that `recorded` shows. An annotation begins with what was allocated before it.
std::vector<NamedStretch> stretchesOf(const Session& session, const RecordedMemory& recorded) {
    std::vector<NamedStretch> stretches;
    const auto annotations = loadAnnotations(session);
    if (!annotations || !recorded.timed) return stretches;
    std::map<std::string, std::size_t> byName;
    const auto& moments = recorded.moments;
    for (const Annotation& each : *annotations) {
        if (each.ordinal != recorded.ordinal) continue;
        const auto [at, isNew] = byName.try_emplace(each.name, stretches.size());
        if (isNew) stretches.push_back({each.name, 0, Nanoseconds(0), Bytes(0)});
        NamedStretch& stretch = stretches[at->second];
        const Nanoseconds begin = recorded.since(each.beginNs);
        const Nanoseconds end = std::max(begin, recorded.since(each.endNs));
        ++stretch.times;
        stretch.time += end - begin;
        auto from =
            std::upper_bound(moments.begin(), moments.end(), begin,
                             [](Nanoseconds time, const auto& m) { return time < m.begin; });
        if (from != moments.begin()) --from;
        for (; from != moments.end() && from->begin <= end; ++from)
            stretch.peak = std::max(stretch.peak, from->allocated);
    }
    return stretches;
}

Json stretchesJson(const std::vector<NamedStretch>& stretches) {
    Json list = Json::array();
    for (const NamedStretch& each : stretches)
        list.push_back({{"name", each.name},
                        {"times", each.times},
                        {"time_ns", each.time.count()},
                        {"peak_bytes", each.peak.count()}});
    return list;
}

Json shortagesJson(const std::vector<Shortage>& shortages) {
    Json list = Json::array();
    for (const Shortage& each : shortages)
        list.push_back({{"device", each.device},
                        {"time_ns", each.timeNs},
                        {"asked_bytes", each.asked.count()},
                        {"free_bytes", each.free ? Json(each.free->count()) : Json(nullptr)},
                        {"allocated_bytes", each.allocated.count()},
                        {"place", each.place}});
    return list;
}

void printDevices(const RecordedMemory& recorded) {
    for (const RecordedDevice& device : recorded.devices) {
        if (device.events == 0) continue;
        std::printf("  %s: %lld memory events, peak %s, at the end %s", titleOf(device).c_str(),
                    static_cast<long long>(device.events), humanBytes(device.peak).c_str(),
                    humanBytes(device.end).c_str());
        if (device.reserved > Bytes(0))
            std::printf(", reserved from the driver at most %s",
                        humanBytes(device.reserved).c_str());
        std::printf("\n");
    }
    if (recorded.moments.empty()) std::printf("  no memory was recorded\n");
}

void printStretches(const std::vector<NamedStretch>& stretches) {
    constexpr std::size_t kMost = 20;
    for (std::size_t i = 0; i < std::min(kMost, stretches.size()); ++i)
        std::printf("  annotation %s: %lld %s, %s, peak %s\n", stretches[i].name.c_str(),
                    static_cast<long long>(stretches[i].times),
                    stretches[i].times == 1 ? "time" : "times",
                    humanTime(stretches[i].time).c_str(), humanBytes(stretches[i].peak).c_str());
    if (stretches.size() > kMost)
        std::printf("  and %zu more annotations: --json tells all\n", stretches.size() - kMost);
}

void printShortages(const std::vector<Shortage>& shortages) {
    constexpr std::size_t kMost = 5;
    for (std::size_t i = 0; i < std::min(kMost, shortages.size()); ++i)
        std::printf("  %s: %s\n", shortages[i].device.c_str(),
                    describeShortage(shortages[i]).c_str());
    if (shortages.size() > kMost)
        std::printf("  and %zu more times: --json tells all\n", shortages.size() - kMost);
}

Json recordedJson(const RecordedMemory& recorded, const CachingAllocatorStats& cached) {
    if (recorded.moments.empty()) return nullptr;
    for (const RecordedDevice& device : recorded.devices) {
        if (device.ordinal != recorded.ordinal) continue;
        Json json = deviceJson(device);
        json["caching_allocator"] = cachingAllocatorJson(cached);
        return json;
    }
    return nullptr;
}

}  // namespace

int printRecorded(const Session& session, const SessionCounts& counts, const std::string& file,
                  const std::string& device, const Common& common) {
    const auto recorded = loadRecordedMemory(session, RecordedDetail::Everything, device);
    if (!recorded) return fail(recorded.error());
    const auto events = session.memoryEvents();
    if (!events) return fail(events.error());
    const CachingAllocatorStats cached = replayEvents(*events, recorded->ordinal);
    const auto stretches = stretchesOf(session, *recorded);
    const auto shortages = loadShortages(session);
    Json gpu = gpuFigures(session);
    addStreams(gpu, session, *recorded);
    if (common.json) {
        Json devices = Json::array();
        for (const RecordedDevice& each : recorded->devices)
            if (each.events > 0) devices.push_back(deviceJson(each));
        answerWith({{"ops", counts.ops},
                    {"tensors", counts.tensors},
                    {"storages", counts.storages},
                    {"layers", counts.layers},
                    {"steps", counts.steps},
                    {"events", counts.events},
                    {"baseline", nullptr},
                    {"categories", Json::object()},
                    {"recorded", recordedJson(*recorded, cached)},
                    {"devices", devices},
                    {"annotations", stretchesJson(stretches)},
                    {"out_of_memory", shortagesJson(shortages)},
                    {"gpu", gpu},
                    {"gaps", gapList(session)}});
        return 0;
    }
    std::printf("%s, no complete step\n", file.c_str());
    std::printf("  ops %lld, storages %lld, layers %lld\n", static_cast<long long>(counts.ops),
                static_cast<long long>(counts.storages), static_cast<long long>(counts.layers));
    printDevices(*recorded);
    printShortages(shortages);
    printStretches(stretches);
    if (cached.peakReserved > Bytes(0) && recorded->ordinal >= 0)
        std::printf(
            "  PyTorch's caching allocator would reserve %s for what was allocated on %s, "
            "%.1f %% of it never used\n",
            humanBytes(cached.peakReserved).c_str(), recorded->device.c_str(),
            cached.fragmentation() * 100);
    printGpu(gpu);
    printGaps(session);
    return 0;
}

}  // namespace hw::app
