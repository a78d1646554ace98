// SPDX-License-Identifier: MIT
// Prepared inserts of the rows of steps. Private to core/session; everything here throws
// DatabaseError.
#pragma once

#include <optional>
#include <string>

#include "core/session/database.h"
#include "core/session/rows.h"

namespace hw::core {

class RowInserts {
public:
    /// Into the tables whose names are those of schema.sql after this prefix.
    RowInserts(Database& database, const std::string& prefix);

    void insert(const OpRow& row);  // with its inputs, outputs, writes and stack
    void insert(const StorageRow& row);
    void insert(const TensorRow& row);
    void insert(const StepContents& rows);

private:
    Statement& stackOf(std::optional<Statement>& statement, const char* table);

    Database& database_;
    std::string prefix_;
    Statement op_, input_, output_, write_, storage_, tensor_;
    // Older sessions lack the tables of call stacks: prepared only where one is written.
    std::optional<Statement> opStack_, storageStack_;
};

}  // namespace hw::core
