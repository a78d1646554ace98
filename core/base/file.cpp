// SPDX-License-Identifier: MIT
#include "core/base/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace hw::core {

namespace {

/// All of it, down to the disk; 0, or the error of the system. `fresh`: into a file that is made
/// for it, and not through a link that lies in its place.
int writeAll(const std::string& path, const std::string& text, bool fresh) {
    if (fresh) std::remove(path.c_str());
    const int how = O_WRONLY | O_CREAT | O_CLOEXEC | (fresh ? O_EXCL : O_TRUNC);
    const int file = open(path.c_str(), how, 0666);
    if (file < 0) return errno;
    int error = 0;
    for (std::size_t done = 0; error == 0 && done < text.size();) {
        const ssize_t wrote = write(file, text.data() + done, text.size() - done);
        if (wrote >= 0)
            done += static_cast<std::size_t>(wrote);
        else if (errno != EINTR)
            error = errno;
    }
    if (error == 0 && fsync(file) != 0 && errno != EINVAL && errno != EROFS) error = errno;
    if (close(file) != 0 && error == 0) error = errno;
    return error;
}

}  // namespace

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
    std::error_code ignored;
    // What is no plain file, such as /dev/stdout, is written to as it is.
    const bool special =
        std::filesystem::exists(path, ignored) && !std::filesystem::is_regular_file(path, ignored);
    const std::string temporary = special ? path : path + ".partial";
    int error = writeAll(temporary, text, !special);
    if (error == 0 && !special && std::rename(temporary.c_str(), path.c_str()) != 0) error = errno;
    if (error == 0) return {};
    if (!special) std::remove(temporary.c_str());
    return cannotWrite(path, error);
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

constexpr const char* kScratchName = "highwater.";
constexpr time_t kSecondsToLock = 60;  // that a new folder has, before it counts as left behind

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
        if (!folder.filename().string().starts_with(kScratchName)) continue;
        const int file = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (file < 0) continue;
        if (isLeft(file)) std::filesystem::remove_all(folder, ignored);
        close(file);
    }
}

}  // namespace

ScratchFolder::ScratchFolder(const std::filesystem::path& parent) {
    sweep(parent);
    std::string name = (parent / (std::string(kScratchName) + "XXXXXX")).string();
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
