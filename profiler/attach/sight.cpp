// SPDX-License-Identifier: MIT
#include "profiler/attach/sight.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "core/base/file.h"
#include "profiler/attach/process.h"

namespace hw::profiler {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> folders() {
    std::vector<fs::path> all{core::temporaryFolder(), "/tmp", "/var/tmp"};
    for (const char* name : {"XDG_RUNTIME_DIR", "HOME"})
        if (const char* folder = std::getenv(name); folder != nullptr && *folder == '/')
            all.emplace_back(folder);
    return all;
}

}  // namespace

bool sees(pid_t pid, const fs::path& path) {
    struct stat ours {
    }, theirs{};
    const std::string seen = procPath(pid, "root") + path.string();
    return stat(path.c_str(), &ours) == 0 && stat(seen.c_str(), &theirs) == 0 &&
           ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
}

core::Result<fs::path> folderSeenBy(const std::vector<pid_t>& pids) {
    pid_t blind = 0;
    for (const fs::path& folder : folders()) {
        if (access(folder.c_str(), W_OK | X_OK) != 0) continue;
        const auto without =
            std::find_if(pids.begin(), pids.end(), [&](pid_t pid) { return !sees(pid, folder); });
        if (without == pids.end()) return folder;
        blind = *without;
    }
    return core::Error{
        core::ErrorCode::Target,
        named(blind) +
            " sees other files than Highwater, as in a container or a service with a "
            "/tmp of its own",
        "set TMPDIR to a folder that both see, or run Highwater inside of it"};
}

}  // namespace hw::profiler
