// SPDX-License-Identifier: MIT
// A file that is written piece by piece beside its place and takes it when it is whole.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/file.h"
#include "core/base/result.h"

namespace hw::core {

class OutputFile {
public:
    explicit OutputFile(std::string path)
        : path_(std::move(path)),
          // What is no plain file, such as /dev/stdout, is written to as it is.
          temporary_(isSpecial(path_) ? path_ : path_ + ".partial"),
          file_(opened()) {
        if (file_ == nullptr) error_ = errno;
    }
    ~OutputFile() {
        if (file_ == nullptr) return;
        std::fclose(file_);
        std::error_code ignored;
        if (temporary_ != path_) std::filesystem::remove(temporary_, ignored);
    }
    OutputFile(const OutputFile&) = delete;
    OutputFile& operator=(const OutputFile&) = delete;

    void write(std::string_view text) {
        if (error_ == 0 && std::fwrite(text.data(), 1, text.size(), file_) != text.size())
            error_ = errno;
    }
    /// Has all that was written reach the disk, so that finish() has little that can fail. Errors:
    /// cannotWrite().
    Status flush() {
        if (error_ == 0 && !reachesDisk()) error_ = errno;
        return status();
    }
    /// Errors: cannotWrite() where anything could not be written; nothing is left behind then.
    Status finish() {
        if (flush()) {
            if (std::fclose(std::exchange(file_, nullptr)) != 0 && error_ == 0) error_ = errno;
            std::error_code error;
            if (error_ == 0 && temporary_ != path_) {
                std::filesystem::rename(temporary_, path_, error);
                error_ = error.value();
            }
            if (error_ != 0 && temporary_ != path_) std::filesystem::remove(temporary_, error);
        }
        return status();
    }

private:
    Status status() const { return error_ == 0 ? Status() : Status(cannotWrite(path_, error_)); }
    /// What is no file on a disk, such as a pipe, has nothing to wait for.
    bool reachesDisk() const {
        return std::fflush(file_) == 0 &&
               (fsync(fileno(file_)) == 0 || errno == EINVAL || errno == EROFS);
    }
    /// A file that is made for it, not through a link that lies in its place.
    std::FILE* opened() const {
        if (temporary_ == path_) return std::fopen(path_.c_str(), "wb");
        std::remove(temporary_.c_str());
        return std::fopen(temporary_.c_str(), "wbx");
    }
    static bool isSpecial(const std::string& path) {
        std::error_code ignored;
        return std::filesystem::exists(path, ignored) &&
               !std::filesystem::is_regular_file(path, ignored);
    }

    std::string path_, temporary_;
    std::FILE* file_;
    int error_ = 0;  // of the system; 0: all is well
};

}  // namespace hw::core
