// SPDX-License-Identifier: MIT
#include "profiler/attach/process.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

namespace hw::profiler {
namespace {

namespace fs = std::filesystem;

std::optional<std::string> contents(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) return std::nullopt;
    return std::string{std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

std::string named(pid_t pid) {
    return "process " + std::to_string(pid);
}

std::string procRoot() {
    const char* root = std::getenv("HIGHWATER_PROC_ROOT");
    return root == nullptr ? "/proc" : root;
}

std::string procPath(pid_t pid, const std::string& name) {
    return procRoot() + "/" + std::to_string(pid) + "/" + name;
}

std::vector<pid_t> processes() {
    std::vector<pid_t> found;
    std::error_code error;
    for (fs::directory_iterator at(procRoot(), error), end; !error && at != end;
         at.increment(error)) {
        const std::string name = at->path().filename().string();
        if (name.find_first_not_of("0123456789") == std::string::npos)
            found.push_back(static_cast<pid_t>(std::strtol(name.c_str(), nullptr, 10)));
    }
    std::sort(found.begin(), found.end());
    return found;
}

std::optional<ProcessStatus> statusOf(pid_t pid) {
    const auto text = contents(procPath(pid, "status"));
    if (!text || text->empty()) return std::nullopt;
    ProcessStatus status;
    std::istringstream lines(*text);
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string key, real;
        words >> key;
        if (key == "State:") words >> status.state;
        if (key == "PPid:") words >> status.parent;
        if (key == "TracerPid:") words >> status.tracer;
        if (key == "Uid:") words >> real >> status.uid;
        if (key == "x86_Thread_features:")
            status.shadowStack = line.find("shstk") != std::string::npos;
        if (key == "CapEff:") words >> std::hex >> status.capabilities;
    }
    return status;
}

std::string commandOf(pid_t pid) {
    std::string text = contents(procPath(pid, "cmdline")).value_or("");
    while (!text.empty() && text.back() == '\0') text.pop_back();
    std::replace(text.begin(), text.end(), '\0', ' ');
    if (!text.empty()) return text;
    std::string name = contents(procPath(pid, "comm")).value_or("");
    if (!name.empty() && name.back() == '\n') name.pop_back();
    return name.empty() ? "" : "[" + name + "]";
}

std::string folderOf(pid_t pid) {
    std::error_code error;
    return std::filesystem::read_symlink(procPath(pid, "cwd"), error).string();
}

std::int64_t residentBytes(pid_t pid) {
    std::istringstream numbers(contents(procPath(pid, "statm")).value_or(""));
    std::int64_t all = 0, resident = 0;
    numbers >> all >> resident;
    return resident * sysconf(_SC_PAGESIZE);
}

std::int64_t secondsOf(pid_t pid) {
    constexpr int kStart = 19;  // words behind the name, which may hold anything (proc(5))
    const std::string text = contents(procPath(pid, "stat")).value_or("");
    std::istringstream words(text.substr(std::min(text.size(), text.rfind(')') + 1)));
    std::string word;
    for (int skipped = 0; skipped < kStart; ++skipped) words >> word;
    std::int64_t ticks = 0;
    timespec now{};
    if (!(words >> ticks) || clock_gettime(CLOCK_BOOTTIME, &now) != 0) return 0;
    return std::max<std::int64_t>(0, now.tv_sec - ticks / sysconf(_SC_CLK_TCK));
}

core::Result<std::vector<MappedFile>> mappedFiles(pid_t pid) {
    errno = 0;
    const auto text = contents(procPath(pid, "maps"));
    if (!text)
        return core::Error{
            core::ErrorCode::Target,
            "cannot look into " + named(pid) + ": " + std::strerror(errno == 0 ? EACCES : errno),
            ""};
    std::vector<MappedFile> files;
    std::istringstream lines(*text);
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string range, rights, offset, device, inode, path;
        words >> range >> rights >> offset >> device >> inode;
        std::getline(words >> std::ws, path);
        if (path.empty() || path[0] != '/' || offset.find_first_not_of('0') != std::string::npos)
            continue;
        MappedFile file;
        file.start = std::strtoull(range.c_str(), nullptr, 16);
        const std::string mark = " (deleted)";
        file.deleted = path.ends_with(mark);
        file.path = file.deleted ? path.substr(0, path.size() - mark.size()) : path;
        files.push_back(std::move(file));
    }
    return files;
}

std::optional<long> systemCallOf(pid_t thread) {
    const auto text = contents(procPath(thread, "syscall"));
    if (!text || text->empty() || (*text)[0] < '0' || (*text)[0] > '9') return std::nullopt;
    return std::strtol(text->c_str(), nullptr, 10);
}

int ptraceScope() {
    const auto text = contents(procRoot() + "/sys/kernel/yama/ptrace_scope");
    return text ? std::atoi(text->c_str()) : 0;
}

std::string fileName(const std::string& path) {
    return path.substr(path.rfind('/') + 1);
}

}  // namespace hw::profiler
