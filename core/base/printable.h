// SPDX-License-Identifier: MIT
// What goes to a terminal. Names come out of files that may come from anybody, and a terminal obeys
// control characters.
#pragma once

#include <cstdio>
#include <ostream>
#include <streambuf>
#include <utility>

namespace hw::core {

/// While it lives, control characters that go into `stream` become "?", but for line ends and tabs;
/// those of Unicode's second block (U+0080 to U+009F in UTF-8), too.
class PrintableOnly : public std::streambuf {
public:
    explicit PrintableOnly(std::ostream& stream) : stream_(stream), below_(stream.rdbuf(this)) {}
    ~PrintableOnly() override {
        putLead();
        stream_.rdbuf(below_);
    }
    PrintableOnly(const PrintableOnly&) = delete;
    PrintableOnly& operator=(const PrintableOnly&) = delete;

protected:
    int_type overflow(int_type character) override {
        if (traits_type::eq_int_type(character, traits_type::eof()))
            return traits_type::not_eof(character);
        const auto byte = static_cast<unsigned char>(traits_type::to_char_type(character));
        if (lead_) {
            lead_ = false;
            if (byte >= 0x80 && byte < 0xa0) return below_->sputc('?');
            if (isEnd(below_->sputc(kLead))) return traits_type::eof();
        }
        if (byte == static_cast<unsigned char>(kLead)) {
            lead_ = true;
            return character;
        }
        const bool control = (byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7f;
        return below_->sputc(control ? '?' : traits_type::to_char_type(character));
    }
    int sync() override {
        putLead();
        return below_->pubsync();
    }

private:
    static constexpr char kLead = '\xc2';  // of U+0080 to U+00BF

    static bool isEnd(int_type character) {
        return traits_type::eq_int_type(character, traits_type::eof());
    }
    void putLead() {
        if (lead_) below_->sputc(kLead);
        lead_ = false;
    }

    std::ostream& stream_;
    std::streambuf* below_;
    bool lead_ = false;  // a byte that waits for the one after it
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
