// SPDX-License-Identifier: MIT
// A thin RAII layer over SQLite. Private to core/session.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace hw::core {

class Database;

/// A prepared statement. Bind by position from 1, read columns from 0. Throws DatabaseError, which
/// Session's interface turns into an Error (guarded.h).
class Statement {
public:
    Statement(Database& database, std::string_view sql);
    ~Statement();
    Statement(Statement&& other) noexcept;
    Statement& operator=(Statement&&) = delete;

    Statement& bind(int at, std::int64_t value);
    Statement& bind(int at, double value);
    Statement& bind(int at, std::string_view value);
    Statement& bindBlob(int at, std::span<const std::byte> value);
    Statement& bind(int at, const std::optional<std::int64_t>& value);
    Statement& bindNull(int at);
    Statement& bindFrom(int at, const Statement& row, int column);  // whatever is there

    bool step();     // true: a row is there
    void execute();  // step to the end, then reset
    void reset();

    bool isNull(int column) const;
    bool isInteger(int column) const;
    std::int64_t integer(int column) const;
    std::optional<std::int64_t> optionalInteger(int column) const;
    double real(int column) const;
    std::string text(int column) const;
    std::span<const std::byte> blob(int column) const;  // valid until the next step()

private:
    Database* database_;
    sqlite3_stmt* statement_ = nullptr;
};

struct DatabaseError {
    int code;  // SQLite's result code
    std::string message;
};

class Database {
public:
    /// `path` may be ":memory:". Throws DatabaseError.
    Database(const std::string& path, int openFlags);
    ~Database();
    Database(const Database&) = delete;
    Database& operator=(const Database&) = delete;

    void execute(const char* sql);
    std::int64_t lastInsertId() const;
    bool hasTable(std::string_view name);   // older sessions lack some
    std::int64_t pragma(const char* name);  // its value, 0 when it has none
    static constexpr int kBusyMilliseconds = 5000;
    /// How long a statement waits for another connection's lock; kBusyMilliseconds at first.
    void setBusyTimeout(int milliseconds);
    /// A private copy on a temporary file, which SQLite removes with it. Throws DatabaseError.
    std::unique_ptr<Database> copy() const;
    /// Prepared once and kept as long as the database is open: for what every step asks. Whoever
    /// uses it binds all of it, and comes to its end or resets it. `sql` must stay, as literals do.
    Statement& kept(std::string_view sql);
    sqlite3* handle() const { return handle_; }
    /// From now on a statement that works longer than a file of that size can ask for fails with
    /// SQLITE_INTERRUPT: pages of a damaged file may lead to each other without end.
    void limitWork(const std::string& path);

private:
    friend class Statement;
    static constexpr std::int64_t kStepsOfAnyFile = 200'000'000;  // of SQLite's virtual machine
    static constexpr std::int64_t kStepsPerByte = 20;
    static constexpr int kStepsBetweenLooks = 1'000'000;

    void beginStep(sqlite3_stmt* statement);
    void endSteps(sqlite3_stmt* statement) const;
    bool isTooMuch(std::int64_t steps);

    sqlite3* handle_ = nullptr;
    std::string limited_;                       // the file, where work is limited
    std::int64_t mostSteps_ = kStepsOfAnyFile;  // of one statement
    std::int64_t steps_ = 0;                    // of the step of a statement that goes on
    std::map<std::string_view, Statement> kept_;
};

}  // namespace hw::core
