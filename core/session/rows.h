// SPDX-License-Identifier: MIT
// The rows of a session, as they are written and read.
//
// Op arguments (`OpRow::args`) are a JSON object {"a": [positional…], "k": {name: keyword…}} of:
//   null, true, false, 12, "text", [list…]       themselves
//   {"f": "0x1.8p+1"}                            a float, as C hex ("nan", "inf", "-inf" too)
//   {"c": ["0x1p+0", "0x0p+0"]}                  a complex number
//   {"t": 17}                                    the tensor with session id 17
//   {"dtype": "float32"} {"layout": "strided"} {"device": "cpu"}
//   {"memory_format": "contiguous_format"} {"generator": 0}
//   {"opaque": "repr"}                           something that cannot be replayed
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/units.h"
#include "core/graph/training_graph.h"
#include "core/plan/plan.h"

namespace hw::core {

/// The n-th process of a session, from 0, has its ids and seqs from n times this on: those of
/// several ranks lie one behind the other on the event axis.
inline constexpr std::int64_t kIdsOfProcess = std::int64_t{1} << 40;
/// Where the block of a seq's process begins.
constexpr std::int64_t firstSeqOfProcess(std::int64_t seq) {
    return seq / kIdsOfProcess * kIdsOfProcess;
}

// Ids and seqs are the writer's; seq is one axis for ops, constants and
// releases (schema.sql).
struct ProcessRow {
    std::int64_t id = 0;  // told when read
    std::int64_t pid = 0;
    std::string command, host, framework, frameworkVersion;
    std::int64_t startedNs = 0;
    int rank = 0;
    std::optional<int> exitStatus;            // as a shell says it; none: not known
    std::optional<std::int64_t> worldSize{};  // ranks of the whole training; none: not told
    std::string run{};                        // the same for all its ranks; empty: not told
    /// Of a joined session: what the process's times were moved by, and how sure that is.
    std::optional<std::int64_t> clockOffsetNs{}, clockErrorNs{};
};
struct LayerRow {
    std::int64_t id = 0;
    std::optional<std::int64_t> parent;
    std::string path, type;
};
/// A place in the program's code.
struct SourceFrameRow {
    std::int64_t id = 0;
    std::string file, function;
    std::int64_t line = 0;   // from 1; 0: not told
    bool framework = false;  // of the framework's own code
};
/// A call stack, by its innermost frame.
struct StackRow {
    std::int64_t id = 0;
    std::optional<std::int64_t> parent;  // the stack of what called it
    std::int64_t frame = 0;
};
struct OpRow {
    std::int64_t id = 0, seq = 0;
    std::string name, overload;
    Phase phase = Phase::Unknown;
    std::optional<std::int64_t> layer;
    std::int64_t thread = 0;
    std::int64_t beginNs = 0;
    Nanoseconds duration;
    Bytes workspace;
    std::optional<std::int64_t> liveBytes;
    bool random = false;
    std::string args;                   // JSON as above; empty when not recorded
    std::optional<std::int64_t> stack;  // written only; read by core/session/call_stacks.h
    struct Input {
        std::int64_t tensor;
        std::int32_t version;
    };
    struct Output {
        std::int64_t tensor;
        bool makesStorage;
    };
    struct Write {
        std::int64_t storage;
        std::int32_t versionBefore;
    };
    std::vector<Input> inputs;
    std::vector<Output> outputs;
    std::vector<Write> writes;
    // Told when read.
    std::optional<std::int64_t> deviceNs;    // of its kernels
    std::optional<std::int64_t> measuredNs;  // from a profile run, as the next
    std::int64_t measuredWorkspace = 0;
};
struct StorageRow {
    std::int64_t id = 0;
    Bytes bytes;
    std::string device = "cpu";
    Category category = Category::Unknown;
    std::optional<std::int64_t> layer;
    std::optional<std::int64_t> creator;  // op id
    std::int64_t allocSeq = 0;
    std::optional<std::int64_t> freeSeq;
    std::optional<std::int64_t> address;
    std::optional<std::int64_t> stack;  // where no op made it; written only
};
struct TensorRow {
    std::int64_t id = 0, storage = 0;
    std::optional<std::int64_t> creator;
    std::string dtype, sizes, strides;  // sizes, strides: JSON arrays of elements
    std::int64_t offset = 0;            // elements
};
/// Rows of a step that can be written as one: its ops, the storages that came and went in it (what
/// outlives a step changes later), and their tensors.
struct StepContents {
    std::vector<OpRow> ops;
    std::vector<StorageRow> storages;
    std::vector<TensorRow> tensors;

