// SPDX-License-Identifier: MIT
#include "core/import/nsight.h"

#include <set>
#include <stdexcept>

#include "core/import/checked.h"
#include "core/import/trace_writer.h"
#include "core/session/tables.h"

namespace hw::core {
namespace {

constexpr const char* kTable = "CUDA_GPU_MEMORY_USAGE_EVENTS";
constexpr const char* kNsightHint =
    "export it again with 'nsys export --type sqlite' from a report with --cuda-memory-usage=true";

// CUPTI's kinds of memory: pageable, pinned, device, array, managed, …
bool isHostMemory(std::int64_t kind) {
    return kind == 1 || kind == 2;
}

class NsightImporter {
public:
    NsightImporter(const TableFile& file, SessionWriter& session)
        : file_(file), session_(session), writer_(session) {}

    Status run() {
        std::set<std::string> columns;
        for (const TableColumn& column : readable(file_.columns(kTable)))
            columns.insert(column.name);
        if (columns.empty())
            throw std::invalid_argument("there is no table " + std::string(kTable));
        for (const char* needed : {"start", "address", "bytes", "memoryOperationType"})
            if (!columns.contains(needed))
                throw std::invalid_argument(std::string(kTable) + " has no column " + needed);
        require(session_.begin());
        read(columns);
        if (events_ == 0) throw std::invalid_argument(std::string(kTable) + " holds no event");
        ProcessRow process;
        process.pid = pid_, process.command = "Nsight Systems";
        require(session_.insert(process));
        require(session_.setMeta("no_step",
                                 "Nsight Systems tells the driver's memory, not "
                                 "the ops that need it"));
        stateGaps();
        return session_.commit();
    }

private:
    // What is wrong with the file is wrong input.
    template <class T>
    static T readable(Result<T> result) {
        if (!result) throw std::invalid_argument(result.error().what);
        return std::move(*result);
    }

    struct Live {
        std::int64_t storage, bytes;
    };
    struct Device {
        std::int64_t bytes = 0;
        std::unordered_map<std::int64_t, Live> live;  // by address
    };

    void read(const std::set<std::string>& columns) {
        const auto ifThere = [&](const char* column) {
            return columns.contains(column) ? std::string(column) : std::string();
        };
        const Status read =
            file_.visit(kTable,
                        {"start", "address", "bytes", "memoryOperationType", ifThere("memKind"),
                         ifThere("deviceId"), ifThere("globalPid")},
                        {"start"}, [this](const TableRow& row) {
                            // A globalPid holds the process id in bits 24 to 47.
                            if (pid_ == 0) pid_ = (row.integer(6) >> 24) & 0xffffff;
                            event(row.integer(0), row.integer(1), row.integer(2), row.integer(3),
                                  row.integer(4), row.integer(5));
                        });
        if (!read) throw std::invalid_argument(read.error().what);
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
            allocate(device, row, writer_.deviceOf(id).label());
        } else {
            row.kind = "free";
            if (live == device.live.end()) {
                ++unmatched_;
                row.bytes = Bytes(-bytes);
            } else {
                row.bytes = Bytes(-live->second.bytes);  // a free's own size is often 0
                device.bytes -= live->second.bytes;
                require(session_.setFreed(live->second.storage, *row.seq));
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
        require(session_.insert(storage));
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

    const TableFile& file_;
    SessionWriter& session_;
    TraceWriter writer_;
    std::unordered_map<std::int64_t, Device> devices_;
    std::int64_t pid_ = 0, events_ = 0, storages_ = 0, unmatched_ = 0, unknown_ = 0;
};

}  // namespace

bool isNsightFile(const std::string& path) {
    if (!isDatabaseFile(path)) return false;
    const auto file = TableFile::open(path);
    if (!file) return false;
    const auto columns = file->columns(kTable);
    return columns && !columns->empty();
}

Status importNsight(const std::string& path, SessionWriter& session) {
    const auto file = TableFile::open(path);
    if (!file) return badInput("Nsight Systems export: " + file.error().what, kNsightHint);
    return importing("Nsight Systems export", kNsightHint,
                     [&] { return NsightImporter(*file, session).run(); });
}

const ImportFormat& nsightFormat() {
    static const ImportFormat format{
        .name = "nsight",
        .patterns = {"*.sqlite", "*.db"},
        .recognizes = [](const FileStart& file) { return isNsightFile(file.path); },
        .read = [](const std::string& path, const std::string&,
                   SessionWriter& session) -> Result<Joined> {
            if (const Status done = importNsight(path, session); !done)
                return inFile(path, done.error());
            return Joined{};
        }};
    return format;
}

}  // namespace hw::core
