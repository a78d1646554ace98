// SPDX-License-Identifier: MIT
// The session file: one SQLite database that is complete in itself. Here it is read; what writes is
// in session_writer.h.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/graph/training_graph.h"
#include "core/session/rows.h"
#include "core/session/series.h"

namespace hw::core {

class Database;
class SessionWriter;

inline constexpr int kSessionSchemaVersion = 3;
/// The oldest version that is read as it is: what came since is tables that it lacks.
inline constexpr int kOldestReadableVersion = 2;

/// By its first bytes: whether it is a SQLite file, as sessions are.
bool isDatabaseFile(const std::string& path);

/// An open session, to be read. Move-only; any number of readers beside one writer. Reading leaves
/// the file as it is, byte for byte. All errors are BadInput: the file cannot be read.
class Session {
public:
    /// Opens an existing file. Errors: BadInput when it is missing, no session, damaged (the
    /// message names what is lost), or of a newer schema (the message names both versions). An
    /// older one, or one with damaged indexes, is put right in a private copy. Falls back to an
    /// immutable open when the folder is not writable.
    static Result<Session> open(const std::string& path);

    /// A writer that is done is read on. What it gathered is in the session.
    Session(SessionWriter&& writer) noexcept;  // NOLINT(google-explicit-constructor)
    Session(Session&&) noexcept;
    Session& operator=(Session&&) noexcept;
    virtual ~Session();

    const std::string& path() const { return path_; }

    Result<std::string> meta(const std::string& key) const;  // empty when absent
    Result<SessionCounts> counts() const;
    Result<std::vector<ProcessRow>> processes() const;
    Result<std::vector<LayerRow>> layers() const;
    Result<std::vector<StepRow>> steps() const;
    Result<std::int64_t> lastStep() const;                    // BadInput: there is no complete step
    Result<std::vector<OpRow>> ops(std::int64_t step) const;  // with inputs, outputs, writes, args
    Result<std::vector<OpSpanRow>> opSpans(std::int64_t step) const;  // by seq
    Result<std::vector<OpTimeRow>> opTimes() const;                   // of all ops
    Result<std::vector<TensorRow>> tensors() const;
    /// Those alive in a step, by the time at which they came into being.
    Result<std::vector<StorageRow>> storages(const StepRow& step) const;
    /// Whose storages the session holds: "cpu", "cuda:0", …
    Result<std::vector<std::string>> storageDevices() const;
    Result<std::vector<GapRow>> gaps() const;
    Result<std::vector<Generator>> generators(std::int64_t step) const;
    /// Empty when none were stored.
    Result<std::vector<std::byte>> contents(std::int64_t step, std::int64_t storage) const;
    Result<std::vector<SignatureRow>> signatures(std::int64_t step) const;
    Result<std::vector<PlanRow>> plans() const;
    Result<std::vector<RunRow>> runs() const;
    bool hasMeasuredCosts(std::int64_t step) const;

    Result<std::vector<DeviceRow>> devices() const;
    Result<DeviceWorkCounts> deviceWorkCounts() const;
    Result<std::vector<MemoryEventRow>> memoryEvents() const;
    /// Those with begin <= time < end, in the order of their arrival.
    Result<std::vector<MemoryEventRow>> memoryEvents(std::int64_t beginNs,
                                                     std::int64_t endNs) const;
    /// All of them in the order of their arrival, one at a time.
    Status visitMemoryEvents(const std::function<void(const MemoryEventRow&)>& visit) const;
    Result<std::vector<SeriesRow>> series() const;
    /// The samples of a series in order, one at a time.
    Status visitSamples(std::int64_t series, const std::function<void(const Sample&)>& visit) const;
    /// The series within begin <= x < end for a view `width` wide: at most about four times as many
    /// buckets, the finest ones are single samples. The first is the one that holds at `begin`; the
    /// outer ones may reach beyond the window. Costs the same however long the series is.
    Result<std::vector<SeriesBucket>> window(std::int64_t series, std::int64_t begin,
                                             std::int64_t end, std::int64_t width) const;

protected:
    Session(std::unique_ptr<Database> database, std::string path);
    /// Called before anything is read that a writer may still hold back. Throws DatabaseError.
    virtual void writeGathered() const {}

    std::unique_ptr<Database> database_;
    std::string path_;

private:
    friend struct SessionAccess;
};

/// The graph of one step with the given costs; without `costs`: measured where present.
/// Errors: BadInput when the step does not exist or its rows contradict each other.
Result<TrainingGraph> loadGraph(const Session& session, std::int64_t step,
                                std::optional<CostSet> costs = std::nullopt);

}  // namespace hw::core
