// SPDX-License-Identifier: MIT
// The session file: one SQLite database that is complete in itself.
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
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/base/units.h"
#include "core/graph/training_graph.h"
#include "core/plan/plan.h"
#include "core/session/series.h"

namespace hw::core {

class Database;
class MemoryEventWriter;

inline constexpr int kSessionSchemaVersion = 2;
/// The n-th process of a session, from 0, has its ids and seqs from n times this on: those of
/// several ranks lie one behind the other on the event axis.
inline constexpr std::int64_t kIdsOfProcess = std::int64_t{1} << 40;
/// Where the block of a seq's process begins.
constexpr std::int64_t firstSeqOfProcess(std::int64_t seq) {
    return seq / kIdsOfProcess * kIdsOfProcess;
}

// Rows as they are written. Ids and seqs are the writer's; seq is one axis for ops, constants and
// releases (schema.sql).
struct ProcessRow {
    std::int64_t id = 0;  // told when read
    std::int64_t pid = 0;
    std::string command, host, framework, frameworkVersion;
    std::int64_t startedNs = 0;
    int rank = 0;
};
struct LayerRow {
    std::int64_t id = 0;
    std::optional<std::int64_t> parent;
    std::string path, type;
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
    std::string args;  // JSON as above; empty when not recorded
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
};
struct TensorRow {
    std::int64_t id = 0, storage = 0;
    std::optional<std::int64_t> creator;
    std::string dtype, sizes, strides;  // sizes, strides: JSON arrays of elements
    std::int64_t offset = 0;            // elements
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

/// An open session. Move-only; one writer at a time, any number of readers.
class Session {
public:
    enum class Mode { Read, Write };

    /// Opens an existing file. Errors: BadInput when it is missing, no session, damaged (the
    /// message names what is lost; damaged indexes are rebuilt), or of a newer schema (the message
    /// names both versions). An older one is brought up to date: the file itself in Write mode, a
    /// private copy of it in Read mode. Read mode falls back to an immutable open when the folder
    /// is not writable.
    static Result<Session> open(const std::string& path, Mode mode = Mode::Read);
    /// Creates a new file in WAL mode. Errors: BadInput when it exists already or cannot be
    /// written.
    static Result<Session> create(const std::string& path);
    static Session inMemory();

    Session(Session&&) noexcept;
    Session& operator=(Session&&) noexcept;
    ~Session();  // leaves one plain file: the WAL is checkpointed and removed

    const std::string& path() const;
    Database& database() { return *database_; }

    // Writing. Group rows with begin() and commit(); a step becomes visible with insert(StepRow).
    Status begin();
    Status commit();
    Status insert(const ProcessRow& row);
    /// How the process ended, as a shell says it: 128 + the signal where one killed it. Nothing
    /// where no process of the session has this number.
    Status setExitStatus(std::int64_t pid, int status);
    Status insert(const LayerRow& row);
    Status insert(const OpRow& row);  // with its inputs, outputs and writes
    Status insert(const StorageRow& row);
    Status insert(const TensorRow& row);
    /// After the step's ops and storages: its curve of live bytes is made of them.
    Status insert(const StepRow& row, const std::vector<std::int64_t>& finalTensors);
    Status insert(const GapRow& row);
    /// Gathered: it is in the file after commit(), or when the session is closed. The series
    /// "device N allocated" and "device N reserved" (bytes; "host …" for the host) grow with it.
    Status insert(const MemoryEventRow& row);
    /// Appends to the series of that name, which is made with the first samples. x never falls: a
    /// lower one counts as the one before.
    Status insertSamples(const SeriesKey& key, std::span<const Sample> samples);
    Status insertGenerator(std::int64_t step, const Generator& generator);
    Status insertContents(std::int64_t step, std::int64_t storage, std::span<const std::byte> data);
    /// Writes gathered memory events before commit() does.
    Status flushMemoryEvents();
    Status setFreed(std::int64_t storage, std::int64_t freeSeq);
    Status setStorageBytes(std::int64_t storage, Bytes bytes);
    Status setCategory(std::int64_t storage, Category category, std::optional<std::int64_t> layer);
    Status setMeta(const std::string& key, const std::string& value);
    Status setMeasured(std::int64_t op, Nanoseconds time, Bytes workspace);
    Status replaceSignatures(
        const std::vector<SignatureRow>& rows);  // of the ops that occur in rows
    Result<std::int64_t> insert(const PlanRow& row);
    Result<std::int64_t> insert(const RunRow& row);

    // Reading.
    Result<std::string> meta(const std::string& key);  // empty when absent
    Result<SessionCounts> counts();
    Result<std::vector<ProcessRow>> processes();
    Result<std::vector<StepRow>> steps();
    Result<std::int64_t> lastStep();                    // BadInput when there is no complete step
    Result<std::vector<OpRow>> ops(std::int64_t step);  // with inputs, outputs, writes and args
    Result<std::vector<TensorRow>> tensors();
    Result<std::vector<GapRow>> gaps();
    Result<std::vector<MemoryEventRow>> memoryEvents();
    /// Those with begin <= time < end, in the order of their arrival.
    Result<std::vector<MemoryEventRow>> memoryEvents(std::int64_t beginNs, std::int64_t endNs);
    Result<std::vector<SeriesRow>> series();
    /// The series within begin <= x < end for a view `width` wide: at most about four times as many
    /// buckets, the finest ones are single samples. The first is the one that holds at `begin`; the
    /// outer ones may reach beyond the window. Costs the same however long the series is.
    Result<std::vector<SeriesBucket>> window(std::int64_t series, std::int64_t begin,
                                             std::int64_t end, std::int64_t width);
    Result<std::vector<Generator>> generators(std::int64_t step);
    /// Empty when none were stored.
    Result<std::vector<std::byte>> contents(std::int64_t step, std::int64_t storage);
    Result<std::vector<SignatureRow>> signatures(std::int64_t step);
    Result<std::vector<PlanRow>> plans();
    Result<std::vector<RunRow>> runs();
    bool hasMeasuredCosts(std::int64_t step);

private:
    struct Statements;  // prepared inserts, made on first use
    explicit Session(std::unique_ptr<Database> database, std::string path);
    Statements& statements();
    MemoryEventWriter& memoryEventWriter();
    void flush();  // throws DatabaseError
    std::unique_ptr<Database> database_;
    std::unique_ptr<Statements> statements_;
    std::unique_ptr<MemoryEventWriter> memoryEvents_;
    std::string path_;
    bool writing_ = false;
};

/// The graph of one step with the given costs; without `costs`: measured where present.
/// Errors: BadInput when the step does not exist or its rows contradict each other.
Result<TrainingGraph> loadGraph(Session& session, std::int64_t step,
                                std::optional<CostSet> costs = std::nullopt);

}  // namespace hw::core
