// SPDX-License-Identifier: MIT
// What a foreign format says of itself. Each format's own file defines its `ImportFormat`; the list
// of them is in import.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/import/text_source.h"
#include "core/session/session_writer.h"

namespace hw::core {

/// What tells a file's format: its name and how it begins.
struct FileStart {
    std::string path;
    std::string head;  // the first 64 KiB, unzipped

    bool holds(const char* text) const { return head.find(text) != std::string::npos; }
    /// The first character that is no white space; 0 where there is none.
    char first() const;
    std::string firstLine() const { return head.substr(0, head.find('\n')); }
};

/// How many of the ops with a record function id have a time, composite ones included.
struct JoinRate {
    std::int64_t matched = 0, ops = 0;
};
/// Of a trace that was joined with another one.
using Joined = std::optional<JoinRate>;

struct ImportFormat {
    const char* name;                   // as `import --format` takes it
    std::vector<const char*> patterns;  // of file names, for a file dialog
    bool (*recognizes)(const FileStart& file);
    /// Fills an empty session. `join`: the profiler's trace of the same run, or empty. Errors:
    /// BadInput that names the file.
    Result<Joined> (*read)(const std::string& path, const std::string& join,
                           SessionWriter& session);
    bool joins = false;  // takes a `join`
};

/// The same error with the file's name before it.
Error inFile(const std::string& path, const Error& error);

/// The `read` of a format that is imported from text alone.
template <Status (*import)(TextSource&, SessionWriter&)>
Result<Joined> readText(const std::string& path, const std::string&, SessionWriter& session) {
    auto source = TextSource::open(path);
    if (!source) return inFile(path, source.error());
    if (const Status done = import(*source, session); !done) return inFile(path, done.error());
    return Joined{};
}

}  // namespace hw::core
