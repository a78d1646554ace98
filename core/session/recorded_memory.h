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

    TrainingGraph graph;  // names, layers and sizes only: no edges, so it cannot be planned
    std::vector<Moment> moments;
    std::vector<OpSpan> spans;  // by begin
    std::vector<Lifetime> lifetimes;
    std::int64_t originNs = 0;  // the session's clock at the first op or event; 0 without times
    std::int64_t ordinal = -1;  // of the device; -1: the host
    Bytes reserved;             // from the driver, the most that was recorded; 0: not recorded
    std::string device;         // whose curve it is: the one with the highest, not the host's
    bool timed = true;          // otherwise one event counts as one millisecond
    std::int64_t storages = 0;  // of the device, those among them that were not loaded too
};

/// Of the recorded device with the most memory; none where no source told it. Errors: BadInput when
/// the session cannot be read.
Result<std::optional<Bytes>> deviceCapacity(const Session& session);

/// When each op of a graph that came from `session` began, on the clock of the recorded process; 0
/// where it was not recorded. Errors: as above.
Result<std::vector<std::int64_t>> opBegins(const Session& session, const TrainingGraph& graph);
/// Peak: of moments, storages and lifetimes, whose number may be millions, the highest moment alone
/// and what is live then; the session's series tell the curve.
enum class RecordedDetail : std::uint8_t { Everything, Peak };

/// Errors: BadInput when the session holds neither ops nor memory events.
Result<RecordedMemory> loadRecordedMemory(const Session& session,
                                          RecordedDetail detail = RecordedDetail::Everything);

}  // namespace hw::core
