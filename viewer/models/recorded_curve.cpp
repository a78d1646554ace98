// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/models/recorded_curve.h"

#include <algorithm>
#include <unordered_map>

namespace hw::viewer {
namespace {

void extend(std::vector<LaneSpan>& lane, const LaneSpan& span) {
    if (!lane.empty() && lane.back().id == span.id && lane.back().phase == span.phase)
        lane.back().end = span.end;
    else
        lane.push_back(span);
}

// A moment each.
std::vector<BandBytes> bandsOf(const core::RecordedMemory& memory, const Bands& bands) {
    std::vector<BandBytes> changes(memory.moments.size() + 1);
    for (const core::RecordedMemory::Lifetime& lifetime : memory.lifetimes) {
        const core::Storage& storage = memory.graph.storages[lifetime.storage];
        const Band band = bands.of(storage);
        changes[static_cast<std::size_t>(lifetime.first)][band] += storage.bytes;
        changes[static_cast<std::size_t>(lifetime.last) + 1][band] -= storage.bytes;
    }
    for (std::size_t i = 1; i < changes.size(); ++i)
        for (Band band = 0; band < kBandCount; ++band) changes[i][band] += changes[i - 1][band];
    return changes;
}

}  // namespace

StepCurve recordedCurve(const core::RecordedMemory& memory, const Bands& bands) {
    StepCurve curve;
    const std::vector<BandBytes> split = bandsOf(memory, bands);
    const auto push = [&](core::Nanoseconds begin, core::Nanoseconds end, core::Bytes bytes,
                          core::OpIndex op) {
        Moment moment{begin, end, curve.moments.size(), op, false, bytes, {}};
        moment.byBand = split[curve.moments.size()];
        fitTo(bytes, moment.byBand);
        if (bytes > curve.peak) curve.peak = bytes, curve.peakMoment = curve.moments.size();
        curve.moments.push_back(moment);
    };
    const auto& moments = memory.moments;
    for (std::size_t i = 0; i < moments.size(); ++i)
        push(moments[i].begin, moments[std::min(i + 1, moments.size() - 1)].begin,
             moments[i].allocated, moments[i].op);
    for (const core::RecordedMemory::Lifetime& lifetime : memory.lifetimes)
        curve.lifetimes.push_back({lifetime.storage, lifetime.first, lifetime.last});
    if (!moments.empty()) {
        curve.time = moments.back().begin;
    } else {
        curve.time = memory.end;
        push(core::Nanoseconds(0), curve.time, core::Bytes(0), core::kNone);
    }
    return curve;
}

Lanes recordedLanes(const core::RecordedMemory& memory, const StepCurve& curve) {
    Lanes lanes;
    core::Nanoseconds until;
    for (const core::RecordedMemory::OpSpan& span : memory.spans) {
        const core::Nanoseconds begin = std::max(span.begin, until);
        const core::Nanoseconds end = std::min(span.end, curve.time);
        if (begin >= end) continue;
        until = end;
        const core::Op& op = memory.graph.ops[span.op];
        const bool unknown = op.phase == core::Phase::Unknown;
        extend(lanes.phases,
               {begin, end, unknown ? core::kNone : static_cast<std::int32_t>(op.phase), op.phase});
        extend(lanes.layers, {begin, end, op.layer, op.phase});
        lanes.ops.push_back({begin, end, span.op, op.phase});
    }
    return lanes;
}

void addAnnotations(Lanes& lanes, const std::vector<core::Annotation>& annotations,
                    const core::RecordedMemory& memory, const StepCurve& curve) {
    if (!memory.timed) return;
    core::Nanoseconds until;
    std::unordered_map<std::string, std::int32_t> known;
    for (const core::Annotation& each : annotations) {
        const core::Nanoseconds from = std::max(memory.since(each.beginNs), core::Nanoseconds(0));
        const core::Nanoseconds end = std::min(memory.since(each.endNs), curve.time);
        if (each.ordinal != memory.ordinal || from < until || end <= from) continue;
        until = end;
        std::vector<std::string>& names = lanes.annotations.names;
        const auto [id, isNew] =
            known.try_emplace(each.name, static_cast<std::int32_t>(names.size()));
        if (isNew) names.push_back(each.name);
        lanes.annotations.spans.push_back({from, end, id->second, core::Phase::Unknown});
    }
}

void addStreams(Lanes& lanes, core::DeviceWork work, const StepCurve& curve) {
    constexpr std::size_t kMost = 3;
    if (work.streams.size() > kMost) work.streams.resize(kMost);
    for (const core::DeviceWork::Stream& stream : work.streams) {
        StreamLane& lane = lanes.streams.emplace_back();
        lane.stream = stream.id;
        for (const core::DeviceWork::Span& span : stream.spans)
            if (span.begin < curve.time)
                lane.spans.push_back(
                    {span.begin, std::min(span.end, curve.time), span.name, core::Phase::Unknown});
    }
    lanes.work = std::move(work.names);
}

}  // namespace hw::viewer
