// SPDX-License-Identifier: MIT
#include "core/import/allocation_csv.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <string_view>
#include <unordered_set>

#include "core/base/csv.h"
#include "core/base/file.h"
#include "core/import/checked.h"
#include "core/import/text_source.h"
#include "core/import/trace_writer.h"

namespace hw::core {
namespace {

constexpr const char* kForm =
    "the first line names the columns id,lower,upper,size; times and "
    "sizes are whole numbers, lower below upper";
constexpr std::int64_t kLargest = std::int64_t{1} << 62;

enum Column : std::uint8_t { Id, Lower, Upper, Size, ColumnCount };
constexpr std::array<std::string_view, ColumnCount> kColumns{"id", "lower", "upper", "size"};

std::string_view trimmed(std::string_view text) {
    constexpr std::string_view kBlank = " \t\r";
    const std::size_t from = text.find_first_not_of(kBlank);
    if (from == std::string_view::npos) return {};
    return text.substr(from, text.find_last_not_of(kBlank) - from + 1);
}

Result<std::int64_t> parseCount(std::string_view text, std::string_view column) {
    text = trimmed(text);
    std::int64_t value = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
    const std::string shown = std::string(column) + " '" + std::string(text) + "'";
    if (failure == std::errc::result_out_of_range || value >= kLargest)
        return badInput(shown + " is too large");
    if (failure != std::errc{} || end != text.data() + text.size())
        return badInput(shown + " is no whole number");
    if (value < 0) return badInput(shown + " is negative");
    return value;
}

class Reader {
public:
    Status readHeader(const std::string& line) {
        std::string_view text = line;
        if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // byte order mark
        const auto names = splitCsvLine(std::string(text));
        if (!names) return names.error();
        width_ = names->size();
        for (std::size_t c = 0; c < ColumnCount; ++c) {
            const auto at = std::find_if(names->begin(), names->end(), [&](const auto& name) {
                return trimmed(name) == kColumns[c];
            });
            if (at == names->end())
                return badInput("there is no column '" + std::string(kColumns[c]) + "'");
            column_[c] = static_cast<std::size_t>(at - names->begin());
        }
        return {};
    }

    Status readRow(const std::string& line) {
        const auto fields = splitCsvLine(line);
        if (!fields) return fields.error();
        if (fields->size() != width_)
            return badInput("there are " + std::to_string(fields->size()) + " fields for " +
                            std::to_string(width_) + " columns");
        std::array<std::int64_t, ColumnCount> values{};
        for (std::size_t c = Lower; c < ColumnCount; ++c) {
            const auto value = parseCount((*fields)[column_[c]], kColumns[c]);
            if (!value) return value.error();
            values[c] = *value;
        }
        const std::string& id = (*fields)[column_[Id]];
        if (id.empty()) return badInput("the id is empty");
        if (values[Lower] >= values[Upper]) return badInput("lower is not below upper");
        if (!known_.insert(id).second) return badInput("there is a second block '" + id + "'");
        if (values[Size] > kLargest - total_) return badInput("the sizes add up to too much");
        total_ += values[Size];
        problem.ids.push_back(id);
        problem.blocks.push_back({values[Lower], values[Upper], Bytes(values[Size])});
        return {};
    }

    AllocationProblem problem;

private:
    std::size_t width_ = 0;
    std::array<std::size_t, ColumnCount> column_{};
    std::unordered_set<std::string> known_;
    std::int64_t total_ = 0;
};

struct Change {
    std::int64_t time = 0;
    bool allocates = false;
    std::size_t block = 0;
};

// At one time what ends goes first: lifetimes are half open.
std::vector<Change> changesOf(const std::vector<Block>& blocks) {
    std::vector<Change> changes;
    changes.reserve(2 * blocks.size());
    for (std::size_t b = 0; b < blocks.size(); ++b) {
        changes.push_back({blocks[b].begin, true, b});
        changes.push_back({blocks[b].end, false, b});
    }
    std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
        return std::pair(a.time, a.allocates) < std::pair(b.time, b.allocates);
    });
    return changes;
}

