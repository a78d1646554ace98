// SPDX-License-Identifier: MIT
#include "core/export/csv.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <span>

#include "core/base/csv.h"
#include "core/base/output_file.h"
#include "core/session/tables.h"

namespace hw::core {
namespace {

constexpr const char* kMemoryEvents = "memory_events";
constexpr const char* kSeriesSamples = "series_samples";

void appendHex(std::string& line, std::span<const std::byte> bytes) {
    constexpr const char* kDigits = "0123456789abcdef";
    for (const std::byte b : bytes) {
        line += kDigits[static_cast<unsigned>(b) >> 4];
        line += kDigits[static_cast<unsigned>(b) & 15];
    }
}

Status writeTable(const Session& session, const std::string& table, OutputFile& out) {
    const auto columns = tableColumns(session, table);
    if (!columns) return columns.error();
    std::string line;
    for (const TableColumn& column : *columns) {
        if (!line.empty()) line += ',';
        appendCsv(line, column.name);
    }
    out.write(line + "\n");
    return visitTable(session, table, [&](const TableRow& row) {
        line.clear();
        for (std::size_t c = 0; c < columns->size(); ++c) {
            const int at = static_cast<int>(c);
            if (c > 0) line += ',';
            (*columns)[c].blob ? appendHex(line, row.blob(at)) : appendCsv(line, row.text(at));
        }
        line += '\n';
        out.write(line);
    });
}

Status writeMemoryEvents(const Session& session, OutputFile& out) {
    out.write("id,seq,device,time_ns,kind,address,bytes,allocated_bytes,reserved_bytes,op\n");
    std::int64_t id = 0;
    std::string line;
    const auto append = [&](const std::optional<std::int64_t>& value) {
        line += ',';
        if (value) line += std::to_string(*value);
    };
    return session.visitMemoryEvents([&](const MemoryEventRow& event) {
        line = std::to_string(id++);
        append(event.seq), append(event.device), append(event.timeNs);
        line += ',';
        appendCsv(line, event.kind);
        append(event.address), append(event.bytes.count());
        append(event.allocated), append(event.reserved), append(event.op);
        line += '\n';
        out.write(line);
    });
}

Status writeSeriesSamples(const Session& session, OutputFile& out) {
    out.write("series,x,value\n");
    const auto all = session.series();
    if (!all) return all.error();
    for (const SeriesRow& series : *all) {
        const std::string id = std::to_string(series.id) + ",";
        HW_TRY(session.visitSamples(series.id, [&](const Sample& sample) {
            out.write(id + std::to_string(sample.x) + "," + std::to_string(sample.value) + "\n");
        }));
    }
    return {};
}

Status writeAnyTable(const Session& session, const std::string& table, OutputFile& out) {
    if (table == kMemoryEvents) return writeMemoryEvents(session, out);
    if (table == kSeriesSamples) return writeSeriesSamples(session, out);
    return writeTable(session, table, out);
}

/// All tables take their places together, once they are on the disk.
Status writeTables(const Session& session, const std::vector<std::string>& names,
                   const std::filesystem::path& folder) {
    std::vector<std::unique_ptr<OutputFile>> files;
    for (const std::string& name : names) {
        files.push_back(std::make_unique<OutputFile>((folder / (name + ".csv")).string()));
        HW_TRY(writeAnyTable(session, name, *files.back()));
        HW_TRY(files.back()->flush());
    }
    for (const auto& file : files) HW_TRY(file->finish());
    return {};
}

}  // namespace

Result<std::vector<std::string>> csvTables(const Session& session) {
    auto names = tableNames(session);
    if (!names) return names.error();
    // Packed tables: written out one event and one sample a line, and as the rows of steps.
    std::erase(*names, "memory_chunks");
    std::erase(*names, "packed_steps");
    std::erase(*names, "series_blocks");
    names->insert(names->end(), {kMemoryEvents, kSeriesSamples});
    std::sort(names->begin(), names->end());
    return names;
}

Status exportCsvTable(const Session& session, const std::string& table, const std::string& path) {
    const auto names = csvTables(session);
    if (!names) return names.error();
    if (std::find(names->begin(), names->end(), table) == names->end()) {
        std::string all;
        for (const std::string& name : *names) all += (all.empty() ? "" : ", ") + name;
        return Error{ErrorCode::Usage, "there is no table '" + table + "'", "tables: " + all};
    }
    OutputFile out(path);
    HW_TRY(writeAnyTable(session, table, out));
    return out.finish();
}

Status exportCsv(const Session& session, const std::string& folder) {
    const auto names = csvTables(session);
    if (!names) return names.error();
    std::error_code error;
    const bool made = std::filesystem::create_directories(folder, error);
    if (error)
        return badInput("cannot make the folder '" + folder + "': " + error.message(),
                        "choose another place with -o");
    const Status written = writeTables(session, *names, folder);
    if (!written && made) std::filesystem::remove(folder, error);  // where it is empty
    return written;
}

}  // namespace hw::core
