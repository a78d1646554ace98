// SPDX-License-Identifier: MIT
// Lines or bytes of a file, plain or gzip.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/base/result.h"

namespace hw::core {

class TextSource {
public:
    /// Errors: BadInput when the file is missing or empty.
    static Result<TextSource> open(const std::string& path);

    /// Next line without its end; false at the end of the file, on a damaged file or at a line of
    /// over 64 MiB (see error()).
    bool next(std::string& line);
    /// Up to `room` bytes as they come; 0 at the end of the file or on a damaged file (see
    /// error()). Do not mix with next().
    std::size_t read(char* to, std::size_t room);
    std::int64_t lineNumber() const { return lineNumber_; }  // of the last line, from 1
    const std::string& error() const { return error_; }  // empty when the file was read to its end

private:
    void noteDamage();
    struct Closer {
        void operator()(void* file) const;
    };
    std::unique_ptr<void, Closer> file_;
    std::int64_t lineNumber_ = 0;
    std::string error_;
};

}  // namespace hw::core
