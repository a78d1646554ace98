// SPDX-License-Identifier: MIT
#include "core/session/arguments.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

namespace hw::core {
namespace {

using nlohmann::json;

/// Writes what it is told of. A document in memory would cost three times as much for each op.
class Mover : public nlohmann::json_sax<json> {
public:
    explicit Mover(std::int64_t base) : base_(base) {}
    std::string take() { return std::move(text_); }

    bool null() override { return word("null"); }
    bool boolean(bool value) override { return word(value ? "true" : "false"); }
    bool number_integer(std::int64_t value) override { return number(value); }
    bool number_unsigned(std::uint64_t value) override {
        return number(static_cast<std::int64_t>(value));
    }
    bool number_float(double, const std::string& digits) override { return word(digits); }
    bool string(std::string& value) override {
        separate();
        return quote(value);
    }
    bool binary(json::binary_t&) override { return false; }
    bool key(std::string& name) override {
        separate();
        quote(name);
        text_ += ':';
        first_ = true;
        // {"a": [{"t": 12}], "k": {"t": 5}}: an argument may have any name.
        tensor_ = depth_ > 2 && name == "t";
        return true;
    }
    bool start_object(std::size_t) override { return open('{'); }
    bool end_object() override { return close('}'); }
    bool start_array(std::size_t) override { return open('['); }
    bool end_array() override { return close(']'); }
    bool parse_error(std::size_t, const std::string&, const json::exception&) override {
        return false;
    }

private:
    void separate() {
        if (!std::exchange(first_, false)) text_ += ',';
        tensor_ = false;
    }
    bool word(std::string_view value) {
        separate();
        text_ += value;
        return true;
    }
    bool number(std::int64_t value) {
        char digits[24];
        if (tensor_) value += base_;
        const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
        return word({digits, end});
    }
    bool quote(const std::string& value) {
        const auto plain = [](unsigned char c) { return c >= 0x20 && c != '"' && c != '\\'; };
        if (std::all_of(value.begin(), value.end(), plain))
            text_.append("\"").append(value) += '"';
        else
            text_ += json(value).dump(-1, ' ', false, json::error_handler_t::replace);
        return true;
    }
    bool open(char bracket) {
        separate();
        text_ += bracket;
        first_ = true;
        ++depth_;
        return true;
    }
    bool close(char bracket) {
        text_ += bracket;
        first_ = false;
        --depth_;
        return true;
    }

    std::string text_;
    std::int64_t base_;
    int depth_ = 0;
    bool first_ = true, tensor_ = false;
};

}  // namespace

std::string withTensorsMoved(const std::string& arguments, std::int64_t base) {
    Mover mover(base);
    return json::sax_parse(arguments, &mover) ? mover.take() : arguments;
}

nlohmann::json positionalArguments(const std::string& arguments) {
    const auto document = nlohmann::json::parse(arguments, nullptr, false);
    return document.is_object() ? document.value("a", nlohmann::json()) : nlohmann::json();
}

}  // namespace hw::core
