// SPDX-License-Identifier: MIT
// A file, plain or gzip, as the input of nlohmann's parsers: read as it is parsed, never as a
// whole.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>

#include "core/import/text_source.h"

namespace hw::core {

/// Ends early, with an error, where one token (a text, a number, white space) has over 64 MiB: that
/// bounds the parser's memory. The handler of tokens calls tokenEnded() after each.
class JsonSource {
public:
    explicit JsonSource(TextSource& source) : source_(source) { fill(); }

    bool atEnd() const { return at_ == filled_; }
    char current() const { return buffer_[at_]; }
    void advance() {
        ++position_;
        if (++at_ == filled_) fill();
    }
    void tokenEnded() { tokenBegin_ = position_; }
    std::int64_t position() const { return position_; }  // bytes read, unpacked
    /// Empty when the file was read to its end.
    const std::string& error() const { return error_.empty() ? source_.error() : error_; }

    class Iterator {
    public:
        using iterator_category = std::input_iterator_tag;
        using value_type = char;
        using difference_type = std::ptrdiff_t;
        using pointer = const char*;
        using reference = char;

        explicit Iterator(JsonSource* source = nullptr) : source_(source) {}
        char operator*() const { return source_->current(); }
        Iterator& operator++() {
            source_->advance();
            return *this;
        }
        void operator++(int) { source_->advance(); }
        bool operator==(const Iterator& other) const { return ended() == other.ended(); }
        bool operator!=(const Iterator& other) const { return !(*this == other); }

    private:
        bool ended() const { return source_ == nullptr || source_->atEnd(); }
        JsonSource* source_;
    };
    Iterator begin() { return Iterator(this); }
    Iterator end() const { return Iterator(); }

private:
    static constexpr std::int64_t kLongestToken = std::int64_t{64} << 20;

    void fill() {
        at_ = filled_ = 0;
        if (position_ - tokenBegin_ > kLongestToken)
            error_ = "a text of over 64 MiB";
        else
            filled_ = source_.read(buffer_.data(), buffer_.size());
    }

    TextSource& source_;
    std::array<char, 1 << 16> buffer_{};
    std::size_t at_ = 0, filled_ = 0;
    std::int64_t position_ = 0, tokenBegin_ = 0;
    std::string error_;
};

}  // namespace hw::core
