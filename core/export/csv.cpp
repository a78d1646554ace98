// SPDX-License-Identifier: MIT
#include "core/export/csv.h"

#include <algorithm>
#include <filesystem>
#include <limits>

#include "core/base/csv.h"
#include "core/export/output_file.h"
#include "core/session/guarded.h"
#include "core/session/memory_events.h"
#include "core/session/series_reader.h"

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

void writeTable(Database& database, const std::string& table, OutputFile& out) {
    std::string line;
    std::vector<bool> blobs;
    Statement columns(database, "SELECT name, type FROM pragma_table_info(?)");
    for (columns.bind(1, table); columns.step();) {
        if (!blobs.empty()) line += ',';
        appendCsv(line, columns.text(0));
        blobs.push_back(columns.text(1) == "BLOB");
    }
    out.write(line + "\n");
    Statement rows(database, "SELECT * FROM \"" + table + "\"");
    while (rows.step()) {
        line.clear();
        for (std::size_t c = 0; c < blobs.size(); ++c) {
            const int column = static_cast<int>(c);
            if (c > 0) line += ',';
            blobs[c] ? appendHex(line, rows.blob(column)) : appendCsv(line, rows.text(column));
        }
        line += '\n';
        out.write(line);
    }
}

void writeMemoryEvents(Database& database, OutputFile& out) {
    out.write("id,seq,device,time_ns,kind,address,bytes,allocated_bytes,reserved_bytes,op\n");
    std::int64_t id = 0;
    std::string line;
    const auto append = [&](const std::optional<std::int64_t>& value) {
        line += ',';
        if (value) line += std::to_string(*value);
    };
    readMemoryEvents(database, std::numeric_limits<std::int64_t>::min(),
                     std::numeric_limits<std::int64_t>::max(), [&](const MemoryEventRow& event) {
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

void writeSeriesSamples(Database& database, OutputFile& out) {
    out.write("series,x,value\n");
    Statement from(database, "SELECT series, data FROM series_blocks ORDER BY series, block");
    while (from.step())
        for (const Sample& sample : decodeSeriesBlock(from.blob(1)))
            out.write(std::to_string(from.integer(0)) + "," + std::to_string(sample.x) + "," +
                      std::to_string(sample.value) + "\n");
}

}  // namespace

Result<std::vector<std::string>> csvTables(Session& session) {
    return guarded(session.path(), "reading tables", [&] {
        std::vector<std::string> names{kMemoryEvents, kSeriesSamples};
        Statement from(session.database(),
                       "SELECT name FROM sqlite_master WHERE type = 'table'"
                       " AND name NOT LIKE 'sqlite_%'"
                       " AND name NOT IN ('memory_chunks', 'series_blocks')");
        while (from.step()) names.push_back(from.text(0));
        std::sort(names.begin(), names.end());
        return names;
    });
}

Status exportCsvTable(Session& session, const std::string& table, const std::string& path) {
    const auto names = csvTables(session);
    if (!names) return names.error();
    if (std::find(names->begin(), names->end(), table) == names->end()) {
        std::string all;
        for (const std::string& name : *names) all += (all.empty() ? "" : ", ") + name;
        return Error{ErrorCode::Usage, "there is no table '" + table + "'", "tables: " + all};
    }
    if (Status flushed = session.flushMemoryEvents(); !flushed) return flushed;
    OutputFile out(path);
    Status read = guarded(session.path(), "reading a table", [&] {
        if (table == kMemoryEvents)
            writeMemoryEvents(session.database(), out);
        else if (table == kSeriesSamples)
            writeSeriesSamples(session.database(), out);
        else
            writeTable(session.database(), table, out);
    });
    return read ? out.finish() : read;
}

Status exportCsv(Session& session, const std::string& folder) {
    const auto names = csvTables(session);
    if (!names) return names.error();
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error)
        return badInput("cannot make the folder '" + folder + "': " + error.message(),
                        "choose another place with -o");
    for (const std::string& name : *names)
        if (Status done = exportCsvTable(
                session, name, (std::filesystem::path(folder) / (name + ".csv")).string());
            !done)
            return done;
    return {};
}

}  // namespace hw::core
