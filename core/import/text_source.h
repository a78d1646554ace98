// SPDX-License-Identifier: MIT
// Lines of a text file, plain or gzip.
#pragma once

#include <memory>
#include <string>

#include "core/base/result.h"

namespace hw::core {

class TextSource {
public:
    /// Errors: BadInput when the file is missing or empty.
    static Result<TextSource> open(const std::string& path);

    /// Next line without its end; false at the end of the file or on a damaged file (see error()).
    bool next(std::string& line);
    std::int64_t lineNumber() const { return lineNumber_; }  // of the last line, from 1
    const std::string& error() const { return error_; }  // empty when the file was read to its end

private:
    struct Closer {
        void operator()(void* file) const;
    };
    std::unique_ptr<void, Closer> file_;
    std::int64_t lineNumber_ = 0;
    std::string error_;
};

}  // namespace hw::core
