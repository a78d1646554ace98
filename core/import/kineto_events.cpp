// SPDX-License-Identifier: MIT
#include "core/import/kineto_events.h"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <unordered_map>

#include "core/import/json_source.h"

namespace hw::core {
namespace {

using nlohmann::json;

std::optional<std::int64_t> wholeNumber(std::string_view text) {
    std::int64_t value = 0;
    const auto [stop, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failure != std::errc{} || stop != text.data() + text.size()) return std::nullopt;
    return value;
}

// "25738", "stream 7", "thread 12 (python)": the first number in it.
std::optional<std::int64_t> numberIn(std::string_view text) {
    const std::size_t from = text.find_first_of("0123456789");
    if (from == std::string_view::npos) return std::nullopt;
    const std::size_t to = std::min(text.find_first_not_of("0123456789", from), text.size());
    return wholeNumber(text.substr(from, to - from));
}

// torch built without Kineto, and torch before 1.8, writes a bare list of complete events: no
// categories, and "CPU functions" or "CUDA functions" as the process.
const char* categoryOfProcess(std::string_view process) {
    return process == "CPU functions" ? "cpu_op" : process == "CUDA functions" ? "kernel" : "";
}

// Microseconds as the file writes them; a double cannot hold today's time in nanoseconds.
std::optional<std::int64_t> nanosecondsFrom(std::string_view microseconds) {
    const std::size_t point = microseconds.find('.');
    const auto whole = wholeNumber(microseconds.substr(0, point));
    std::int64_t result = 0;
    if (!whole || microseconds.find_first_of("eE") != std::string_view::npos) {
        const double value = std::strtod(std::string(microseconds).c_str(), nullptr) * 1000;
        if (!(std::fabs(value) < 9e18)) return std::nullopt;
        return std::llround(value);
    }
    if (__builtin_mul_overflow(*whole, 1000, &result)) return std::nullopt;
    if (point == std::string_view::npos) return result;
    std::string digits(microseconds.substr(point + 1, 3));
    digits.resize(3, '0');
    const std::int64_t fraction = wholeNumber(digits).value_or(0);
    const bool negative = microseconds.front() == '-';
    if (__builtin_add_overflow(result, negative ? -fraction : fraction, &result))
        return std::nullopt;
    return result;
}

using Number = std::optional<std::int64_t> KinetoEvent::*;
const std::unordered_map<std::string_view, Number>& argumentNumbers() {
    static const std::unordered_map<std::string_view, Number> kNumbers{
        {"External id", &KinetoEvent::externalId},
        {"external id", &KinetoEvent::externalId},
        {"Record function id", &KinetoEvent::recordFunction},
        {"Ev Idx", &KinetoEvent::eventIndex},
        {"Sequence number", &KinetoEvent::sequence},
        {"Fwd thread id", &KinetoEvent::forwardThread},
        {"correlation", &KinetoEvent::correlation},
        {"stream", &KinetoEvent::stream},
        {"device", &KinetoEvent::device},
        {"Device Type", &KinetoEvent::deviceType},
        {"Device Id", &KinetoEvent::deviceId},
        {"Addr", &KinetoEvent::address},
        {"Bytes", &KinetoEvent::bytes},
        {"bytes", &KinetoEvent::bytes},
        {"Total Allocated", &KinetoEvent::allocated},
        {"Total Reserved", &KinetoEvent::reserved}};
    return kNumbers;
}

// nlohmann's SAX interface gives its names. Levels: the trace is 1, an event of an object is 3 (of
// a bare array 2), its args one more.
class Handler : public json::json_sax_t {
public:
    Handler(JsonSource& source, const KinetoHandlers& handlers)
        : source_(source), handlers_(handlers) {}

