// SPDX-License-Identifier: MIT
// What writes into a session file.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/session/session.h"

namespace hw::core {

class MemoryEventWriter;

/// A session that is open for writing; it can be read as well. One writer at a time. Errors:
/// BadInput when the file cannot be written.
class SessionWriter : public Session {
public:
    /// Opens an existing file. Errors: those of Session::open, and BadInput when the file cannot
    /// be written. An older schema is brought up to date and damaged indexes are rebuilt, in the
    /// file.
    static Result<SessionWriter> open(const std::string& path);
    /// Creates a new file in WAL mode. Errors: BadInput when it exists already or cannot be
    /// written.
    static Result<SessionWriter> create(const std::string& path);
    static SessionWriter inMemory();

    SessionWriter(SessionWriter&&) noexcept;
    SessionWriter& operator=(SessionWriter&&) noexcept;
    ~SessionWriter() override;  // leaves one plain file: the WAL is checkpointed and removed

    /// Group rows with begin() and commit(); a step becomes visible with insert(StepRow).
    Status begin();
    /// Errors: also Internal where the file is not at its path any more (requireThere()).
    Status commit();
    /// Errors: Internal where the file was removed, or another one took its place, while it was
    /// open: what is written goes nowhere.
    Status requireThere() const;

    Status insert(const ProcessRow& row);
    /// How the process ended, as a shell says it: 128 + the signal where one killed it. Nothing
    /// where no process of the session has this number.
    Status setExitStatus(std::int64_t pid, int status);
    Status insert(const LayerRow& row);
    Status insert(const SourceFrameRow& row);
    Status insert(const StackRow& row);
    Status insert(const OpRow& row);  // with its inputs, outputs and writes
    Status insert(const StorageRow& row);
    Status insert(const TensorRow& row);
    /// After the step's ops and storages: its curve of live bytes is made of them. `packed`: more
    /// of them, which are written as one (core/session/packed_step.h) and are read like the others.
    Status insert(const StepRow& row, const std::vector<std::int64_t>& finalTensors,
                  const StepContents& packed = {});
    Status insert(const GapRow& row);
    Status insertGenerator(std::int64_t step, const Generator& generator);
    Status insertContents(std::int64_t step, std::int64_t storage, std::span<const std::byte> data);
    Status setFreed(std::int64_t storage, std::int64_t freeSeq);
    Status setStorageBytes(std::int64_t storage, Bytes bytes);
    Status setCategory(std::int64_t storage, Category category, std::optional<std::int64_t> layer);
    Status setMeta(const std::string& key, const std::string& value);

    /// Gathered: it is in the file after commit(), or when the session is closed. The series
    /// "device N allocated" and "device N reserved" (bytes; "host …" for the host) grow with it.
    Status insert(const MemoryEventRow& row);
    /// Writes gathered memory events before commit() does.
    Status flushMemoryEvents();
    /// Appends to the series of that name, which is made with the first samples. x never falls: a
    /// lower one counts as the one before.
    Status insertSamples(const SeriesKey& key, std::span<const Sample> samples);

    /// The id of the device of this kind and ordinal, which is written when it is first named.
    Result<std::int64_t> device(const std::string& kind, std::int64_t ordinal);
    Status describeDevice(std::int64_t device, const std::string& name,
                          std::optional<std::int64_t> capacityBytes);
    Status insertKernel(const DeviceWorkRow& row);
    Status insertCopy(const DeviceWorkRow& row);
    Status insert(const RangeRow& row);
    /// What an op costs becomes the time of its kernels, where it launched any.
    Status chargeKernels();

    /// Rows that are written as one go into tables: before what they say is to change.
    Status unpackStep(std::int64_t step);
    /// Of an op in the tables.
    Status setMeasured(std::int64_t op, Nanoseconds time, Bytes workspace);
    Status replaceSignatures(
        const std::vector<SignatureRow>& rows);  // of the ops that occur in rows
    Result<std::int64_t> insert(const PlanRow& row);
    /// The id of the same plan of that step, inserted where there is none yet.
    Result<std::int64_t> keepPlan(PlanRow row);
    Result<std::int64_t> insert(const RunRow& row);

private:
    friend class Session;  // reads on where a writer is done
    struct Statements;     // prepared inserts, made on first use
    struct DeviceStatements;
    struct StackStatements;
    SessionWriter(std::unique_ptr<Database> database, std::string path);
    Statements& statements();
    DeviceStatements& deviceStatements();
    StackStatements& stackStatements();
    MemoryEventWriter& memoryEventWriter();
    bool insertPacked(std::int64_t step, const StepContents& rows);
    void writeGathered() const override;
    void close() noexcept;

    std::unique_ptr<Statements> statements_;
    std::unique_ptr<DeviceStatements> deviceStatements_;
    std::unique_ptr<StackStatements> stackStatements_;
    std::unique_ptr<MemoryEventWriter> memoryEvents_;
};

/// A new file that `fill` writes: it grows beside its name and gets it when it is whole, so that
/// whatever goes wrong leaves nothing behind. Errors: BadInput where the file exists already or
/// cannot be written; those of `fill`.
Status writeSession(const std::string& path, const std::function<Status(SessionWriter&)>& fill);

}  // namespace hw::core
