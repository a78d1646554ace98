// SPDX-License-Identifier: MIT
// Opening, creating and closing session files: what is a session, what is too new, what was cut.
#include <sqlite3.h>

#include <filesystem>
#include <fstream>

#include "core/session/damage.h"
#include "core/session/database.h"
#include "core/session/memory_events.h"
#include "core/session/migrate.h"
#include "core/session/schema_check.h"
#include "core/session/session_error.h"
#include "core/session/session_writer.h"
#include "core/session/statements.h"

namespace hw::core {

extern const char* const kSessionSchema;

namespace {

// A writer is used by one thread at a time: SQLite need not lock for every value.
constexpr int kAlone = SQLITE_OPEN_NOMUTEX;

constexpr std::int64_t kApplicationId = 0x4857544d;  // "HWTM"
constexpr std::int64_t kFullCheckLimit = 32
                                         << 20;  // bytes; larger files are checked by their length

Status checkIsSession(Database& database, const std::string& path) {
    if (database.pragma("application_id") != kApplicationId)
        return badInput(
            "'" + path + "' is a SQLite file, but no Highwater session",
            "record one with 'highwater record', or import a trace with 'highwater import'");
    const std::int64_t version = database.pragma("user_version");
    if (version > kSessionSchemaVersion)
        return badInput("'" + path + "' has session schema version " + std::to_string(version) +
                            ", this program reads up to version " +
                            std::to_string(kSessionSchemaVersion),
                        "open it with a newer Highwater");
    if (version < 1)
        return badInput("'" + path + "' has no session schema version",
                        "record or import it again");
    if (const std::string foreign = foreignParts(database); !foreign.empty())
        return badInput("'" + path + "' holds " + foreign + ", which no session has",
                        "it was changed after it was recorded; ask for the original");
    return {};
}

// An older file that cannot be read as it is, or one whose indexes are damaged, is put right:
// itself when it is open for writing, a private copy otherwise.
Status makeReady(std::unique_ptr<Database>& database, const std::string& path, bool writing) {
    const auto own = [&] {
        if (!writing) database = database->copy();
    };
    const bool complete = isComplete(*database, path);
    const auto size = database->pragma("page_count") * database->pragma("page_size");
    if (!complete || size <= kFullCheckLimit) {
        const Damage damage = findDamage(*database);
        if (!complete || damage.inTables)
            return badInput("'" + path + "' is damaged or was cut short" + damage.lost,
                            "copy it again from where it was recorded");
        if (damage.inIndexes) {
            own();
            database->execute("REINDEX");
        }
    }
    if (database->pragma("user_version") <
        (writing ? kSessionSchemaVersion : kOldestReadableVersion)) {
        own();
        migrate(*database);
    }
    return {};
}

// Without a lock, and without files beside it.
std::unique_ptr<Database> openImmutable(const std::string& path) {
    std::string uri = "file:";
    for (const char c : path) {
        if (c == '%')
            uri += "%25";
        else if (c == '?')
            uri += "%3f";
        else if (c == '#')
            uri += "%23";
        else
            uri += c;
    }
    return std::make_unique<Database>(uri + "?immutable=1", SQLITE_OPEN_READONLY | SQLITE_OPEN_URI);
}

// Left by a writer that was killed, and moved away from its WAL since. SQLite would begin another
// one beside it, for a reader too.
bool lacksItsWal(const std::string& path) {
    constexpr std::streamoff kReadVersion = 19;
    std::ifstream file(path, std::ios::binary);
    std::error_code ignored;
    return file.seekg(kReadVersion) && file.get() == 2 &&
           !std::filesystem::exists(path + "-wal", ignored);
}

std::unique_ptr<Database> openForReading(const std::string& path) {
    if (lacksItsWal(path)) return openImmutable(path);
    try {
        auto database = std::make_unique<Database>(path, SQLITE_OPEN_READONLY);
        database->pragma("application_id");  // reads the file: a locked-away WAL shows here
        return database;
    } catch (const DatabaseError& error) {
        if (isLocked(error)) throw;
        // A read-only folder cannot hold the shared memory of a WAL: read the file as it is.
        return openImmutable(path);
    }
}

Result<std::unique_ptr<Database>> openReady(const std::string& path, bool writing) {
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored))
        return badInput("there is no file '" + path + "'", "check the path");
    if (!isDatabaseFile(path))
        return badInput("'" + path + "' is no Highwater session",
                        "record one with 'highwater record'");
    try {
        auto database = writing ? std::make_unique<Database>(path, SQLITE_OPEN_READWRITE | kAlone)
                                : openForReading(path);
        if (!writing) database->limitWork(path);
        HW_TRY(checkIsSession(*database, path));
        HW_TRY(makeReady(database, path, writing));
        return database;
    } catch (const DatabaseError& error) {
        return sessionError(path, "opening", error);
    }
}

}  // namespace