    bool null() override { return scalar(); }
    bool boolean(bool) override { return scalar(); }
    bool number_integer(number_integer_t value) override {  // NOLINT(readability-identifier-naming)
        return number(value, std::to_string(value));
    }
    bool number_unsigned(  // NOLINT(readability-identifier-naming)
        number_unsigned_t value) override {
        return number(static_cast<std::int64_t>(value), std::to_string(value));
    }
    bool number_float(  // NOLINT(readability-identifier-naming)
        number_float_t, const string_t& text) override {
        return number(std::nullopt, text);
    }
    bool string(string_t& value) override;
    bool binary(binary_t&) override { return scalar(); }
    bool start_object(std::size_t) override {  // NOLINT(readability-identifier-naming)
        ++depth_;
        if (depth_ == itemDepth_) event_ = {}, device_ = {};
        return scalar();
    }
    bool end_object() override {  // NOLINT(readability-identifier-naming)
        if (depth_ == itemDepth_ && section_ == Section::Events) handlers_.event(event_);
        if (depth_ == itemDepth_ && section_ == Section::Devices) handlers_.device(device_);
        --depth_;
        if (depth_ < 2 && itemDepth_ == 3) section_ = Section::None;
        return scalar();
    }
    bool start_array(std::size_t) override {  // NOLINT(readability-identifier-naming)
        if (++depth_ == 1) section_ = Section::Events, itemDepth_ = 2;
        return scalar();
    }
    bool end_array() override {  // NOLINT(readability-identifier-naming)
        --depth_;
        return scalar();
    }
    bool key(string_t& name) override {
        if (depth_ == 1)
            section_ = name == "traceEvents"        ? Section::Events
                       : name == "deviceProperties" ? Section::Devices
                       : name == "distributedInfo"  ? Section::Distributed
                                                    : Section::None;
        if (depth_ == itemDepth_) itemKey_ = name;
        key_ = name;
        return scalar();
    }
    bool parse_error(std::size_t, const std::string&,  // NOLINT(readability-identifier-naming)
                     const json::exception& error) override {
        wrong_ = error.what();
        return false;
    }
    std::string wrong() const {
        // "[json.exception.parse_error.101] parse error at line 1, column 2: …": the end says it.
        const std::size_t said = wrong_.find(": ");
        return said == std::string::npos ? wrong_ : wrong_.substr(said + 2);
    }

private:
    enum class Section : std::uint8_t { None, Events, Devices, Distributed };

    bool scalar() {
        source_.tokenEnded();
        return true;
    }
    bool inEvent() const { return section_ == Section::Events && depth_ == itemDepth_; }
    bool inArguments() const {
        return section_ == Section::Events && depth_ == itemDepth_ + 1 && itemKey_ == "args";
    }
    bool number(std::optional<std::int64_t> value, const std::string& text);

    JsonSource& source_;
    const KinetoHandlers& handlers_;
    Section section_ = Section::None;
    int depth_ = 0, itemDepth_ = 3;
    std::string itemKey_, key_, wrong_;
    KinetoEvent event_;
    KinetoDevice device_;
};

bool Handler::string(string_t& value) {
    if (inEvent()) {
        if (key_ == "ph") event_.phase = value;
        if (key_ == "cat") event_.category = value;
        if (key_ == "name") event_.name = value;
        if (key_ == "pid") {
            event_.pid = wholeNumber(value);
            if (event_.category.empty()) event_.category = categoryOfProcess(value);
        }
        if (key_ == "tid") event_.thread = numberIn(value);
        if (key_ == "ts") event_.beginNs = nanosecondsFrom(value);
    } else if (inArguments()) {
        if (key_ == "Call stack") event_.callStack = value;
        if (key_ == "Module Hierarchy") event_.moduleHierarchy = value;
        const auto known = argumentNumbers().find(key_);
        if (known != argumentNumbers().end()) event_.*(known->second) = wholeNumber(value);
    } else if (section_ == Section::Devices && depth_ == itemDepth_ && key_ == "name") {
        device_.name = value;
    }
    return scalar();
}

bool Handler::number(std::optional<std::int64_t> value, const std::string& text) {
    if (inEvent()) {
        if (key_ == "pid") event_.pid = value;
        if (key_ == "tid") event_.thread = value;
        if (key_ == "ts") event_.beginNs = nanosecondsFrom(text);
        if (key_ == "dur") event_.durationNs = nanosecondsFrom(text).value_or(0);
    } else if (inArguments()) {
        const auto known = argumentNumbers().find(key_);
        if (known != argumentNumbers().end()) event_.*(known->second) = value;
    } else if (section_ == Section::Devices && depth_ == itemDepth_) {
        if (key_ == "id") device_.id = value;
        if (key_ == "totalGlobalMem") device_.bytes = value;
    } else if (section_ == Section::Distributed && depth_ == 2 && key_ == "rank" && value) {
        handlers_.rank(*value);
    }
    return scalar();
}

}  // namespace

std::string readKinetoEvents(TextSource& source, const KinetoHandlers& handlers) {
    JsonSource text(source);
    Handler handler(text, handlers);
    const bool whole = json::sax_parse(text.begin(), text.end(), &handler);
    if (whole && text.error().empty()) return {};
    return "byte " + std::to_string(text.position()) + ": " +
           (text.error().empty() ? handler.wrong() : text.error());
}

}  // namespace hw::core
