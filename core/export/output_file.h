// SPDX-License-Identifier: MIT
// A file that is written piece by piece beside its place and takes it when it is whole.
#pragma once

#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace hw::core {

class OutputFile {
public:
    explicit OutputFile(std::string path)
        : path_(std::move(path)),
          // What is no plain file, such as /dev/stdout, is written to as it is.
          temporary_(isSpecial(path_) ? path_ : path_ + ".partial"),
          file_(std::fopen(temporary_.c_str(), "wb")) {
        good_ = file_ != nullptr;
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
        good_ = good_ && std::fwrite(text.data(), 1, text.size(), file_) == text.size();
    }
    /// Errors: BadInput when anything could not be written; nothing is left behind then.
    Status finish() {
        std::error_code error;
        if (good_) {
            good_ = std::fclose(file_) == 0;
            file_ = nullptr;
            if (good_ && temporary_ != path_) {
                std::filesystem::rename(temporary_, path_, error);
                good_ = !error;
            }
            if (!good_ && temporary_ != path_) std::filesystem::remove(temporary_, error);
        }
        if (good_) return {};
        return badInput("cannot write '" + path_ + "'",
                        "check that the folder exists, is writable and has room");
    }

private:
    static bool isSpecial(const std::string& path) {
        std::error_code ignored;
        return std::filesystem::exists(path, ignored) &&
               !std::filesystem::is_regular_file(path, ignored);
    }

    std::string path_, temporary_;
    std::FILE* file_;
    bool good_ = false;
};

}  // namespace hw::core
