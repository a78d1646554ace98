// SPDX-License-Identifier: MIT
#include "core/import/memory_timeline.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "core/import/checked.h"
#include "core/import/json_source.h"
#include "core/import/trace_writer.h"

namespace hw::core {
namespace {

constexpr const char* kTimelineHint =
    "export it again with export_memory_timeline and a name that ends in .raw.json.gz";
constexpr const char* kOtherForm =
    "it is no list of [time, action, bytes, category]; sums by category, as "
    "export_memory_timeline writes them to other names, tell no allocations";

// As torch.profiler's Action and Category count them.
enum TimelineAction : std::int64_t { Existing = 1, Create = 2, NewVersion = 3, Destroy = 4 };
constexpr std::array<Category, 8> kCategories{Category::Parameter,  Category::OptimizerState,
                                              Category::Input,      Category::Temporary,
                                              Category::Activation, Category::Gradient,
                                              Category::Temporary,  // of autograd's own
                                              Category::Unknown};

struct TimelineEntry {
    std::int64_t time = 0, action = 0, bytes = 0, category = 0;
};

/// Takes the lists of four numbers one by one.
class TimelineHandler : public nlohmann::json_sax<nlohmann::json> {
public:
    TimelineHandler(JsonSource& text, std::function<void(const TimelineEntry&)> take)
        : text_(text), take_(std::move(take)) {}

    bool number_integer(number_integer_t value) override { return number(value); }
    bool number_unsigned(number_unsigned_t value) override {
        if (value > static_cast<std::uint64_t>(INT64_MAX))
            throw std::invalid_argument("a number is too large");
        return number(static_cast<std::int64_t>(value));
    }
    bool start_array(std::size_t) override {
        text_.tokenEnded();
        if (++depth_ > 2) throw std::invalid_argument(kOtherForm);
        count_ = 0;
        return true;
    }
    bool end_array() override {
        text_.tokenEnded();
        if (depth_-- == 1) return true;
        if (count_ != numbers_.size()) throw std::invalid_argument(kOtherForm);
        take_({numbers_[0], numbers_[1], numbers_[2], numbers_[3]});
        return true;
    }
    bool null() override { return other(); }
    bool boolean(bool) override { return other(); }
    bool number_float(number_float_t, const string_t&) override { return other(); }
    bool string(string_t&) override { return other(); }
    bool binary(binary_t&) override { return other(); }
    bool start_object(std::size_t) override { return other(); }
    bool key(string_t&) override { return other(); }
    bool end_object() override { return other(); }
    bool parse_error(std::size_t, const std::string&,
                     const nlohmann::json::exception& error) override {
        wrong_ = error.what();
        return false;
    }

    const std::string& wrong() const { return wrong_; }

private:
    bool number(std::int64_t value) {
        text_.tokenEnded();
        if (depth_ != 2 || count_ >= numbers_.size()) throw std::invalid_argument(kOtherForm);
        numbers_[count_++] = value;
        return true;
    }
    static bool other() { throw std::invalid_argument(kOtherForm); }

    JsonSource& text_;
    std::function<void(const TimelineEntry&)> take_;
    std::array<std::int64_t, 4> numbers_{};
    std::size_t count_ = 0;
    int depth_ = 0;
    std::string wrong_;
};

class TimelineImporter {
public:
    TimelineImporter(TextSource& source, SessionWriter& session)
        : source_(source), session_(session), writer_(session) {}

    Status run() {
        require(session_.begin());
        ProcessRow process;
        process.command = "torch memory timeline", process.framework = "pytorch";
        require(session_.insert(process));
        device_ = writer_.deviceOf(writer_.device("memory", 0)).label();
        read();
        if (entries_ == 0) throw std::invalid_argument("it holds no event");
        begin();  // where nothing but what was there before is told
        for (StorageRow& row : storages_) require(session_.insert(row));
        stateGaps();
        require(session_.setMeta(
            "no_step", "a memory timeline tells allocations, not the ops that need them"));
        return session_.commit();
    }

private:
    using Kind = std::pair<std::int64_t, std::int64_t>;  // bytes, category

    void read() {
        JsonSource text(source_);
        TimelineHandler handler(text, [this](const TimelineEntry& entry) { take(entry); });
        const bool whole = nlohmann::json::sax_parse(text.begin(), text.end(), &handler);
        if (!text.error().empty()) throw std::invalid_argument(text.error());
        if (!whole)
            throw std::invalid_argument("byte " + std::to_string(text.position()) + ": " +
                                        handler.wrong());
    }

    void take(const TimelineEntry& entry) {
        if (entry.category < 0 || entry.category >= static_cast<std::int64_t>(kCategories.size()))
            throw std::invalid_argument("an event has the category " +
                                        std::to_string(entry.category));
        if (entry.bytes == INT64_MIN) throw std::invalid_argument("a number is too large");
        ++entries_;
        if (entry.time >= 0 && !begun_) timeNs_ = entry.time;
        if (entry.action != Existing) begin();
        timeNs_ = std::max(timeNs_, entry.time);
        switch (entry.action) {
            case Existing:
            case Create:
                if (entry.bytes < 0) throw std::invalid_argument("an event has a negative size");
                allocate({entry.bytes, entry.category});
                break;
            case Destroy:
                if (entry.bytes > 0) throw std::invalid_argument("a release has a positive size");
                release({-entry.bytes, entry.category});
                break;
            case NewVersion:
                change(entry);
                break;
            default:
                throw std::invalid_argument("an event has the action " +
                                            std::to_string(entry.action));
        }
    }

