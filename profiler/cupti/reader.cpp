// SPDX-License-Identifier: MIT
// The part of Collector that reads buffers, on a thread of its own.
#include <time.h>

#include "profiler/cupti/collector.h"
#include "profiler/cupti/payload.h"

namespace hw::profiler::cupti {
namespace {

constexpr std::size_t kActivitiesOfFrame = 4096;
constexpr int kReaderMilliseconds = 200;
constexpr int kDrainPauses = 100;  // of 5 ms, for kernels that still run
constexpr timespec kDrainPause{0, 5000000};
constexpr int kClockTries = 5;

}  // namespace

void Collector::parse(const Buffers::Filled& filled) {
    const std::lock_guard<std::mutex> guard(reading_);
    if (state_.load() != State::Off)
        parsed_ += parser_->parse(filled.data, filled.validBytes, *this);
    buffers_.giveBack(filled.data);
}

void Collector::read() {
    for (const int self = readers_.load(); self == readers_.load();) {
        if (draining_.load()) {
            drain();
            draining_ = false;
        }
        if (flushing_.exchange(false) && state_.load() != State::Off) {
            cupti_->flushAll(0);
            sendClock();
        }
        const Buffers::Filled filled = buffers_.next(kReaderMilliseconds);
        if (filled.data == nullptr) continue;
        parse(filled);
        sendActivities();
    }
}

/// Waits for kernels that still run, without the device being told to: synchronizing it could end a
/// graph's capture.
void Collector::drain() {
    const auto readAll = [this] {
        for (Buffers::Filled filled; (filled = buffers_.next(0)).data != nullptr;) parse(filled);
        sendActivities();
    };
    cupti_->flushAll(0);
    readAll();
    for (int pause = 0; pause < kDrainPauses && parsed_.kernels > 0 && parsed_.kernels < launches();
         ++pause) {
        nanosleep(&kDrainPause, nullptr);
        cupti_->flushAll(0);
        readAll();
    }
    cupti_->flushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    readAll();
    sendClock();
    reportLosses();
    for (std::uint32_t ordinal = 0; ordinal < 64; ++ordinal)
        if ((devicesSeen_ >> ordinal & 1) != 0) sendFootprint(ordinal, 0);
    // The next recording starts from nothing: its recorder knows none of the names.
    *parser_ = Parser(cupti_->nextRecord);
    parsed_ = {};
    devicesSeen_ = 0;
}

void Collector::reportLosses() {
    if (launches() > 0 && parsed_.kernels == 0 && parsed_.untimed == 0) refuse(starved(launches()));
    std::size_t dropped = 0;
    cupti_->dropped(nullptr, 0, &dropped);
    if (dropped > 0)
        gap("GPU records",
            "CUPTI dropped " + std::to_string(dropped) + " of them: the buffers were full");
    if (const std::size_t refused = buffers_.refused() - refusedBefore_; refused > 0)
        gap("GPU records", "all buffers were full " + std::to_string(refused) +
                               " times: the recorder did not keep up");
    if (parsed_.untimed > 0)
        gap("GPU records", std::to_string(parsed_.untimed) +
                               " kernels and copies have no times: CUPTI's memory on the device "
                               "was full");
    if (parsed_.shortRecords > 0)
        gap("GPU records", std::to_string(parsed_.shortRecords) +
                               " are cut off, or of a version that lacks what is needed");
    if (parsed_.unreadable > 0)
        gap("GPU records", std::to_string(parsed_.unreadable) +
                               " bytes are of kinds that this CUPTI does not know");
}

void Collector::name(std::uint32_t id, std::string_view text) {
    send(wire::Type::Name, Payload().put<std::int64_t>(id).text(text));
}

void Collector::activity(const wire::Activity& activity) {
    const bool onDevice = activity.kind <= static_cast<std::uint8_t>(wire::ActivityKind::Set);
    if (onDevice && activity.device < 64 && (devicesSeen_ >> activity.device & 1) == 0) {
        devicesSeen_ |= std::uint64_t{1} << activity.device;
        sendFootprint(activity.device, deviceBytes_);
    }
    pending_.append(reinterpret_cast<const char*>(&activity), sizeof(activity));
    if (pending_.size() >= kActivitiesOfFrame * sizeof(activity)) sendActivities();
}

void Collector::device(std::uint32_t ordinal, std::uint64_t bytes, std::string_view name) {
    send(wire::Type::Device,
         Payload().put<std::int64_t>(ordinal).put(static_cast<std::int64_t>(bytes)).text(name));
}

void Collector::sendActivities() {
    if (pending_.empty()) return;
    const auto count = static_cast<std::uint32_t>(pending_.size() / sizeof(wire::Activity));
    std::string payload(reinterpret_cast<const char*>(&count), sizeof(count));
    send(wire::Type::Activities, payload + pending_);
    pending_.clear();
}

/// Both clocks at one moment; the closest of a few tries.
void Collector::sendClock() {
    std::int64_t width = INT64_MAX, host = 0;
    std::uint64_t device = 0;
    for (int i = 0; i < kClockTries; ++i) {
        std::uint64_t stamp = 0;
        const std::int64_t before = host_.now();
        if (cupti_->timestamp(&stamp) != CUPTI_SUCCESS) return;
        const std::int64_t after = host_.now();
        if (after - before >= width) continue;
        width = after - before;
        host = before + width / 2;
        device = stamp;
    }
    send(wire::Type::Clock, Payload().put(static_cast<std::int64_t>(device)).put(host).put(width));
}

void Collector::sendFootprint(std::uint32_t ordinal, std::int64_t bytes) {
    const std::int64_t now = host_.now();
    send(wire::Type::Footprint, Payload().put(now).put<std::int64_t>(ordinal).put(bytes));
    send(wire::Type::Footprint,
         Payload().put(now).put<std::int64_t>(-1).put(
             bytes == 0 ? 0 : static_cast<std::int64_t>(buffers_.allocatedBytes())));
}

}  // namespace hw::profiler::cupti
