// SPDX-License-Identifier: MIT
// What an imported trace tells of a device's memory when it holds no step: the allocator's curve,
// with the ops and storages that are known beside it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/graph/training_graph.h"
#include "core/session/session.h"

namespace hw::core {

/// A device whose allocator was recorded.
struct RecordedDevice {
    std::int64_t ordinal = -1;  // -1: the host
    std::string label;          // "cuda:0", "host"
    std::string name;           // "Tesla V100-SXM2-16GB"; empty where it was not told
    std::int64_t events = 0;    // with the bytes that were allocated then
    Bytes peak, end;            // allocated: the most, and after the last event
    Bytes reserved;             // from the driver, the most that was recorded; 0: not recorded
    bool timed = false;         // its events have times
};

struct RecordedMemory {
    /// From an event of the allocator to the next one.
    struct Moment {
        Nanoseconds begin;  // since the trace's first op or event
        Bytes allocated;
        OpIndex op = kNone;  // in which the event happened
    };
    struct OpSpan {  // an op that no other op on its thread encloses
        OpIndex op = kNone;
        Nanoseconds begin, end;
    };
    struct Lifetime {  // of a storage: moments [first, last]
        StorageIndex storage = kNone;
        std::int32_t first = 0, last = 0;
    };

    /// A storage, loaded or not: in memory during events [first, end) of the device.
    struct Held {
        std::int64_t storage = 0;  // its id in the session
        Bytes bytes;
        LayerIndex layer = kNone;
        OpIndex op = kNone;  // in which it was allocated
        std::int32_t first = 0, end = 0;
        Category category = Category::Unknown;
    };

    /// An event of the device, wherever it is not a moment.
    struct Event {
        std::int64_t place = 0;  // on the session's clock; without times its number in the session
        Bytes allocated;
    };

    TrainingGraph graph;  // names, layers and sizes only: no edges, so it cannot be planned
    std::vector<Moment> moments;
    std::vector<std::int64_t> seqs;  // of the events of the moments
    std::vector<OpSpan> spans;       // by begin
    std::vector<Lifetime> lifetimes;
    std::int32_t peakEvent = 0;  // of the device, the first that reaches the peak
    std::vector<Held> held;      // RecordedDetail::Peak: of every storage, by first
    std::vector<Event> events;   // RecordedDetail::Peak: all of the device
    std::int64_t originNs = 0;   // the session's clock at the first op or event; 0 without times
    std::int64_t ordinal = -1;   // of the device; -1: the host
    Bytes reserved;              // from the driver, the most that was recorded; 0: not recorded
    std::string device;      // whose curve it is ("cuda:0"); without memory events: that works most
    std::string deviceName;  // as RecordedDevice::name
    bool timed = true;       // otherwise one event counts as one millisecond
    Nanoseconds end;         // of the last op, and of the device's last work
    std::int64_t storages = 0;  // of the device, those among them that were not loaded too
    std::vector<RecordedDevice> devices;  // all of the session, by ordinal

    /// From the origin to a time of the session's clock; below 0 before it.
    Nanoseconds since(std::int64_t clockNs) const;
};

/// By ordinal; empty where no memory was recorded. Errors: BadInput when the session cannot be
/// read.
Result<std::vector<RecordedDevice>> recordedDevices(const Session& session);
/// The one with that label; without a label the one with the highest peak, the host only where
/// there is no other (nullptr: there is none at all). Errors: Usage when no device has the label.
Result<const RecordedDevice*> chosenDevice(const std::vector<RecordedDevice>& devices,
                                           const std::string& label);

/// "cuda:0 (Tesla V100-SXM2-16GB)"; the label alone where no name was told.
std::string titleOf(const RecordedDevice& device);

/// Of the recorded device with the most memory; none where no source told it. Errors: BadInput when
/// the session cannot be read.
Result<std::optional<Bytes>> deviceCapacity(const Session& session);

/// When each op of a graph that came from `session` began, on the clock of the recorded process; 0
/// where it was not recorded. Errors: as above.
Result<std::vector<std::int64_t>> opBegins(const Session& session, const TrainingGraph& graph);
/// Peak: of moments, storages and lifetimes, whose number may be millions, the highest moment alone
/// and what is live then; the session's series tell the curve. Of the others `held` and `events`
/// keep what splits that curve.
enum class RecordedDetail : std::uint8_t { Everything, Peak };

/// Of the device with the label, or of chosenDevice(). `devices`: what recordedDevices() says,
/// where that is known already; it reads all events. Errors: BadInput when the session holds
/// neither ops, memory events nor device work; Usage as chosenDevice().
Result<RecordedMemory> loadRecordedMemory(const Session& session,
                                          RecordedDetail detail = RecordedDetail::Everything,
                                          const std::string& device = {},
                                          const std::vector<RecordedDevice>* devices = nullptr);

}  // namespace hw::core
