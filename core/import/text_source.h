// SPDX-License-Identifier: MIT
// Lines or bytes of a file, plain or gzip, or of the one file in a tar archive of either kind.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/base/result.h"

namespace hw::core {

class TextSource {
public:
    /// Errors: BadInput when the file is missing or empty, or is an archive of several files.
    static Result<TextSource> open(const std::string& path);

    /// Next line without its end; false at the end of the file, on a damaged file or at a line of
    /// over 64 MiB (see error()).
    bool next(std::string& line);
    /// Up to `room` bytes as they come; 0 at the end of the file or on a damaged file (see
    /// error()). Do not mix with next().
    std::size_t read(char* to, std::size_t room);
    std::int64_t lineNumber() const { return lineNumber_; }  // of the last line, from 1
    const std::string& error() const { return error_; }  // empty when the file was read to its end
    /// The path, or the name of the file in the archive.
    const std::string& name() const { return name_; }

private:
    Status openMember();
    bool nextOfMember(std::string& line);
    std::size_t readPacked(char* to, std::size_t room);
    void noteDamage();
    struct Closer {
        void operator()(void* file) const;
    };
    std::unique_ptr<void, Closer> file_;
    std::int64_t lineNumber_ = 0;
    std::string name_;
    std::optional<std::int64_t> left_;  // of the file in an archive; none: it is no archive
    std::string ahead_;                 // of such a file: read, and not yet a line
    std::string error_;
};

}  // namespace hw::core
