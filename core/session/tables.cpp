// SPDX-License-Identifier: MIT
#include "core/session/tables.h"

#include <sqlite3.h>

#include "core/session/access.h"
#include "core/session/damage.h"
#include "core/session/guarded.h"
#include "core/session/step_rows.h"

namespace hw::core {
namespace {

std::string quoted(const std::string& name) {
    std::string text = "\"";
    for (const char c : name) text.append(c == '"' ? 2 : 1, c);
    return text + '"';
}

std::vector<TableColumn> columnsOf(Database& database, const std::string& table) {
    Statement from(database, "SELECT name, type FROM pragma_table_info(?)");
    std::vector<TableColumn> columns;
    for (from.bind(1, table); from.step();)
        columns.push_back({from.text(0), from.text(1) == "BLOB"});
    return columns;
}

// SQLite's words as they are: the caller knows what the file should have been.
template <class Work>
auto reading(Work work) {
    return guarded(work, [](const DatabaseError& error) { return badInput(error.message); });
}

}  // namespace

std::int64_t TableRow::integer(int column) const {
    return row_.integer(column);
}
std::string TableRow::text(int column) const {
    return row_.text(column);
}
std::span<const std::byte> TableRow::blob(int column) const {
    return row_.blob(column);
}

Result<std::vector<std::string>> tableNames(const Session& session) {
    return guarded(session.path(), "reading tables", [&] {
        Statement from(databaseOf(session),
                       "SELECT name FROM sqlite_master WHERE type = 'table'"
                       " AND name NOT LIKE 'sqlite_%' ORDER BY name");
        std::vector<std::string> names;
        while (from.step()) names.push_back(from.text(0));
        return names;
    });
}

Result<std::vector<TableColumn>> tableColumns(const Session& session, const std::string& table) {
    return guarded(session.path(), "reading a table",
                   [&] { return columnsOf(databaseOf(session), table); });
}

Status visitTable(const Session& session, const std::string& table, const TableVisitor& visit) {
    return guarded(session.path(), "reading a table", [&] {
        Database& database = databaseOf(session);
        const std::string packed = showPackedRows(database, table);
        std::string sql = "SELECT * FROM main." + quoted(table);
        if (!packed.empty()) sql += " UNION ALL SELECT * FROM " + packed + " ORDER BY 1, 2";
        Statement from(database, sql);
        const TableRow row(from);
        while (from.step()) visit(row);
    });
}

TableFile::TableFile(std::unique_ptr<Database> database) : database_(std::move(database)) {}
TableFile::TableFile(TableFile&&) noexcept = default;
TableFile& TableFile::operator=(TableFile&&) noexcept = default;
TableFile::~TableFile() = default;

Result<TableFile> TableFile::open(const std::string& path) {
    return reading([&] {
        auto database = std::make_unique<Database>(path, SQLITE_OPEN_READONLY);
        if (!isComplete(*database, path))
            throw DatabaseError{SQLITE_CORRUPT, "the file was cut short"};
        database->limitWork(path);
        return TableFile(std::move(database));
    });
}

Result<std::vector<TableColumn>> TableFile::columns(const std::string& table) const {
    return reading([&] {
        Statement known(*database_,
                        "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
                        " AND rootpage > 0 AND sql LIKE 'CREATE TABLE%'");
        known.bind(1, table);
        return known.step() ? columnsOf(*database_, table) : std::vector<TableColumn>();
    });
}

Status TableFile::visit(const std::string& table, const std::vector<std::string>& columns,
                        const std::vector<std::string>& order, const TableVisitor& visit) const {
    return reading([&] {
        std::string sql = "SELECT ";
        for (std::size_t i = 0; i < columns.size(); ++i)
            sql += (i == 0 ? "" : ", ") + (columns[i].empty() ? "NULL" : quoted(columns[i]));
        sql += " FROM " + quoted(table) + " ORDER BY ";
        for (const std::string& column : order) sql += quoted(column) + ", ";
        Statement from(*database_, sql + "rowid");
        const TableRow row(from);
        while (from.step()) visit(row);
    });
}

}  // namespace hw::core
