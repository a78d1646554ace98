// SPDX-License-Identifier: MIT
#include "core/session/database.h"

#include <sqlite3.h>

#include <filesystem>
#include <fstream>
#include <utility>

#include "core/session/session.h"

namespace hw::core {
namespace {

// SQLite cites SQL, which a damaged file may have of any kind.
std::string oneLine(std::string text) {
    for (char& c : text)
        if (static_cast<unsigned char>(c) < 0x20) c = ' ';
    return text;
}
std::string messageOf(sqlite3* handle) {
    return oneLine(sqlite3_errmsg(handle));
}

}  // namespace

bool isDatabaseFile(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::string head(15, '\0');
    file.read(head.data(), static_cast<std::streamsize>(head.size()));
    return head == "SQLite format 3";
}

Database::Database(const std::string& path, int openFlags) {
    const int code = sqlite3_open_v2(path.c_str(), &handle_, openFlags, nullptr);
    if (code != SQLITE_OK) {
        DatabaseError error{code, handle_ ? messageOf(handle_) : std::string("out of memory")};
        sqlite3_close(handle_);
        handle_ = nullptr;
        throw error;
    }
    sqlite3_busy_timeout(handle_, kBusyMilliseconds);
    // A file may come from anybody: none of its views and triggers runs, and nothing of its schema
    // calls functions with side effects.
    for (const int off : {SQLITE_DBCONFIG_TRUSTED_SCHEMA, SQLITE_DBCONFIG_ENABLE_VIEW,
                          SQLITE_DBCONFIG_ENABLE_TRIGGER})
        sqlite3_db_config(handle_, off, 0, nullptr);
    sqlite3_db_config(handle_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    execute("PRAGMA ignore_check_constraints = ON");
}

void Database::limitWork(const std::string& path) {
    limited_ = path;
    sqlite3_progress_handler(
        handle_, kStepsBetweenLooks,
        [](void* database) {
            auto* const self = static_cast<Database*>(database);
            self->steps_ += kStepsBetweenLooks;
            return self->isTooMuch(self->steps_) ? 1 : 0;
        },
        this);
}

/// The file may have grown since the last look.
bool Database::isTooMuch(std::int64_t steps) {
    if (steps <= mostSteps_) return false;
    std::int64_t bytes = 0;
    for (const char* suffix : {"", "-wal"}) {
        std::error_code error;
        const auto size = std::filesystem::file_size(limited_ + suffix, error);
        if (!error) bytes += static_cast<std::int64_t>(size);
    }
    mostSteps_ = kStepsOfAnyFile + kStepsPerByte * bytes;
    return steps > mostSteps_;
}

void Database::beginStep(sqlite3_stmt* statement) {
    if (limited_.empty()) return;
    steps_ = 0;
    if (isTooMuch(sqlite3_stmt_status(statement, SQLITE_STMTSTATUS_VM_STEP, 0)))
        throw DatabaseError{SQLITE_INTERRUPT, "interrupted"};
}

/// What the statement does next counts from the beginning.
void Database::endSteps(sqlite3_stmt* statement) const {
    if (!limited_.empty()) sqlite3_stmt_status(statement, SQLITE_STMTSTATUS_VM_STEP, 1);
}

Database::~Database() {
    kept_.clear();
    sqlite3_close_v2(handle_);
}

Statement& Database::kept(std::string_view sql) {
    const auto at = kept_.find(sql);
    if (at == kept_.end()) return kept_.emplace(sql, Statement(*this, sql)).first->second;
    at->second.reset();  // what has come to its end takes no values before
    return at->second;
}

void Database::execute(const char* sql) {
    char* message = nullptr;
    const int code = sqlite3_exec(handle_, sql, nullptr, nullptr, &message);
    if (code != SQLITE_OK) {
        DatabaseError error{code, message ? oneLine(message) : messageOf(handle_)};
        sqlite3_free(message);
        throw error;
    }
}

std::int64_t Database::lastInsertId() const {
    return sqlite3_last_insert_rowid(handle_);
}

bool Database::hasTable(std::string_view name) {
    Statement from(*this, "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?");
    return from.bind(1, name).step();
}

std::int64_t Database::pragma(const char* name) {
    Statement statement(*this, std::string("PRAGMA ") + name);
    return statement.step() ? statement.integer(0) : 0;
}

void Database::setBusyTimeout(int milliseconds) {
    sqlite3_busy_timeout(handle_, milliseconds);
}

std::unique_ptr<Database> Database::copy() const {
    auto copied = std::make_unique<Database>("", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
    sqlite3_backup* backup = sqlite3_backup_init(copied->handle_, "main", handle_, "main");
    if (backup != nullptr) {
        sqlite3_backup_step(backup, -1);
        sqlite3_backup_finish(backup);
    }
    if (const int code = sqlite3_errcode(copied->handle_); code != SQLITE_OK)
        throw DatabaseError{code, messageOf(copied->handle_)};
    return copied;
}

Statement::Statement(Database& database, std::string_view sql) : database_(&database) {
    const int code = sqlite3_prepare_v3(database.handle(), sql.data(), static_cast<int>(sql.size()),
                                        SQLITE_PREPARE_PERSISTENT, &statement_, nullptr);
    if (code != SQLITE_OK) throw DatabaseError{code, messageOf(database.handle())};
}

Statement::~Statement() {
    sqlite3_finalize(statement_);
}

Statement::Statement(Statement&& other) noexcept
    : database_(other.database_), statement_(std::exchange(other.statement_, nullptr)) {}

Statement& Statement::bind(int at, std::int64_t value) {
    sqlite3_bind_int64(statement_, at, value);
    return *this;
}
Statement& Statement::bind(int at, double value) {
    sqlite3_bind_double(statement_, at, value);
    return *this;
}
Statement& Statement::bind(int at, std::string_view value) {
    sqlite3_bind_text64(statement_, at, value.data(), value.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
    return *this;
}
Statement& Statement::bindBlob(int at, std::span<const std::byte> value) {
    // SQLite takes a null pointer as NULL; an empty blob needs an address.
    static constexpr std::byte kNothing{};
    sqlite3_bind_blob64(statement_, at, value.empty() ? &kNothing : value.data(), value.size(),
                        SQLITE_TRANSIENT);
    return *this;
}
Statement& Statement::bind(int at, const std::optional<std::int64_t>& value) {
    return value ? bind(at, *value) : bindNull(at);
}
Statement& Statement::bindNull(int at) {
    sqlite3_bind_null(statement_, at);
    return *this;
}

Statement& Statement::bindFrom(int at, const Statement& row, int column) {
    sqlite3_bind_value(statement_, at, sqlite3_column_value(row.statement_, column));
    return *this;
}

bool Statement::step() {
    database_->beginStep(statement_);
    const int code = sqlite3_step(statement_);
    if (code == SQLITE_ROW) return true;
    if (code == SQLITE_DONE) {
        database_->endSteps(statement_);
        return false;
    }
    DatabaseError error{code, messageOf(database_->handle())};
    sqlite3_reset(statement_);
    throw error;
}

void Statement::execute() {
    while (step()) {
    }
    reset();
}

void Statement::reset() {
    sqlite3_reset(statement_);
    database_->endSteps(statement_);
}

bool Statement::isNull(int column) const {
    return sqlite3_column_type(statement_, column) == SQLITE_NULL;
}
bool Statement::isInteger(int column) const {
    return sqlite3_column_type(statement_, column) == SQLITE_INTEGER;
}
std::int64_t Statement::integer(int column) const {
    return sqlite3_column_int64(statement_, column);
}
std::optional<std::int64_t> Statement::optionalInteger(int column) const {
    if (isNull(column)) return std::nullopt;
    return integer(column);
}
double Statement::real(int column) const {
    return sqlite3_column_double(statement_, column);
}
std::string Statement::text(int column) const {
    const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
    return bytes ? std::string(bytes,
                               static_cast<std::size_t>(sqlite3_column_bytes(statement_, column)))
                 : std::string();
}
std::span<const std::byte> Statement::blob(int column) const {
    const void* bytes = sqlite3_column_blob(statement_, column);
    return {static_cast<const std::byte*>(bytes),
            static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
}

}  // namespace hw::core
