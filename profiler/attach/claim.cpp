// SPDX-License-Identifier: MIT
#include "profiler/attach/claim.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

namespace hw::profiler {
namespace {

std::string folder() {
    const char* runtime = std::getenv("XDG_RUNTIME_DIR");
    if (runtime != nullptr && *runtime == '/') return std::string(runtime) + "/highwater";
    return "/tmp/highwater-" + std::to_string(geteuid());
}

std::string pathOf(pid_t pid) {
    return folder() + "/" + std::to_string(pid);
}

/// The folder is ours, and no other user may write there.
bool isPrivate(const std::string& path) {
    struct stat about {};
    return lstat(path.c_str(), &about) == 0 && S_ISDIR(about.st_mode) &&
           about.st_uid == geteuid() && (about.st_mode & 022) == 0;
}

}  // namespace

core::Result<Claim> Claim::take(pid_t pid) {
    const std::string where = folder();
    mkdir(where.c_str(), 0700);
    const int file = isPrivate(where) ? open(pathOf(pid).c_str(),
                                             O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)
                                      : -1;
    if (file < 0)
        return core::Error{core::ErrorCode::Internal,
                           "cannot note in '" + where + "' which process is recorded",
                           "check that the folder belongs to you and to nobody else"};
    if (flock(file, LOCK_EX | LOCK_NB) != 0) {
        close(file);
        return core::Error{
            core::ErrorCode::Target,
            "process " + std::to_string(pid) + " is being recorded already",
            "end that recording with 'highwater detach " + std::to_string(pid) + "'"};
    }
    const std::string text = std::to_string(getpid());
    // The lock is what counts; without the number detaching does not work.
    [[maybe_unused]] const bool told =
        ftruncate(file, 0) == 0 && write(file, text.data(), text.size()) > 0;
    return Claim(pathOf(pid), file);
}

std::optional<pid_t> Claim::holder(pid_t pid) {
    const int file = open(pathOf(pid).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0) return std::nullopt;
    std::optional<pid_t> holder;
    if (isPrivate(folder()) && flock(file, LOCK_SH | LOCK_NB) != 0) {
        char text[32] = {};
        if (read(file, text, sizeof(text) - 1) > 0)
            holder = static_cast<pid_t>(std::strtol(text, nullptr, 10));
    }
    close(file);
    return holder;
}

Claim::Claim(Claim&& other) noexcept
    : path_(std::move(other.path_)), file_(std::exchange(other.file_, -1)) {}

Claim::~Claim() {
    if (file_ < 0) return;
    unlink(path_.c_str());
    close(file_);
}

}  // namespace hw::profiler
