// SPDX-License-Identifier: MIT
#include "core/base/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>

#include "core/base/output_file.h"

namespace hw::core {

Error cannotWrite(const std::string& path, int error) {
    const std::string what = "cannot write '" + path + "': " + std::strerror(error);
    switch (error) {
        case ENOSPC:
        case EDQUOT:
        case EFBIG:
        case EIO:
            return {ErrorCode::Internal, what, "make room, or write elsewhere"};
        case EISDIR:
            return badInput(what, "name a file");
        default:
            return badInput(what, "check that the folder exists and can be written");
    }
}

Status writeFileAtomically(const std::string& path, const std::string& text) {
    OutputFile file(path);
    file.write(text);
    return file.finish();
}

Result<std::string> readTextFile(const std::string& path, const std::string& what) {
    constexpr std::size_t kMost = std::size_t{1} << 30;
    std::error_code error;
    std::ifstream file(path, std::ios::binary);
    if (!file || std::filesystem::is_directory(path, error))
        return badInput("cannot read " + what + " '" + path + "'", "check the path");
    std::string text;
    for (std::array<char, 65536> part{}; file && text.size() <= kMost;) {
        file.read(part.data(), part.size());
        text.append(part.data(), static_cast<std::size_t>(file.gcount()));
    }
    if (text.size() > kMost)
        return badInput("'" + path + "' is longer than any " + what + ": 1 GiB and more",
                        "name the " + what + " itself");
    return text;
}

int openOrdinaryFile(const std::string& path) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat about {};
    if (file < 0 || (fstat(file, &about) == 0 && S_ISREG(about.st_mode))) return file;
    close(file);
    return -1;
}

std::filesystem::path programFolder() {
    std::error_code ignored;
    return std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
}

std::filesystem::path temporaryFolder() {
    std::error_code error;
    std::filesystem::path folder = std::filesystem::temp_directory_path(error);
    return error ? std::filesystem::path("/tmp") : folder;
}

namespace {

constexpr std::string_view kScratchName = "highwater-scratch.";
constexpr std::size_t kUniqueLetters = 6;  // mkdtemp() puts them in the place of as many X
constexpr time_t kSecondsToLock = 60;      // that a new folder has, before it counts as left behind

/// Whether the folder is ours, and no process has it any more: then it is locked.
bool isLeft(int file) {
    struct stat about {};
    return fstat(file, &about) == 0 && about.st_uid == geteuid() &&
           time(nullptr) - about.st_mtime > kSecondsToLock && flock(file, LOCK_EX | LOCK_NB) == 0;
}

void sweep(const std::filesystem::path& parent) {
    std::error_code error, ignored;
    for (std::filesystem::directory_iterator at(parent, error), end; !error && at != end;
         at.increment(error)) {
        const std::filesystem::path folder = at->path();
        const std::string name = folder.filename().string();
        if (!name.starts_with(kScratchName) || name.size() != kScratchName.size() + kUniqueLetters)
            continue;
        const int file = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (file < 0) continue;
        if (isLeft(file)) std::filesystem::remove_all(folder, ignored);
        close(file);
    }
}

}  // namespace

ScratchFolder::ScratchFolder(const std::filesystem::path& parent) {
    sweep(parent);
    std::string name = (parent / std::string(kScratchName).append(kUniqueLetters, 'X')).string();
    if (mkdtemp(name.data()) == nullptr) return;
    path_ = name;
    lock_ = open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (lock_ >= 0) flock(lock_, LOCK_EX | LOCK_NB);
}

ScratchFolder::~ScratchFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
    if (lock_ >= 0) close(lock_);
}

}  // namespace hw::core
