// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>
#include <string>

#include "core/base/result.h"

namespace hw::core {

/// Writes `text` to a temporary file beside `path`, then renames it: `path` holds all of it or what
/// it held before. What is no plain file, such as /dev/stdout, is written to as it is.
/// Errors: BadInput.
Status writeFileAtomically(const std::string& path, const std::string& text);

/// Of the program that runs, where other files of an installation are found from; empty where it
/// cannot be told.
std::filesystem::path programFolder();

/// A folder of this process's own, gone with this object.
class ScratchFolder {
public:
    /// In `parent`, or where temporary files go.
    explicit ScratchFolder(
        const std::filesystem::path& parent = std::filesystem::temp_directory_path());
    ~ScratchFolder();
    ScratchFolder(const ScratchFolder&) = delete;
    ScratchFolder& operator=(const ScratchFolder&) = delete;

    /// Empty where it could not be made.
    const std::filesystem::path& path() const { return path_; }

private:
    std::filesystem::path path_;
};

}  // namespace hw::core
