// SPDX-License-Identifier: MIT
#include "core/import/nsight.h"

#include <algorithm>
#include <array>
#include <map>
#include <stdexcept>

#include "core/import/checked.h"
#include "core/import/nsight_names.h"
#include "core/import/trace_writer.h"
#include "core/session/tables.h"

namespace hw::core {
namespace {

constexpr const char* kNsightHint =
    "export it again with 'nsys export --type sqlite', from a report of 'nsys profile "
    "--trace=cuda'; "
    "--cuda-memory-usage=true adds the driver's memory";
// Any of them tells an export.
constexpr std::array<const char*, 6> kNsightTables{kNsightMemory,
                                                   "META_DATA_EXPORT",
                                                   "CUPTI_ACTIVITY_KIND_KERNEL",
                                                   "CUPTI_ACTIVITY_KIND_MEMCPY",
                                                   "CUPTI_ACTIVITY_KIND_MEMSET",
                                                   "CUPTI_ACTIVITY_KIND_RUNTIME"};

class NsightImporter {
public:
    NsightImporter(const TableFile& file, SessionWriter& session)
        : file_(file), session_(session), writer_(session), names_(file) {}

    Status run() {
        require(session_.begin());
        describeDevices();
        readMemory();
        readKernels();
        readCopies();
        readRanges();
        if (events_ + work_ == 0)
            throw std::invalid_argument("it holds no kernel, no copy and no event of memory");
        ProcessRow process;
        process.pid = pid_, process.command = "Nsight Systems";
        require(session_.insert(process));
        require(session_.setMeta("no_step",
                                 "Nsight Systems tells kernels, copies and the driver's memory, "
                                 "not the ops that need them"));
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

    void noteProcess(std::int64_t globalPid) {
        // A globalPid holds the process id in bits 24 to 47.
        if (pid_ == 0) pid_ = (globalPid >> 24) & 0xffffff;
    }
    std::int64_t gpu(std::int64_t ordinal) {
        if (ordinal < 0 || ordinal > 4095)
            throw std::invalid_argument("a device has the number " + std::to_string(ordinal));
        const std::int64_t id = writer_.device("cuda", ordinal);
        if (const auto known = gpus_.find(ordinal); known != gpus_.end()) {
            writer_.describe(id, known->second.first, known->second.second);
            gpus_.erase(known);
        }
        return id;
    }

    // Those that the report never uses stay out of the session.
    void describeDevices() {
        visitNsight(file_, "TARGET_INFO_GPU", {"id", "name", "totalMemory"}, "id",
                    [this](const TableRow& row) {
                        std::optional<std::int64_t> bytes;
                        if (row.integer(2) > 0) bytes = row.integer(2);
                        gpus_[row.integer(0)] = {row.text(1), bytes};
                    });
    }

    void readMemory() {
        const std::set<std::string> columns = nsightColumns(file_, kNsightMemory);
        if (columns.empty()) return;
        for (const char* needed : {"start", "address", "bytes", "memoryOperationType"})
            if (!columns.contains(needed))
                throw std::invalid_argument(std::string(kNsightMemory) + " has no column " +
                                            needed);
        visitNsight(file_, kNsightMemory,
                    {"start", "address", "bytes", "memoryOperationType", "memKind", "deviceId",
                     "globalPid"},
                    "start", [this](const TableRow& row) {
                        noteProcess(row.integer(6));
                        event(row.integer(0), row.integer(1), row.integer(2), row.integer(3),
                              row.integer(4), row.integer(5));
                    });
    }

    void event(std::int64_t time, std::int64_t address, std::int64_t bytes, std::int64_t type,
               std::int64_t kind, std::int64_t ordinal) {
        const NsightNames::Operation operation = names_.operation(type);
        if (operation == NsightNames::Operation::Other) {
            ++unknown_;
            return;
        }
        if (bytes < 0) throw std::invalid_argument("an event has a negative size");
        const std::int64_t id = names_.isHost(kind) ? writer_.device("host", -1) : gpu(ordinal);
        MemoryEventRow row;
        row.seq = events_++;
        row.device = writer_.deviceOf(id).ordinal;
        row.timeNs = time, row.address = address;
        Device& device = devices_[id];
        if (operation == NsightNames::Operation::Allocate) {
            row.kind = "alloc", row.bytes = Bytes(bytes);
            allocate(device, row, writer_.deviceOf(id).label());
        } else {
            release(device, row, bytes);
        }
        row.allocated = device.bytes;
        writer_.memory(row);
    }
    void release(Device& device, MemoryEventRow& row, std::int64_t bytes) {
        row.kind = "free";
        const auto live = device.live.find(*row.address);
        if (live == device.live.end()) {
            ++unmatched_;
            row.bytes = Bytes(-bytes);
            return;
        }
        row.bytes = Bytes(-live->second.bytes);  // a free's own size is often 0
        device.bytes -= live->second.bytes;
        require(session_.setFreed(live->second.storage, *row.seq));
        device.live.erase(live);
    }
    void allocate(Device& device, const MemoryEventRow& row, const std::string& name) {
        StorageRow storage;
        storage.id = storages_++;
        storage.bytes = row.bytes;
        storage.device = name;
        storage.allocSeq = *row.seq;
        storage.address = row.address;
        require(session_.insert(storage));
        if (const auto old = device.live.find(*row.address); old != device.live.end()) {
            device.bytes -= old->second.bytes;  // freed unseen
            require(session_.setFreed(old->second.storage, *row.seq));
        }
        device.live[*row.address] = {storage.id, row.bytes.count()};
        device.bytes = checkedAdd(device.bytes, row.bytes.count());
    }

    // --- kernels and copies

    // False, and counted, where it has no length.
    bool place(DeviceWorkRow& work, const TableRow& row) {
        work.beginNs = row.integer(0), work.endNs = row.integer(1);
        noteProcess(row.integer(4));
        if (work.endNs < work.beginNs) {
            ++unreadable_;
            return false;
        }
        work.device = gpu(row.integer(2));
        work.stream = row.integer(3);
        ++work_;
        return true;
    }

    void readKernels() {
        visitNsight(file_, "CUPTI_ACTIVITY_KIND_KERNEL",
                    {"start", "end", "deviceId", "streamId", "globalPid", "correlationId",
                     "demangledName", "shortName", "mangledName"},
                    "start", [this](const TableRow& row) {
                        DeviceWorkRow work;
                        if (!place(work, row)) return;
                        work.correlation = row.integer(5);
                        for (int column = 6; column <= 8 && work.name.empty(); ++column)
                            work.name = names_.text(row.integer(column));
                        if (work.name.empty()) work.name = "kernel";
                        writer_.kernel(work);
                    });
    }
    void readCopies() {
        visitNsight(file_, "CUPTI_ACTIVITY_KIND_MEMCPY",
                    {"start", "end", "deviceId", "streamId", "globalPid", "bytes", "copyKind",
                     "srcKind", "dstKind"},
                    "start", [this](const TableRow& row) {
                        DeviceWorkRow work;
                        work.bytes = row.integer(5);
                        work.name = names_.copy(row.integer(6), row.integer(7), row.integer(8));
                        if (place(work, row)) writer_.copy(work);
                    });
        visitNsight(file_, "CUPTI_ACTIVITY_KIND_MEMSET",
                    {"start", "end", "deviceId", "streamId", "globalPid", "bytes", "memKind"},
                    "start", [this](const TableRow& row) {
                        DeviceWorkRow work;
                        work.bytes = row.integer(5);
                        work.name = names_.set(row.integer(6));
                        if (place(work, row)) writer_.copy(work);
                    });
    }

    // NVTX ranges; marks have no end.
    void readRanges() {
        visitNsight(file_, "NVTX_EVENTS", {"start", "end", "text", "textId", "globalTid"}, "start",
                    [this](const TableRow& row) {
                        RangeRow range;
                        range.kind = "nvtx";
                        range.beginNs = row.integer(0), range.endNs = row.integer(1);
                        range.name = row.text(2);
                        if (range.name.empty()) range.name = names_.text(row.integer(3));
                        range.thread = row.integer(4) & 0xffffff;
                        if (range.endNs >= range.beginNs && range.endNs > 0 && !range.name.empty())
                            require(session_.insert(range));
                    });
    }

    void stateGaps() {
        writer_.gap("ops", "Nsight Systems names no op that launched a kernel");
        if (events_ == 0)
            writer_.gap("memory",
                        "the report has no CUDA memory usage: 'nsys profile "
                        "--cuda-memory-usage=true' records it");
        if (events_ > 0) {
            writer_.gap("allocator",
                        "the events are the driver's allocations: a framework's caching allocator "
                        "hands them out unseen");
            writer_.gap("levels",
                        "bytes count from the start of the trace, whatever was allocated before");
        }
        if (work_ == 0) writer_.gap("kernels", "the report has no kernels and no copies");
        if (unmatched_ > 0)
            writer_.gap("lifetimes", std::to_string(unmatched_) +
                                         " frees are of memory allocated before the trace");
        if (unknown_ > 0)
            writer_.gap("events", std::to_string(unknown_) +
                                      " events neither allocate nor free, and are left out");
        if (unreadable_ > 0)
            writer_.gap("work", std::to_string(unreadable_) +
                                    " kernels and copies end before they begin, and are left out");
    }

    const TableFile& file_;
    SessionWriter& session_;
    TraceWriter writer_;
    NsightNames names_;
    std::unordered_map<std::int64_t, Device> devices_;
    std::map<std::int64_t, std::pair<std::string, std::optional<std::int64_t>>>
        gpus_;  // by ordinal
    std::int64_t pid_ = 0, events_ = 0, work_ = 0, storages_ = 0;
    std::int64_t unmatched_ = 0, unknown_ = 0, unreadable_ = 0;
};

}  // namespace

bool isNsightFile(const std::string& path) {
    if (!isDatabaseFile(path)) return false;
    const auto file = TableFile::open(path);
    if (!file) return false;
    return std::any_of(kNsightTables.begin(), kNsightTables.end(), [&](const char* table) {
        const auto columns = file->columns(table);
        return columns && !columns->empty();
    });
}

Status importNsight(const std::string& path, SessionWriter& session) {
    const auto file = TableFile::open(path);
    if (!file) return badInput("Nsight Systems export: " + file.error().what, kNsightHint);
    return importing("Nsight Systems export", kNsightHint,
                     [&] { return NsightImporter(*file, session).run(); });
}

const ImportFormat& nsightFormat() {
    static const ImportFormat format{.name = "nsight",
                                     .patterns = {"*.sqlite", "*.db"},
                                     .recognizes =
                                         [](const FileStart& file) {
                                             // Not where an archive holds another file of that
                                             // name.
                                             return file.head.starts_with("SQLite format 3") &&
                                                    isNsightFile(file.path);
                                         },
                                     .read = [](const std::string& path, const std::string&,
                                                SessionWriter& session) -> Result<Joined> {
                                         if (const Status done = importNsight(path, session); !done)
                                             return inFile(path, done.error());
                                         return Joined{};
                                     }};
    return format;
}

}  // namespace hw::core
