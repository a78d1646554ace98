// SPDX-License-Identifier: MIT
#include "profiler/framework/used_torches.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

#include "core/base/file.h"

namespace hw::profiler {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMost = 64;

/// Empty where the user has no folder for it.
fs::path listFile() {
    fs::path folder;
    if (const char* state = std::getenv("XDG_STATE_HOME"); state != nullptr && *state == '/')
        folder = state;
    else if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/')
        folder = fs::path(home) / ".local/state";
    else
        return {};
    return folder / "highwater" / "torches";
}

bool onlyOursToWrite(const fs::path& path) {
    struct stat status {};
    return stat(path.c_str(), &status) == 0 && status.st_uid == geteuid() &&
           (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

std::vector<std::string> remembered() {
    std::vector<std::string> lines;
    const fs::path path = listFile();
    if (path.empty() || !onlyOursToWrite(path)) return lines;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
}

bool holds(const std::vector<std::string>& list, const std::string& item) {
    return std::find(list.begin(), list.end(), item) != list.end();
}

}  // namespace

void rememberTorch(const std::string& libtorch) {
    const fs::path path = listFile();
    std::vector<std::string> lines = remembered();
    if (path.empty() || libtorch.empty() || libtorch.find('\n') != std::string::npos ||
        holds(lines, libtorch))
        return;
    if (lines.size() >= kMost) lines.erase(lines.begin());
    lines.push_back(libtorch);
    std::string text;
    for (const std::string& line : lines) text += line + '\n';
    std::error_code ignored;
    fs::create_directories(path.parent_path(), ignored);
    static_cast<void>(core::writeFileAtomically(path.string(), text));
    fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write, ignored);
}

bool isUsedTorch(const std::string& package) {
    std::error_code error;
    const fs::path libtorch = fs::canonical(fs::path(package) / "lib/libtorch_cpu.so", error);
    return !error && holds(remembered(), libtorch.string());
}

}  // namespace hw::profiler
