// SPDX-License-Identifier: MIT
#include "profiler/attach/claim.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>

#include "core/base/file.h"
#include "profiler/attach/process.h"

namespace hw::profiler {
namespace {

std::string folder() {
    const char* runtime = std::getenv("XDG_RUNTIME_DIR");
    if (runtime != nullptr && *runtime == '/') return std::string(runtime) + "/highwater";
    return "/tmp/highwater-" + std::to_string(geteuid());
}

/// A process as its own PID namespace numbers it.
struct InNamespace {
    std::string space;  // what /proc calls the namespace; empty where we may not look
    pid_t pid = 0;

    bool operator==(const InNamespace&) const = default;
    /// In a file's name, and in one.
    std::string text() const {
        std::string number = space;
        std::erase_if(number, [](char c) { return c < '0' || c > '9'; });
        return number + "-" + std::to_string(pid);
    }
};

InNamespace inItsNamespace(pid_t pid) {
    InNamespace found{{}, pid};
    std::error_code error;
    found.space = std::filesystem::read_symlink(procPath(pid, "ns/pid"), error).string();
    std::ifstream status(procPath(pid, "status"));
    for (std::string line; std::getline(status, line);)
        if (line.starts_with("NSpid:"))  // one a namespace, its own last
            found.pid = static_cast<pid_t>(std::atoi(line.c_str() + line.find_last_of("\t ") + 1));
    return found;
}

/// Our number of the process with that text; 0 where we do not see it.
pid_t pidOf(const std::string& text) {
    if (text == inItsNamespace(getpid()).text()) return getpid();
    for (const pid_t pid : processes())
        if (inItsNamespace(pid).text() == text) return pid;
    return 0;
}

std::string pathIn(const std::string& folder, pid_t pid) {
    return folder + "/" + inItsNamespace(pid).text();
}

/// The folder is that user's, and no other one may write there.
bool isPrivate(const std::string& path, uid_t user) {
    struct stat about {};
    return lstat(path.c_str(), &about) == 0 && S_ISDIR(about.st_mode) && about.st_uid == user &&
           (about.st_mode & 022) == 0;
}

/// Whether the process has that file open. The holder of a claim does.
bool hasOpen(pid_t pid, const struct stat& file) {
    std::error_code error;
    const std::filesystem::directory_iterator files(procPath(pid, "fd"), error);
    return !error && std::ranges::any_of(files, [&](const auto& entry) {
        struct stat about {};
        return stat(entry.path().c_str(), &about) == 0 && about.st_dev == file.st_dev &&
               about.st_ino == file.st_ino;
    });
}

/// The process that holds the claim; nothing if the claim is free. Another user may have written
/// the file in a container, so the process that it names has to have it open; otherwise 0.
std::optional<pid_t> heldBy(const std::string& path) {
    const int file = core::openOrdinaryFile(path);
    if (file < 0) return std::nullopt;
    std::optional<pid_t> holder;
    if (flock(file, LOCK_SH | LOCK_NB) != 0) {
        char text[64] = {};
        const ssize_t size = std::max<ssize_t>(0, ::read(file, text, sizeof(text)));
        holder = pidOf(std::string(text, static_cast<std::size_t>(size)));
        struct stat about {};
        if (*holder != 0 && (fstat(file, &about) != 0 || !hasOpen(*holder, about))) holder = 0;
    }
    close(file);
    return holder;
}

/// Where recorders in the container of that process note it. Users may have other numbers there.
std::vector<std::string> foldersInItsContainer(pid_t pid, uid_t user) {
    const std::string root = procPath(pid, "root");
    std::vector<std::string> folders;
    for (const uid_t name : {user, uid_t(0)}) {
        folders.push_back(root + "/run/user/" + std::to_string(name) + "/highwater");
        folders.push_back(root + "/tmp/highwater-" + std::to_string(name));
    }
    return folders;
}

}  // namespace

core::Result<Claim> Claim::take(pid_t pid) {
    const std::string where = folder();
    mkdir(where.c_str(), 0700);
    const std::string path = pathIn(where, pid);
    const int file = isPrivate(where, geteuid())
                         ? open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)
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
    const std::string text = inItsNamespace(getpid()).text();
    // The lock is what counts; without the number detaching does not work.
    [[maybe_unused]] const bool told =
        ftruncate(file, 0) == 0 && write(file, text.data(), text.size()) > 0;
    return Claim(path, file);
}

std::optional<pid_t> Claim::holder(pid_t pid) {
    struct stat process {};
    if (stat(procPath(pid, "status").c_str(), &process) != 0) return std::nullopt;
    if (isPrivate(folder(), geteuid()))
        if (const auto holder = heldBy(pathIn(folder(), pid))) return holder;
    if (inItsNamespace(pid).space == inItsNamespace(getpid()).space) return std::nullopt;
    for (const std::string& theirs : foldersInItsContainer(pid, process.st_uid))
        if (isPrivate(theirs, process.st_uid))
            if (const auto holder = heldBy(pathIn(theirs, pid))) return holder;
    return std::nullopt;
}

Claim::Claim(Claim&& other) noexcept
    : path_(std::move(other.path_)), file_(std::exchange(other.file_, -1)) {}

Claim::~Claim() {
    if (file_ < 0) return;
    unlink(path_.c_str());
    close(file_);
}

}  // namespace hw::profiler
