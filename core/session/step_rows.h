// SPDX-License-Identifier: MIT
// The rows of steps, wherever they lie: in tables, or packed in one blob a step. Private to
// core/session; everything here throws DatabaseError.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/session/database.h"
#include "core/session/packed_step.h"

namespace hw::core {

/// A packed step that cannot be read.
struct DamagedStep : DatabaseError {};

/// None where the rows of the step lie in tables.
std::optional<StepContents> packedStep(Database& database, std::int64_t step, OpDetail detail);
/// All that are packed, in the order of the steps; what is left out with Spans is empty.
void visitPackedSteps(
    Database& database, OpDetail detail,
    const std::function<void(std::int64_t step, const StepContents& rows)>& visit);
/// Rows in blobs.
PackedCounts countPacked(Database& database);

/// Of the whole session: ops by seq, as with Spans, and storages by the time at which they came
/// into being.
void visitOps(Database& database, const std::function<void(const OpRow&)>& visit);
void visitStorages(Database& database, const std::function<void(const StorageRow&)>& visit);

/// By seq.
std::vector<OpRow> readOps(Database& database, std::int64_t step, OpDetail detail);
/// Those alive in a step, by the time at which they came into being.
std::vector<StorageRow> readStorages(Database& database, const StepRow& step);

/// One step: a packed one is unpacked once.
class StepRows {
public:
    StepRows(Database& database, const StepRow& step, OpDetail detail);

    std::vector<OpRow> takeOps();              // as readOps, once
    std::vector<StorageRow> storages() const;  // as readStorages
    const TensorRow* tensor(std::int64_t id);  // null: none; valid until the next call

private:
    Database& database_;
    StepRow step_;
    OpDetail detail_;
    std::optional<StepContents> packed_;
    std::unordered_map<std::int64_t, const TensorRow*> packedTensors_;
    Statement tensor_;
    TensorRow found_;
};

/// A temporary table with the packed rows of this table, by its name in SQL; empty where there are
/// none. It goes with the connection.
std::string showPackedRows(Database& database, const std::string& table);

/// A packed step's rows go into their tables, in one transaction of their own or within the one
/// that is open: for writers that change them. Nothing where they are there already.
void unpackIntoTables(Database& database, std::int64_t step);
void unpackAllIntoTables(Database& database);

}  // namespace hw::core
