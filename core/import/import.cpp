// SPDX-License-Identifier: MIT
#include "core/import/import.h"

#include <algorithm>

#include "core/import/allocation_csv.h"
#include "core/import/execution_trace.h"
#include "core/import/kineto.h"
#include "core/import/memory_timeline.h"
#include "core/import/nsight.h"
#include "core/import/simrd.h"
#include "core/import/text_source.h"
#include "core/import/torch_snapshot.h"

namespace hw::core {
namespace {

// Asked in this order what a file is: what is surest comes first.
const std::vector<const ImportFormat*>& formats() {
    static const std::vector<const ImportFormat*> all{
        &nsightFormat(),          // by a table
        &torchSnapshotFormat(),   // by the first bytes, or by the name
        &simrdFormat(),           // by the first line
        &executionTraceFormat(),  // by its keys, without those of the next one
        &kinetoFormat(),          // by its keys
        &memoryTimelineFormat(),  // by how it begins: lists of numbers
        &allocationCsvFormat(),   // by its columns
    };
    return all;
}

Result<const ImportFormat*> detectFormat(const std::string& path) {
    auto source = TextSource::open(path);
    if (!source) return source.error();
    // A table in an archive cannot be opened where it lies.
    const bool inside = source->name() != path;
    FileStart file{source->name(), std::string(1 << 16, '\0')};
    file.head.resize(source->read(file.head.data(), file.head.size()));
    if (file.head.starts_with("SQLite format 3") && (inside || !isDatabaseFile(path)))
        return badInput("'" + path + "' holds a packed SQLite file", "unpack it first");
    for (const ImportFormat* format : formats())
        if (format->recognizes(file)) return format;
    return badInput("'" + path + "' is no session and of no known format",
                    "known formats: " + importFormats());
}

Result<const ImportFormat*> formatNamed(const std::string& name) {
    for (const ImportFormat* format : formats())
        if (format->name == name) return format;
    return Error{ErrorCode::Usage, "unknown format '" + name + "'",
                 "known formats: " + importFormats()};
}

}  // namespace

char FileStart::first() const {
    const std::size_t at = head.find_first_not_of(" \t\r\n");
    return at == std::string::npos ? '\0' : head[at];
}

Error inFile(const std::string& path, const Error& error) {
    return badInput("'" + path + "': " + error.what, error.hint);
}

std::string importFormats() {
    std::string names;
    for (const ImportFormat* format : formats())
        names += (names.empty() ? "" : ", ") + std::string(format->name);
    return names;
}

std::vector<std::string> importPatterns() {
    std::vector<std::string> patterns;
    for (const ImportFormat* format : formats())
        for (const char* pattern : format->patterns)
            if (std::find(patterns.begin(), patterns.end(), pattern) == patterns.end())
                patterns.emplace_back(pattern);
    return patterns;
}

Result<ImportSummary> importFile(const std::string& path, const std::string& wanted,
                                 SessionWriter& session, const std::string& join) {
    const auto format =
        wanted.empty() || wanted == "auto" ? detectFormat(path) : formatNamed(wanted);
    if (!format) return format.error();
    ImportSummary summary{(*format)->name, {}, {}};
    if (!join.empty() && !(*format)->joins)
        return Error{
            ErrorCode::Usage,
            "'" + path + "' is of the format " + summary.format + ", which is joined with nothing",
            "only an execution trace is joined with a profiler's trace"};
    const auto joined = (*format)->read(path, join, session);
    if (!joined) return joined.error();
    summary.join = *joined;
    HW_TRY(session.setMeta("source", path));
    HW_TRY(session.setMeta("format", summary.format));
    auto counts = session.counts();
    if (!counts) return counts.error();
    summary.counts = *counts;
    return summary;
}

Result<Session> openAny(const std::string& path) {
    if (isDatabaseFile(path) && !isNsightFile(path)) return Session::open(path);
    SessionWriter session = SessionWriter::inMemory();
    HW_TRY(importFile(path, "auto", session));
    return session;
}

}  // namespace hw::core