Status writeProblem(const AllocationProblem& problem, SessionWriter& session) {
    TraceWriter writer(session);
    require(session.begin());
    ProcessRow process;
    process.command = "allocation problem";
    require(session.insert(process));
    const DeviceRow& device = writer.deviceOf(writer.device("memory", 0));
    MemoryEventRow event;
    event.allocated = 0, event.seq = -1;
    for (const Change& change : changesOf(problem.blocks)) {
        const Bytes size = problem.blocks[change.block].size;
        const auto id = static_cast<std::int64_t>(change.block);
        ++*event.seq;
        event.kind = change.allocates ? "alloc" : "free";
        event.bytes = change.allocates ? size : Bytes(0) - size;
        *event.allocated += event.bytes.count();
        writer.memory(event);
        if (!change.allocates) {
            require(session.setFreed(id, *event.seq));
            continue;
        }
        StorageRow storage;
        storage.id = id;
        storage.bytes = size;
        storage.device = device.label();
        storage.allocSeq = *event.seq;
        require(session.insert(storage));
    }
    writer.gap("ops", "an allocation problem tells blocks and lifetimes, no ops");
    writer.gap("times", "the lifetimes are steps of the problem: its events stand in their order");
    require(session.setMeta("no_step",
                            "an allocation problem tells allocations, not the ops that need them"));
    return session.commit();
}

}  // namespace

Result<std::vector<std::string>> splitCsvLine(const std::string& line) {
    std::vector<std::string> fields(1);
    bool inside = false, closed = false;
    for (std::size_t i = 0; i < line.size(); ++i) {
        const char c = line[i];
        if (inside) {
            if (c != '"')
                fields.back() += c;
            else if (i + 1 < line.size() && line[i + 1] == '"')
                fields.back() += line[++i];
            else
                inside = false, closed = true;
        } else if (c == ',') {
            fields.emplace_back();
            closed = false;
        } else if (c == '"' && fields.back().empty() && !closed) {
            inside = true;
        } else if (c == '"' || closed) {
            return badInput("a quote stands in the middle of a field");
        } else {
            fields.back() += c;
        }
    }
    if (inside) return badInput("a quoted field has no end");
    return fields;
}

Result<AllocationProblem> readAllocationCsv(const std::string& path) {
    auto source = TextSource::open(path);
    if (!source) return source.error();
    Reader reader;
    std::string line;
    bool header = true;
    while (source->next(line)) {
        if (trimmed(line).empty()) continue;
        const Status status = header ? reader.readHeader(line) : reader.readRow(line);
        if (!status)
            return badInput("'" + path + "', line " + std::to_string(source->lineNumber()) + ": " +
                                status.error().what,
                            kForm);
        header = false;
    }
    if (!source->error().empty())
        return badInput("'" + path + "' is damaged: " + source->error(), "get it again");
    if (header) return badInput("'" + path + "' has no lines", kForm);
    return std::move(reader.problem);
}

Status importAllocationCsv(const std::string& path, SessionWriter& session) {
    const auto problem = readAllocationCsv(path);
    if (!problem) return problem.error();
    return importing("allocation problem", kForm, [&] { return writeProblem(*problem, session); });
}

Status writeOffsetCsv(const std::string& path, const std::vector<std::string>& ids,
                      const std::vector<Bytes>& offsets) {
    std::string text = "id,offset\n";
    for (std::size_t i = 0; i < ids.size(); ++i) {
        appendCsv(text, ids[i]);
        text += "," + std::to_string(offsets[i].count()) + "\n";
    }
    return writeFileAtomically(path, text);
}

const ImportFormat& allocationCsvFormat() {
    static const ImportFormat format{
        .name = "allocation-csv",
        .patterns = {"*.csv", "*.csv.gz"},
        .recognizes =
            [](const FileStart& file) {
                const std::string line = file.firstLine();
                return std::all_of(kColumns.begin(), kColumns.end(), [&](std::string_view column) {
                    return line.find(column) != std::string::npos;
                });
            },
        .read = [](const std::string& path, const std::string&,
                   SessionWriter& session) -> Result<Joined> {
            if (const Status done = importAllocationCsv(path, session); !done) return done.error();
            return Joined{};
        }};
    return format;
}

}  // namespace hw::core
