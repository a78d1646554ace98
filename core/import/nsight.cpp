// SPDX-License-Identifier: MIT
#include "core/import/nsight.h"

#include <sqlite3.h>

#include <set>
#include <stdexcept>

#include "core/import/checked.h"
#include "core/import/trace_writer.h"

namespace hw::core {
namespace {

constexpr const char* kTable = "CUDA_GPU_MEMORY_USAGE_EVENTS";
constexpr const char* kHint =
    "export it again with 'nsys export --type sqlite' from a report with --cuda-memory-usage=true";

// Empty where there is no such table; a view of this name could compute without end.
std::set<std::string> columnsOf(Database& database) {
    Statement table(database,
                    std::string("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name"
                                " = '") +
                        kTable + "' AND sql NOT LIKE 'CREATE VIRTUAL%'");
    if (!table.step()) return {};
    Statement from(database, std::string("SELECT name FROM pragma_table_info('") + kTable + "')");
    std::set<std::string> names;
    while (from.step()) names.insert(from.text(0));
    return names;
}

// CUPTI's kinds of memory: pageable, pinned, device, array, managed, …
bool isHostMemory(std::int64_t kind) {
    return kind == 1 || kind == 2;
}

class NsightImporter {
public:
    NsightImporter(Database& file, Session& session)
        : file_(file), session_(session), writer_(session) {}

    Status run() {
        const std::set<std::string> columns = columnsOf(file_);
        if (columns.empty())
            throw std::invalid_argument("there is no table " + std::string(kTable));
        for (const char* needed : {"start", "address", "bytes", "memoryOperationType"})
            if (!columns.contains(needed))
                throw std::invalid_argument(std::string(kTable) + " has no column " + needed);
        writer_.require(session_.begin());
        read(columns);
        if (events_ == 0) throw std::invalid_argument(std::string(kTable) + " holds no event");
        ProcessRow process;
        process.pid = pid_, process.command = "Nsight Systems";
        writer_.require(session_.insert(process));
        writer_.require(session_.setMeta("no_step",
                                         "Nsight Systems tells the driver's memory, not "
                                         "the ops that need it"));
        stateGaps();
        return session_.commit();
    }

private:
    struct Live {
        std::int64_t storage, bytes;
    };
    struct Device {
        std::int64_t bytes = 0;
        std::unordered_map<std::int64_t, Live> live;  // by address
    };

    void read(const std::set<std::string>& columns) {
        const auto either = [&](const char* column, const char* instead) {
            return columns.contains(column) ? std::string(column) : std::string(instead);
        };
        Statement from(file_, "SELECT start, address, bytes, memoryOperationType, " +
                                  either("memKind", "3") + ", " + either("deviceId", "0") + ", " +
                                  either("globalPid", "0") + " FROM " + kTable +
                                  " ORDER BY start, rowid");
        while (from.step()) {
            // A globalPid holds the process id in bits 24 to 47.
            if (pid_ == 0) pid_ = (from.integer(6) >> 24) & 0xffffff;
            event(from.integer(0), from.integer(1), from.integer(2), from.integer(3),
                  from.integer(4), from.integer(5));
        }
    }

    // CUPTI's operations: 1 allocates, 2 frees.
    void event(std::int64_t time, std::int64_t address, std::int64_t bytes, std::int64_t operation,
               std::int64_t kind, std::int64_t ordinal) {
        if (operation != 1 && operation != 2) {
            ++unknown_;
            return;
        }
        if (bytes < 0) throw std::invalid_argument("an event has a negative size");
        const bool host = isHostMemory(kind);
        const std::int64_t id = host ? writer_.device("host", -1) : writer_.device("cuda", ordinal);
        MemoryEventRow row;
        row.seq = events_++;
        row.device = writer_.deviceOf(id).ordinal;
        row.timeNs = time, row.address = address;
        Device& device = devices_[id];
        const auto live = device.live.find(address);
        if (operation == 1) {
            row.kind = "alloc", row.bytes = Bytes(bytes);
            allocate(device, row, writer_.deviceOf(id).name());
        } else {
            row.kind = "free";
            if (live == device.live.end()) {
                ++unmatched_;
                row.bytes = Bytes(-bytes);
            } else {
                row.bytes = Bytes(-live->second.bytes);  // a free's own size is often 0
                device.bytes -= live->second.bytes;
                writer_.require(session_.setFreed(live->second.storage, *row.seq));
                device.live.erase(live);
            }
        }
        row.allocated = device.bytes;
        writer_.memory(row);
    }
    void allocate(Device& device, const MemoryEventRow& row, const std::string& name) {
        StorageRow storage;
        storage.id = storages_++;
        storage.bytes = row.bytes;
        storage.device = name;
        storage.allocSeq = *row.seq;
        storage.address = row.address;
        writer_.require(session_.insert(storage));
        device.live[*row.address] = {storage.id, row.bytes.count()};
        device.bytes = checkedAdd(device.bytes, row.bytes.count());
    }

    void stateGaps() {
        writer_.gap("ops",
                    "Nsight Systems records the driver's allocations: a framework's caching "
                    "allocator hands them out unseen, and no op is named");
        writer_.gap("levels",
                    "bytes count from the start of the trace, whatever was allocated "
                    "before");
        if (unmatched_ > 0)
            writer_.gap("lifetimes", std::to_string(unmatched_) +
                                         " frees are of memory allocated before the trace");
        if (unknown_ > 0)
            writer_.gap("events", std::to_string(unknown_) +
                                      " events neither allocate nor free, and are left out");
    }

    Database& file_;
    Session& session_;
    TraceWriter writer_;
    std::unordered_map<std::int64_t, Device> devices_;
    std::int64_t pid_ = 0, events_ = 0, storages_ = 0, unmatched_ = 0, unknown_ = 0;
};

}  // namespace

bool isNsightFile(const std::string& path) {
    if (!isDatabaseFile(path)) return false;
    try {
        Database file(path, SQLITE_OPEN_READONLY);
        return !columnsOf(file).empty();
    } catch (const DatabaseError&) {
        return false;
    }
}

Status importNsight(const std::string& path, Session& session) {
    try {
        Database file(path, SQLITE_OPEN_READONLY);
        columnsOf(file);  // a damaged file shows here
        return importing("Nsight Systems export", kHint,
                         [&] { return NsightImporter(file, session).run(); });
    } catch (const DatabaseError& error) {
        return badInput("Nsight Systems export: " + error.message, kHint);
    }
}

const ImportFormat& nsightFormat() {
    static const ImportFormat format{
        .name = "nsight",
        .patterns = {"*.sqlite", "*.db"},
        .recognizes = [](const FileStart& file) { return isNsightFile(file.path); },
        .read = [](const std::string& path, const std::string&,
                   Session& session) -> Result<Joined> {
            if (const Status done = importNsight(path, session); !done)
                return inFile(path, done.error());
            return Joined{};
        }};
    return format;
}

}  // namespace hw::core