Session::Session(std::unique_ptr<Database> database, std::string path)
    : database_(std::move(database)), path_(std::move(path)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

Session::Session(SessionWriter&& writer) noexcept {
    writer.close();
    database_ = std::move(writer.database_);
    path_ = std::move(writer.path_);
}

Result<Session> Session::open(const std::string& path) {
    auto database = openReady(path, false);
    if (!database) return database.error();
    return Session(std::move(*database), path);
}

SessionWriter::SessionWriter(std::unique_ptr<Database> database, std::string path)
    : Session(std::move(database), std::move(path)) {}

SessionWriter::SessionWriter(SessionWriter&& other) noexcept
    : Session(std::move(other.database_), std::move(other.path_)),
      statements_(std::move(other.statements_)),
      deviceStatements_(std::move(other.deviceStatements_)),
      stackStatements_(std::move(other.stackStatements_)),
      memoryEvents_(std::move(other.memoryEvents_)) {}

SessionWriter& SessionWriter::operator=(SessionWriter&& other) noexcept {
    std::swap(database_, other.database_);
    std::swap(path_, other.path_);
    std::swap(statements_, other.statements_);
    std::swap(deviceStatements_, other.deviceStatements_);
    std::swap(stackStatements_, other.stackStatements_);
    std::swap(memoryEvents_, other.memoryEvents_);
    return *this;
}

SessionWriter::~SessionWriter() {
    close();
}

void SessionWriter::close() noexcept {
    statements_.reset();
    deviceStatements_.reset();
    stackStatements_.reset();
    if (!database_) return;
    try {
        writeGathered();
        memoryEvents_.reset();
        database_->setBusyTimeout(0);
        database_->execute("PRAGMA journal_mode = DELETE");
        database_->setBusyTimeout(Database::kBusyMilliseconds);
    } catch (const DatabaseError&) {
        // A reader is attached; the WAL stays beside the file and is read with it.
    }
}

SessionWriter::Statements& SessionWriter::statements() {
    if (!statements_) statements_ = std::make_unique<Statements>(*database_);
    return *statements_;
}

Result<SessionWriter> SessionWriter::open(const std::string& path) {
    auto database = openReady(path, true);
    if (!database) return database.error();
    return SessionWriter(std::move(*database), path);
}

Result<SessionWriter> SessionWriter::create(const std::string& path) {
    std::error_code ignored;
    if (std::filesystem::exists(path, ignored))
        return badInput("'" + path + "' exists already",
                        "choose another name with -o, or move it away");
    try {
        auto database =
            std::make_unique<Database>(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | kAlone);
        database->execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;");
        database->execute(kSessionSchema);
        return SessionWriter(std::move(database), path);
    } catch (const DatabaseError& error) {
        for (const char* ending : {"", "-wal", "-shm", "-journal"})
            std::filesystem::remove(path + ending, ignored);
        const std::string what = "cannot create '" + path + "': " + error.message;
        if ((error.code & 0xff) == SQLITE_FULL || (error.code & 0xff) == SQLITE_IOERR)
            return Error{ErrorCode::Internal, what, "make room, or write elsewhere"};
        return badInput(what, "check that the folder exists and is writable");
    }
}

SessionWriter SessionWriter::inMemory() {
    auto database =
        std::make_unique<Database>(":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
    database->execute(kSessionSchema);
    return {std::move(database), ":memory:"};
}

}  // namespace hw::core
