// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>
#include <string>

#include "core/base/result.h"

namespace hw::core {

/// What to say where a file cannot be written, by the system's number: Internal where there is no
/// room, else BadInput.
Error cannotWrite(const std::string& path, int error);

/// Writes `text` to a temporary file beside `path`, then renames it: `path` holds all of it or what
/// it held before. What is no plain file, such as /dev/stdout, is written to as it is.
/// Errors: BadInput; Internal where there is no room.
Status writeFileAtomically(const std::string& path, const std::string& text);

/// All of a file that `what` names, such as "plan". Errors: BadInput where it cannot be read, or
/// does not end within 1 GiB, as a device may not.
Result<std::string> readTextFile(const std::string& path, const std::string& what);

/// Opens an ordinary file for reading. -1 if there is none, or if it is a link, a pipe or a device:
/// another user may have put one there, and opening it could wait for ever.
int openOrdinaryFile(const std::string& path);

/// Of the program that runs, where other files of an installation are found from; empty where it
/// cannot be told.
std::filesystem::path programFolder();

/// Where temporary files go: TMPDIR, or /tmp where that is no folder.
std::filesystem::path temporaryFolder();

/// A folder of this process's own, gone with this object. What processes have left that were killed
/// goes when the next one is made beside it.
class ScratchFolder {
public:
    /// In `parent`, or where temporary files go.
    explicit ScratchFolder(const std::filesystem::path& parent = temporaryFolder());
    ~ScratchFolder();
    ScratchFolder(const ScratchFolder&) = delete;
    ScratchFolder& operator=(const ScratchFolder&) = delete;

    /// Empty where it could not be made.
    const std::filesystem::path& path() const { return path_; }

private:
    std::filesystem::path path_;
    int lock_ = -1;  // on the folder, as long as its process lives
};

}  // namespace hw::core
