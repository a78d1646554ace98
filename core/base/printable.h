// SPDX-License-Identifier: MIT
// What goes to a terminal. Names come out of files that may come from anybody, and a terminal obeys
// control characters.
#pragma once

#include <cstdio>
#include <ostream>
#include <streambuf>
#include <string>
#include <utility>

#include "core/base/utf8.h"

namespace hw::core {

/// While it lives, harmful characters (utf8.h) and invalid UTF-8 that go into `stream` become "?".
/// Line ends and tabs pass.
class PrintableOnly : public std::streambuf {
public:
    explicit PrintableOnly(std::ostream& stream) : stream_(stream), below_(stream.rdbuf(this)) {}
    ~PrintableOnly() override {
        putSequence();
        stream_.rdbuf(below_);
    }
    PrintableOnly(const PrintableOnly&) = delete;
    PrintableOnly& operator=(const PrintableOnly&) = delete;

protected:
    int_type overflow(int_type character) override {
        if (traits_type::eq_int_type(character, traits_type::eof()))
            return traits_type::not_eof(character);
        const char byte = traits_type::to_char_type(character);
        const bool goesOn = (static_cast<unsigned char>(byte) & 0xc0U) == 0x80;
        if (!goesOn && !putSequence()) return traits_type::eof();
        sequence_ += byte;
        const bool whole =
            sequence_.size() >= utf8Length(static_cast<unsigned char>(sequence_.front()));
        return whole && !putSequence() ? traits_type::eof() : character;
    }
    int sync() override { return putSequence() ? below_->pubsync() : -1; }

private:
    bool putSequence() {
        if (sequence_.empty()) return true;
        const auto character = utf8Character(sequence_);
        const bool layout = character == U'\n' || character == U'\t';
        if (!layout && (!character || isHarmful(*character))) sequence_ = "?";
        const auto size = static_cast<std::streamsize>(sequence_.size());
        const bool put = below_->sputn(sequence_.data(), size) == size;
        sequence_.clear();
        return put;
    }

    std::ostream& stream_;
    std::streambuf* below_;
    std::string sequence_;  // bytes that wait for those after them
};

/// The same of what goes to C's stdout, for as long as it lives.
class PrintableStdout {
public:
    PrintableStdout() : stream_(&buffer_), only_(stream_), file_(stdout) {
        const cookie_io_functions_t functions{nullptr, put, nullptr, nullptr};
        FILE* const filtered = fopencookie(this, "w", functions);
        if (filtered == nullptr) return;
        setvbuf(filtered, nullptr, _IOLBF, BUFSIZ);
        stdout = filtered;
    }
    ~PrintableStdout() {
        if (stdout != file_) std::fclose(std::exchange(stdout, file_));
    }
    PrintableStdout(const PrintableStdout&) = delete;
    PrintableStdout& operator=(const PrintableStdout&) = delete;

private:
    /// What comes out of the filter.
    class ToFile : public std::streambuf {
    protected:
        int_type overflow(int_type character) override {
            return std::putc(traits_type::to_char_type(character), below) == EOF
                       ? traits_type::eof()
                       : character;
        }
        std::FILE* const below = stdout;
    };

    static ssize_t put(void* self, const char* text, std::size_t size) {
        static_cast<PrintableStdout*>(self)->stream_.write(text,
                                                           static_cast<std::streamsize>(size));
        return static_cast<PrintableStdout*>(self)->stream_.good() ? static_cast<ssize_t>(size) : 0;
    }

    ToFile buffer_;
    std::ostream stream_;
    PrintableOnly only_;
    std::FILE* file_;
};

}  // namespace hw::core
