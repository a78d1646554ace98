// SPDX-License-Identifier: MIT
#include "core/import/allocation_csv.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <numeric>
#include <optional>
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
    "the first line names the columns id,lower,upper,size (or buffer,start,end,size, with the end "
    "itself still alive); times and sizes are whole numbers, lower below upper";
constexpr std::int64_t kLargest = std::int64_t{1} << 62;

constexpr std::int64_t kLargestAlignment = std::int64_t{1} << 30;

enum Column : std::uint8_t {
    Id,
    Lower,
    Upper,
    Size,
    Needed,
    AlignColumn = Needed,
    GapColumn,
    ColumnCount
};
struct ColumnName {
    std::string_view name;
    Column column;
    bool last = false;  // the last moment of a life, not the one after it
};
constexpr std::array<ColumnName, 11> kNames{{{"id", Id},
                                             {"buffer", Id},
                                             {"buffer_id", Id},
                                             {"lower", Lower},
                                             {"start", Lower},
                                             {"begin", Lower},
                                             {"upper", Upper},
                                             {"end", Upper, true},
                                             {"size", Size},
                                             {"alignment", AlignColumn},
                                             {"gaps", GapColumn}}};

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

/// Which columns a table has, by its first line.
struct Columns {
    std::size_t width = 0;
    std::array<std::optional<std::size_t>, ColumnCount> at{};
    std::array<std::string, ColumnCount> names{};
    bool lastMoment = false;

    static Result<Columns> of(const std::string& line) {
        std::string_view text = line;
        if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // byte order mark
        const auto fields = splitCsvLine(std::string(text));
        if (!fields) return fields.error();
        Columns columns;
        columns.width = fields->size();
        for (std::size_t i = 0; i < fields->size(); ++i)
            if (const Status added = columns.add(std::string(trimmed((*fields)[i])), i); !added)
                return added.error();
        for (const ColumnName& each : kNames)  // the first name of a column is today's
            if (each.column < Needed && !columns.at[each.column])
                return badInput("there is no column '" + std::string(each.name) + "'");
        return columns;
    }

    /// Whether a first line names all that is needed.
    static bool recognized(const std::string& line) {
        const auto fields = splitCsvLine(line);
        std::array<bool, ColumnCount> there{};
        if (fields)
            for (const std::string& field : *fields)
                for (const ColumnName& each : kNames)
                    if (trimmed(field) == each.name) there[each.column] = true;
        return std::all_of(there.begin(), there.begin() + Needed, [](bool is) { return is; });
    }

private:
    Status add(const std::string& name, std::size_t place) {
        const auto known = std::find_if(kNames.begin(), kNames.end(),
                                        [&](const ColumnName& each) { return each.name == name; });
        if (known == kNames.end()) return {};
        if (at[known->column])
            return badInput("the columns '" + names[known->column] + "' and '" + name +
                            "' say the same");
        at[known->column] = place;
        names[known->column] = name;
        lastMoment = lastMoment || known->last;
        return {};
    }
};

class Reader {
public:
    Status readHeader(const std::string& line) {
        auto columns = Columns::of(line);
        if (!columns) return columns.error();
        columns_ = std::move(*columns);
        return {};
    }

    Status readRow(const std::string& line) {
        const auto fields = splitCsvLine(line);
        if (!fields) return fields.error();
        if (fields->size() != columns_.width)
            return badInput("there are " + std::to_string(fields->size()) + " fields for " +
                            std::to_string(columns_.width) + " columns");
        std::array<std::int64_t, Needed> values{};
        for (std::size_t c = Lower; c < Needed; ++c) {
            const auto value = parseCount((*fields)[*columns_.at[c]], columns_.names[c]);
            if (!value) return value.error();
            values[c] = *value;
        }
        if (columns_.lastMoment) ++values[Upper];
        const std::string& id = (*fields)[*columns_.at[Id]];
        if (id.empty()) return badInput("the id is empty");
        if (values[Lower] >= values[Upper])
            return badInput(columns_.names[Lower] + " is not below " + columns_.names[Upper]);
        if (!known_.insert(id).second) return badInput("there is a second block '" + id + "'");
        if (values[Size] > kLargest - total_) return badInput("the sizes add up to too much");
        HW_TRY(readGaps(*fields, id));
        HW_TRY(readAlignment(*fields));
        total_ += values[Size];
        problem.ids.push_back(id);
        problem.blocks.push_back({values[Lower], values[Upper], Bytes(values[Size])});
        return {};
    }

    AllocationProblem problem;

private:
    Status readGaps(const std::vector<std::string>& fields, const std::string& id) const {
        if (!columns_.at[GapColumn]) return {};
        const std::string_view gaps = trimmed(fields[*columns_.at[GapColumn]]);
        if (gaps.empty()) return {};
        return badInput("block '" + id + "' has gaps in its life ('" + std::string(gaps) +
                        "'), which are not laid out; leave the column out to lay it out as if it "
                        "lived throughout");
    }
    Status readAlignment(const std::vector<std::string>& fields) {
        if (!columns_.at[AlignColumn]) return {};
        const auto value =
            parseCount(fields[*columns_.at[AlignColumn]], columns_.names[AlignColumn]);
        if (!value) return value.error();
        if (*value < 1) return badInput("the alignment is 0");
        const std::int64_t sofar = problem.alignment.count();
        if (*value > kLargestAlignment ||
            sofar / std::gcd(sofar, *value) > kLargestAlignment / *value)
            return badInput("the alignments have no common multiple of up to 1 GiB");
        problem.mixedAlignment =
            problem.mixedAlignment || (!problem.blocks.empty() && *value != sofar);
        problem.alignment = Bytes(std::lcm(sofar, *value));
        return {};
    }

    Columns columns_;
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
        .recognizes = [](const FileStart& file) { return Columns::recognized(file.firstLine()); },
        .read = [](const std::string& path, const std::string&,
                   SessionWriter& session) -> Result<Joined> {
            if (const Status done = importAllocationCsv(path, session); !done) return done.error();
            return Joined{};
        }};
    return format;
}

}  // namespace hw::core
