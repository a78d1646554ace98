// SPDX-License-Identifier: MIT
#include "core/session/session_error.h"

#include <sqlite3.h>
#include <sys/stat.h>

#include <fstream>
#include <sstream>
#include <vector>

namespace hw::core {
namespace {

/// "1234, python3", of a process with a lock on the file or on what SQLite keeps beside it; empty
/// where the system does not tell.
std::string lockHolder(const std::string& path) {
    std::vector<ino_t> files;
    for (const char* suffix : {"", "-shm", "-wal"})
        if (struct stat status{}; stat((path + suffix).c_str(), &status) == 0)
            files.push_back(status.st_ino);
    std::ifstream locks("/proc/locks");
    for (std::string line; std::getline(locks, line);) {
        // 1: POSIX  ADVISORY  WRITE 1234 fe:00:5678 128 128
        std::istringstream words(line);
        std::string number, kind, how, access, pid, place;
        words >> number >> kind >> how >> access >> pid >> place;
        const std::size_t colon = place.rfind(':');
        if (kind == "->" || colon == std::string::npos) continue;  // one that waits
        const ino_t file = std::strtoull(place.c_str() + colon + 1, nullptr, 10);
        for (const ino_t ours : files)
            if (ours == file && pid != std::to_string(getpid())) {
                std::ifstream command("/proc/" + pid + "/comm");
                std::string name;
                std::getline(command, name);
                return name.empty() ? pid : pid + ", " + name;
            }
    }
    return {};
}

}  // namespace

bool isLocked(const DatabaseError& error) {
    const int code = error.code & 0xff;
    return code == SQLITE_BUSY || code == SQLITE_LOCKED;
}

Error sessionError(const std::string& path, const std::string& doing, const DatabaseError& error) {
    if (isLocked(error)) {
        const std::string holder = lockHolder(path);
        return badInput("session '" + path + "' is locked by another process" +
                            (holder.empty() ? "" : " (" + holder + ")"),
                        "wait until it has finished, or end it");
    }
    switch (error.code & 0xff) {
        case SQLITE_FULL:
            return {ErrorCode::Internal,
                    "session '" + path + "': " + doing + " failed: the disk is full",
                    "make room; what was written before is kept"};
        case SQLITE_READONLY:
            return badInput("session '" + path + "' cannot be written: " + error.message,
                            "copy it to a folder in which you may write");
        case SQLITE_INTERRUPT:
            return badInput("session '" + path + "': " + doing +
                                " took more work than a file of its size can ask for",
                            "it was changed or damaged; copy it again from where it was recorded");
        default:
            return badInput(
                "session '" + path + "': " + doing + " failed: " + error.message,
                "it may be damaged or cut short; copy it again from where it was recorded");
    }
}

}  // namespace hw::core