    bool empty() const { return ops.empty() && storages.empty() && tensors.empty(); }
};
struct StepRow {
    std::int64_t id = 0;
    std::int64_t firstSeq = 0, endSeq = 0;
    std::int64_t beginNs = 0, endNs = 0;
    std::optional<std::int64_t> allocatorBeginBytes, allocatorPeakBytes;
    std::string environment;   // JSON object
    std::int64_t process = 1;  // processes.id
};
struct GapRow {
    std::optional<std::int64_t> step;
    std::optional<std::int64_t> beginNs, endNs;
    std::string what, why;
};
struct MemoryEventRow {
    std::optional<std::int64_t> seq;  // its place among ops, where the source tells it
    std::int64_t timeNs = 0;          // 0 in all events of a source that tells no times
    std::string kind;                 // "alloc", "free", "segment_alloc", …
    std::optional<std::int64_t> address;
    Bytes bytes;                                      // signed
    std::optional<std::int64_t> allocated, reserved;  // the device's totals after the event
    std::int64_t device = 0;                          // ordinal; -1: the host
    std::optional<std::int64_t> op;                   // in which it happened
};
struct SignatureRow {  // one allocation of an op
    std::int64_t op = 0;
    int position = 0;
    Bytes bytes;
    std::optional<int> output;
    int beginEvent = 0;
    std::optional<int> endEvent;
};
struct PlanRow {
    std::int64_t id = 0, step = 0, createdNs = 0;
    Plan plan;
    std::int64_t recomputedOps = 0;
    double solveSeconds = 0;
};
struct RunRow {
    std::int64_t id = 0;
    std::optional<std::int64_t> plan;  // plans.id; none: the unplanned order
    std::int64_t step = 0, createdNs = 0;
    std::string device = "cpu";
    Bytes predictedPeak, measuredPeak;
    std::optional<std::int64_t> arenaBytes;
    Nanoseconds time, baselineTime;
    std::int64_t compared = 0, different = 0, nonfinite = 0;
    std::string details;  // JSON
};
struct Generator {
    std::int64_t id = 0;
    std::string device;
    std::vector<std::byte> state;
};
struct SessionCounts {
    std::int64_t ops = 0, tensors = 0, storages = 0, layers = 0, steps = 0;
    std::int64_t events = 0;  // allocations, frees and memory events
};

/// A device that a trace or a recording names.
struct DeviceRow {
    std::int64_t id = 0;
    std::string kind;          // "cuda", "cpu", "host"
    std::int64_t ordinal = 0;  // of MemoryEventRow::device; -1: the host
    std::string name;          // empty where it was not told
    std::optional<std::int64_t> capacityBytes;

    /// As StorageRow::device names it: "cpu", "cuda:0".
    std::string label() const { return ordinal < 0 ? kind : kind + ":" + std::to_string(ordinal); }
};
/// A kernel or a copy on a device. Times in nanoseconds on the axis of the ops.
struct DeviceWorkRow {
    std::optional<std::int64_t> device, stream;
    std::string name;        // of a copy: its kind
    std::int64_t bytes = 0;  // of a copy
    std::int64_t beginNs = 0, endNs = 0;
    std::optional<std::int64_t> op, correlation;  // the correlation is a kernel's
};
/// A span of host time: an NVTX range ("nvtx"), a wait for the device ("sync"), work of CUPTI and
/// the driver ("overhead"), a stretch that a snapshot names ("annotation", `thread` is its device).
struct RangeRow {
    std::string kind, name;
    std::int64_t thread = 0;
    std::int64_t beginNs = 0, endNs = 0;
};
struct DeviceWorkCounts {
    std::int64_t kernels = 0, copies = 0;
    std::int64_t kernelsWithoutOp = 0;
};
/// An op as a span of its thread's time.
struct OpSpanRow {
    std::int64_t id = 0, seq = 0;
    std::string name, overload;
    Phase phase = Phase::Unknown;
    std::optional<std::string> layer;  // its path
    std::int64_t thread = 0, beginNs = 0, durationNs = 0;
    Bytes workspace;
    std::optional<std::int64_t> nextBeginNs;  // of the next op on the thread
};
struct OpTimeRow {
    std::int64_t op = 0;  // id
    std::int64_t beginNs = 0, durationNs = 0;
    std::optional<std::int64_t> deviceNs;
};

}  // namespace hw::core
