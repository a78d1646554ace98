// SPDX-License-Identifier: MIT
#include "core/import/import.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include "core/import/allocation_csv.h"
#include "core/import/kineto.h"
#include "core/import/nsight.h"
#include "core/import/simrd.h"
#include "core/import/text_source.h"
#include "core/import/torch_snapshot.h"

namespace hw::core {
namespace {

constexpr std::array kFormats{"simrd",           "torch-snapshot", "kineto",
                              "execution-trace", "nsight",         "allocation-csv"};

bool looksPickled(const std::string& path, std::string_view head) {
    if (head.size() > 2 && head[0] == '\x80' && head[1] >= 0 && head[1] <= 5) return true;
    std::filesystem::path name(path);
    if (name.extension() == ".gz") name.replace_extension();
    return name.extension() == ".pickle" || name.extension() == ".pkl";
}

// By the first bytes; for pickles of the first protocols, which have no mark, by the name.
Result<std::string> detectFormat(const std::string& path) {
    if (isNsightFile(path)) return std::string("nsight");
    auto source = TextSource::open(path);
    if (!source) return source.error();
    std::string head(1 << 16, '\0');
    head.resize(source->read(head.data(), head.size()));
    const auto holds = [&](const char* text) { return head.find(text) != std::string::npos; };
    if (looksPickled(path, head)) return std::string("torch-snapshot");
    const char first = head[std::min(head.find_first_not_of(" \t\r\n"), head.size())];
    if (first == '{' && head.find("\"INSTRUCTION\"") < head.find('\n')) return std::string("simrd");
    if (first == '{' && holds("\"nodes\"") && !holds("\"traceEvents\""))
        return std::string("execution-trace");
    if ((first == '{' || first == '[') && (holds("\"traceEvents\"") || holds("\"ph\"")))
        return std::string("kineto");
    const std::string line = head.substr(0, head.find('\n'));
    const auto names = [&](const char* column) { return line.find(column) != std::string::npos; };
    if (names("id") && names("lower") && names("upper") && names("size"))
        return std::string("allocation-csv");
    return badInput("'" + path + "' is no session and of no known format",
                    "known formats: " + importFormats());
}

Status importText(const std::string& path, const std::string& format, SessionWriter& session,
                  const RecordedTimes* times, ImportSummary& summary) {
    auto source = TextSource::open(path);
    if (!source) return source.error();
    if (format == "simrd") return importSimrd(*source, session);
    if (format == "torch-snapshot") return importTorchSnapshot(*source, session);
    if (format == "kineto") return importKineto(*source, session);
    const auto rate = importExecutionTrace(*source, session, times);
    if (!rate) return rate.error();
    if (times) summary.join = *rate;
    return {};
}

// By summary.format. Errors name the file.
Status importAs(const std::string& path, SessionWriter& session, const RecordedTimes* times,
                ImportSummary& summary) {
    if (summary.format == "allocation-csv") return importAllocationCsv(path, session);
    const Status done = summary.format == "nsight"
                            ? importNsight(path, session)
                            : importText(path, summary.format, session, times, summary);
    return done ? done : badInput("'" + path + "': " + done.error().what, done.error().hint);
}

}  // namespace

std::string importFormats() {
    std::string names;
    for (const char* format : kFormats) names += (names.empty() ? "" : ", ") + std::string(format);
    return names;
}

Result<ImportSummary> importFile(const std::string& path, const std::string& wanted,
                                 SessionWriter& session, const std::string& join) {
    ImportSummary summary{wanted, {}, {}};
    if (wanted.empty() || wanted == "auto") {
        auto found = detectFormat(path);
        if (!found) return found.error();
        summary.format = *found;
    }
    if (std::find(kFormats.begin(), kFormats.end(), summary.format) == kFormats.end())
        return Error{ErrorCode::Usage, "unknown format '" + summary.format + "'",
                     "known formats: " + importFormats()};
    std::optional<RecordedTimes> times;
    if (!join.empty()) {
        if (summary.format != "execution-trace")
            return Error{ErrorCode::Usage,
                         "'" + path + "' is of the format " + summary.format +
                             ", which is joined with nothing",
                         "only an execution trace is joined with a profiler's trace"};
        auto read = readRecordedTimes(join);
        if (!read) return read.error();
        times = std::move(*read);
    }
    HW_TRY(importAs(path, session, times ? &*times : nullptr, summary));
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
