// SPDX-License-Identifier: MIT
#include "core/import/import.h"

#include "core/import/simrd.h"
#include "core/import/text_source.h"
#include "core/session/database.h"

namespace hw::core {
namespace {

constexpr const char* kKnownFormats = "known formats: simrd";

Result<std::string> detectFormat(const std::string& path) {
    auto source = TextSource::open(path);
    if (!source) return source.error();
    std::string line;
    source->next(line);
    if (line.starts_with("{") && line.find("\"INSTRUCTION\"") != std::string::npos)
        return std::string("simrd");
    return badInput("'" + path + "' is no session and of no known format", kKnownFormats);
}

}  // namespace

Result<ImportSummary> importFile(const std::string& path, const std::string& wanted,
                                 Session& session) {
    std::string format = wanted;
    if (format.empty() || format == "auto") {
        auto found = detectFormat(path);
        if (!found) return found.error();
        format = *found;
    }
    if (format != "simrd")
        return Error{ErrorCode::Usage, "unknown format '" + format + "'", kKnownFormats};
    auto source = TextSource::open(path);
    if (!source) return source.error();
    if (const Status status = importSimrd(*source, session); !status)
        return badInput("'" + path + "': " + status.error().what, status.error().hint);
    if (const Status status = session.setMeta("source", path); !status) return status.error();
    auto counts = session.counts();
    if (!counts) return counts.error();
    return ImportSummary{format, *counts};
}

Result<Session> openAny(const std::string& path) {
    if (isDatabaseFile(path)) return Session::open(path);
    Session session = Session::inMemory();
    auto summary = importFile(path, "auto", session);
    if (!summary) return summary.error();
    return session;
}

}  // namespace hw::core
