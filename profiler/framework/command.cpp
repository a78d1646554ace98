// SPDX-License-Identifier: MIT
#include "profiler/framework/command.h"

#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

#include "core/base/spawn.h"

namespace hw::profiler {

Ran runInto(const std::vector<std::string>& command, const std::filesystem::path& output,
            const std::string& folder) {
    const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    const int file = open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    core::Spawn asked{command, {}, nothing, file, file};
    asked.folder = folder;
    const core::Spawned program = core::spawn(asked);
    close(nothing);
    close(file);
    if (program.error != 0) return Ran::Never;
    return core::succeeded(core::waitFor(program.pid)) ? Ran::Well : Ran::Badly;
}

std::string contentsOf(const std::filesystem::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace hw::profiler
