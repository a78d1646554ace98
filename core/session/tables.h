// SPDX-License-Identifier: MIT
// Tables as they are, row by row: those of a session, and those of a SQLite file of another
// program.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/session/session.h"

namespace hw::core {

class Statement;

struct TableColumn {
    std::string name;
    bool blob = false;  // bytes, no text
};

/// A row while it is visited. Columns count from 0; NULL reads as 0 and as an empty text.
class TableRow {
public:
    explicit TableRow(const Statement& row) : row_(row) {}

    std::int64_t integer(int column) const;
    std::string text(int column) const;
    std::span<const std::byte> blob(int column) const;  // valid while the row is visited

private:
    const Statement& row_;
};

using TableVisitor = std::function<void(const TableRow&)>;

/// Names of the session's tables. Errors here and below: BadInput when the file cannot be read.
Result<std::vector<std::string>> tableNames(const Session& session);
Result<std::vector<TableColumn>> tableColumns(const Session& session, const std::string& table);
/// All columns of every row, of packed steps (schema.sql), too. What `visit` throws passes.
Status visitTable(const Session& session, const std::string& table, const TableVisitor& visit);

/// A SQLite file that another program wrote, open for reading. Its content is not trusted: views
/// and virtual tables, which could compute without end, are as if they were not there.
class TableFile {
public:
    static Result<TableFile> open(const std::string& path);

    TableFile(TableFile&&) noexcept;
    TableFile& operator=(TableFile&&) noexcept;
    ~TableFile();

    /// Empty where there is no such table.
    Result<std::vector<TableColumn>> columns(const std::string& table) const;
    /// These columns of every row by those of `order`, then in the order in which they were
    /// written. An empty name stands for a column that the file lacks: it reads as NULL. What
    /// `visit` throws passes.
    Status visit(const std::string& table, const std::vector<std::string>& columns,
                 const std::vector<std::string>& order, const TableVisitor& visit) const;

private:
    explicit TableFile(std::unique_ptr<Database> database);
    std::unique_ptr<Database> database_;
};

}  // namespace hw::core