    // What was there before is one event, which has the time of the first one after it.
    void begin() {
        if (std::exchange(begun_, true)) return;
        note("initial", level_);
    }

    void note(const char* kind, std::int64_t bytes) {
        MemoryEventRow row;
        row.seq = seq_++;
        row.timeNs = timeNs_;
        row.kind = kind;
        row.bytes = Bytes(bytes);
        row.allocated = level_;
        writer_.memory(row);
    }

    void allocate(const Kind& kind) {
        level_ = checkedAdd(level_, kind.first);
        StorageRow row;
        row.id = static_cast<std::int64_t>(storages_.size());
        row.bytes = Bytes(kind.first);
        row.device = device_;
        row.category = kCategories[static_cast<std::size_t>(kind.second)];
        row.allocSeq = seq_;
        live_[kind].push_back(storages_.size());
        storages_.push_back(std::move(row));
        if (begun_) note("alloc", kind.first);
    }
    void release(const Kind& kind) {
        if (!end(kind)) {
            ++unmatched_;
            return;
        }
        level_ -= kind.first;
        note("free", -kind.first);
    }
    bool end(const Kind& kind) {
        const auto live = live_.find(kind);
        if (live == live_.end() || live->second.empty()) return false;
        storages_[live->second.back()].freeSeq = seq_;
        live->second.pop_back();
        return true;
    }

    // Two entries, one after the other: the bytes leave one category, and come into another, mostly
    // the same.
    void change(const TimelineEntry& entry) {
        if (entry.bytes < 0) {
            unmatched_ += leaving_ ? 1 : 0;
            leaving_ = Kind(-entry.bytes, entry.category);
            return;
        }
        if (entry.bytes == 0) return;
        if (!leaving_ || leaving_->first != entry.bytes) {
            ++unmatched_;
            return;
        }
        const Kind old = *std::exchange(leaving_, std::nullopt);
        const Kind now{entry.bytes, entry.category};
        if (old == now) return;
        if (!end(old)) {
            ++unmatched_;
            return;
        }
        level_ -= old.first;
        allocateAs(now);
    }
    // The level stays: the same bytes mean something else from here on.
    void allocateAs(const Kind& kind) {
        level_ = checkedAdd(level_, kind.first);
        StorageRow row = storages_.back();
        row.id = static_cast<std::int64_t>(storages_.size());
        row.bytes = Bytes(kind.first);
        row.category = kCategories[static_cast<std::size_t>(kind.second)];
        row.allocSeq = seq_;
        row.freeSeq.reset();
        live_[kind].push_back(storages_.size());
        storages_.push_back(std::move(row));
        note("version", 0);
    }

    void stateGaps() {
        writer_.gap("ops", "memory timelines hold allocations, no ops, layers or kernels");
        writer_.gap("device", "the file does not say of which device it is");
        writer_.gap("storages",
                    "there are no addresses: a release ends the latest storage of its size and "
                    "category; bytes by category are exact");
        if (unmatched_ > 0)
            writer_.gap("lifetimes", std::to_string(unmatched_) +
                                         " events are of bytes that the file never allocates, and "
                                         "are left out");
    }

    TextSource& source_;
    SessionWriter& session_;
    TraceWriter writer_;
    std::string device_;
    std::vector<StorageRow> storages_;
    std::map<Kind, std::vector<std::size_t>> live_;
    std::optional<Kind> leaving_;  // between the two entries of a new version
    std::int64_t seq_ = 0, level_ = 0, timeNs_ = 0, entries_ = 0, unmatched_ = 0;
    bool begun_ = false;
};

// "[[-1, 1, 37888, 7], …": a list of lists of numbers.
bool looksLikeTimeline(const FileStart& file) {
    constexpr const char* kBlank = " \t\r\n";
    if (file.first() != '[') return false;
    const std::size_t outer = file.head.find('[');
    const std::size_t inner = file.head.find_first_not_of(kBlank, outer + 1);
    if (inner == std::string::npos || file.head[inner] != '[') return false;
    const std::size_t number = file.head.find_first_not_of(kBlank, inner + 1);
    return number != std::string::npos &&
           std::string_view("-0123456789").find(file.head[number]) != std::string_view::npos;
}

}  // namespace

Status importMemoryTimeline(TextSource& source, SessionWriter& session) {
    return importing("memory timeline", kTimelineHint,
                     [&] { return TimelineImporter(source, session).run(); });
}

const ImportFormat& memoryTimelineFormat() {
    static const ImportFormat format{
        .name = "memory-timeline",
        .patterns = {"*.json", "*.json.gz"},
        .recognizes = [](const FileStart& file) { return looksLikeTimeline(file); },
        .read = readText<importMemoryTimeline>};
    return format;
}

}  // namespace hw::core
