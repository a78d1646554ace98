// SPDX-License-Identifier: MIT
// The payloads of format.h as structs. Decoding checks every length; a payload with a byte too few
// or too many is no record.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "profiler/wire/activity.h"
#include "profiler/wire/format.h"

namespace hw::profiler::wire {

using Payload = std::span<const std::byte>;

struct HelloRecord {
    std::int64_t pid = 0;
};
struct ProcessRecord {
    std::string framework, version, command;
    std::int64_t startedNs = 0, rank = -1;  // -1: not of a distributed training
    std::int64_t worldSize = -1;            // -1: not told
    std::string run;                        // what ranks of one run have in common; "": not told
};
struct MilestoneRecord {
    std::uint32_t what = 0;
};
struct LayerRecord {
    std::int64_t id = 0, parent = -1;
    std::string path, type;
};
struct StorageRecord {
    std::int64_t id = 0, seq = 0, bytes = 0, creator = -1, layer = -1, address = 0;
    std::uint8_t category = 0;
    std::string device;
};
struct TensorRecord {
    std::int64_t id = 0, storage = 0, creator = -1, offset = 0;
    std::string dtype;
    std::vector<std::int64_t> sizes, strides;
};
struct OpRecord {
    std::int64_t id = 0, seq = 0, beginNs = 0, durationNs = 0, workspace = 0, live = 0, layer = -1,
                 thread = 0, stack = -1;
    std::uint8_t phase = 0, random = 0;
    std::string name, overload, args;
    struct Input {
        std::int64_t tensor;
        std::int32_t version;
    };
    struct Output {
        std::int64_t tensor;
        bool makes;
    };
    struct Write {
        std::int64_t storage;
        std::int32_t before;
    };
    std::vector<Input> inputs;
    std::vector<Output> outputs;
    std::vector<Write> writes;
};
struct SourceFrameRecord {
    std::int64_t id = 0, line = 0;
    std::uint8_t framework = 0;
    std::string file, function;
};
struct StackNodeRecord {
    std::int64_t id = 0, parent = -1, source = 0;
};
struct FreeRecord {
    std::int64_t storage = 0, seq = 0;
};
struct CategoryRecord {
    std::uint8_t category = 0;
    std::int64_t layer = -1;
    std::vector<std::int64_t> storages;
};
struct ResizeRecord {
    std::int64_t storage = 0, bytes = 0;
};
struct ContentsRecord {
    std::int64_t seq = 0, storage = 0, total = 0, offset = 0;
    std::vector<std::byte> data;
};
struct GeneratorRecord {
    std::int64_t seq = 0, id = 0;
    std::string device;
    std::vector<std::byte> state;
};
struct StepStartRecord {
    std::int64_t seq = 0, timeNs = 0, live = 0;
};
struct StepEndRecord {
    std::int64_t seq = 0, timeNs = 0, live = 0, peak = 0;
    std::string environment;
    std::vector<std::int64_t> tensors;
};
struct GapRecord {
    std::int64_t beginNs = 0, endNs = 0;
    std::string what, why;
};
struct FaultRecord {
    std::string what;
};
struct DeviceRecord {
    std::int64_t ordinal = 0, capacity = 0;
    std::string name;
};
struct ClockRecord {
    std::int64_t deviceNs = 0, hostNs = 0, widthNs = 0;
};
struct NameRecord {
    std::int64_t id = 0;
    std::string text;
};
struct ActivitiesRecord {
    std::vector<Activity> activities;
};
struct RefusalRecord {
    std::uint32_t code = 0;
    std::string what, hint;
};
struct FootprintRecord {
    std::int64_t timeNs = 0, ordinal = 0, bytes = 0;
};
/// A step of a live run. Times in ns, peak in live bytes of the framework's allocator.
struct LiveStepRecord {
    std::int64_t step = 0, beginNs = 0, endNs = 0, peak = 0, recomputed = 0, restored = 0,
                 pinned = 0, ops = 0, runtimeNs = 0,  // of the runtime's own work
        recomputedNs = 0,                             // of recomputations on the CPU
        evictions = 0,                                // under a budget
        verified = 0, verifyingNs = 0,                // bytes compared, and what checksums took
        uncompared = 0,                               // ops run again that are not deterministic
        offloaded = 0, waitedNs = 0;                  // bytes that left, and waits for copies
    LiveMode mode = LiveMode::None;
};
struct LiveDivergenceRecord {
    std::int64_t step = 0, op = 0;
    std::string expected, found;
};
struct LiveCurveRecord {
    std::int64_t step = 0, base = 0;
    std::vector<std::int64_t> bytes;
};
/// Allocations of a step that had failed: how many were made after evictions (`allocations`), how
/// many were not; `op` asked for the first, of `bytes`.
struct LiveRescueRecord {
    std::int64_t step = 0, allocations = 0, refused = 0, bytes = 0, freed = 0, evictions = 0;
    std::string op;
};
/// What was recomputed has other bytes than what was dropped.
struct LiveMismatchRecord {
    std::int64_t op = 0;       // its number in the step
    std::int64_t program = 0;  // of the plan; -1: no plan
    std::int64_t bytes = 0;    // of the storage
    MismatchKind kind = MismatchKind::Unknown;
    std::string name, layer, line;  // the last two: empty where they are not known
};
struct LiveNoteRecord {
    LiveNoteKind kind = LiveNoteKind::Remark;
    std::string text;
};
struct ConfigRecord {
    std::int32_t steps = 1, warmup = 0, every = 1;
    std::uint32_t flags = 0;
    std::int64_t cap = 0;                 // most live bytes of the framework's allocator; 0: any
    std::int64_t heuristic = -1;          // of DTR, which keeps within the cap; -1: none does
    char nativeCapture[kPathBytes] = "";  // library for the framework; empty: capture in Python
    char livePrograms[kPathBytes] =
        "";  // of each plan a file of this name with ".0", or ".rank1.0", …
};

bool decode(Payload payload, HelloRecord& record);
bool decode(Payload payload, ProcessRecord& record);
bool decode(Payload payload, MilestoneRecord& record);
bool decode(Payload payload, LayerRecord& record);
bool decode(Payload payload, StorageRecord& record);
bool decode(Payload payload, TensorRecord& record);
bool decode(Payload payload, OpRecord& record);
bool decode(Payload payload, SourceFrameRecord& record);
bool decode(Payload payload, StackNodeRecord& record);
bool decode(Payload payload, FreeRecord& record);
bool decode(Payload payload, CategoryRecord& record);
bool decode(Payload payload, ResizeRecord& record);
bool decode(Payload payload, ContentsRecord& record);
bool decode(Payload payload, GeneratorRecord& record);
bool decode(Payload payload, StepStartRecord& record);
bool decode(Payload payload, StepEndRecord& record);
bool decode(Payload payload, GapRecord& record);
bool decode(Payload payload, FaultRecord& record);
bool decode(Payload payload, DeviceRecord& record);
bool decode(Payload payload, ClockRecord& record);
bool decode(Payload payload, NameRecord& record);
bool decode(Payload payload, ActivitiesRecord& record);
bool decode(Payload payload, RefusalRecord& record);
bool decode(Payload payload, FootprintRecord& record);
bool decode(Payload payload, LiveStepRecord& record);
bool decode(Payload payload, LiveDivergenceRecord& record);
bool decode(Payload payload, LiveCurveRecord& record);
bool decode(Payload payload, LiveRescueRecord& record);
bool decode(Payload payload, LiveMismatchRecord& record);
bool decode(Payload payload, LiveNoteRecord& record);
std::vector<std::byte> encode(const ConfigRecord& record);

}  // namespace hw::profiler::wire
