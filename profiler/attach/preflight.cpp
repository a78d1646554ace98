// SPDX-License-Identifier: MIT
#include "profiler/attach/preflight.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "profiler/attach/claim.h"
#include "profiler/attach/elf_symbols.h"
#include "profiler/attach/process.h"
#include "profiler/attach/rights.h"
#include "profiler/attach/sight.h"

namespace hw::profiler {
namespace {

using core::Error;

std::string userName(uid_t uid) {
    const passwd* entry = getpwuid(uid);
    return entry == nullptr ? "number " + std::to_string(uid) : std::string(entry->pw_name);
}

bool descendsFrom(pid_t pid, pid_t ancestor) {
    for (int depth = 0; depth < 64 && pid > 1; ++depth) {
        const auto status = statusOf(pid);
        if (!status) return false;
        if (status->parent == ancestor) return true;
        pid = status->parent;
    }
    return false;
}

core::Status checkRights(pid_t pid, const ProcessStatus& status) {
    if (status.uid != geteuid() && !mayTraceAnything())
        return refuse(named(pid) + " belongs to the user " + userName(status.uid),
                      "attach as that user, or as root");
    if (status.tracer != 0)
        return refuse(named(pid) + " is traced by " + named(status.tracer) + " (" +
                          commandOf(status.tracer) + ")",
                      "end that debugger or tracer first");
    if (status.shadowStack)
        return refuse(named(pid) + " runs with a shadow stack, which allows no calls from outside",
                      kLaunchInstead);
    return mayAttach(descendsFrom(pid, getpid()));
}

core::Result<std::vector<MappedFile>> look(pid_t pid) {
    auto files = mappedFiles(pid);
    if (!files)
        return refuse(named(pid) +
                          " does not let itself be looked into (it changed its user, or "
                          "asked not to be)",
                      std::string("attach as root, or ") + kLaunchInstead);
    return files;
}

bool isTorch(const MappedFile& file) {
    const std::string name = fileName(file.path);
    return name.starts_with("libtorch_cpu.so") || name.starts_with("libtorch_python.so");
}

bool mayDefinePython(const MappedFile& file) {
    const std::string name = fileName(file.path);
    return name.starts_with("libpython") || name.starts_with("python") || name.starts_with("pypy");
}

std::string pathOf(pid_t pid, const MappedFile& file) {
    return file.deleted ? procPath(pid, "exe") : procPath(pid, "root") + file.path;
}

/// Addresses out of the first file that fits and defines the first of the names.
template <std::size_t N>
std::array<std::uint64_t, N> lookUp(pid_t pid, const std::vector<MappedFile>& files,
                                    const std::array<const char*, N>& names,
                                    bool (*fits)(const MappedFile&)) {
    std::array<std::uint64_t, N> found{};
    for (const MappedFile& file : files) {
        if (!fits(file)) continue;
        const auto addresses = functionAddresses(pathOf(pid, file), file.start, names);
        if (!addresses || addresses->front() == 0) continue;
        std::copy(addresses->begin(), addresses->end(), found.begin());
        break;
    }
    return found;
}

// Before glibc 2.34 the file that is mapped has the version in its name (libc-2.31.so), and dlopen
// is in a library of its own.
bool isLibc(const MappedFile& file) {
    const std::string name = fileName(file.path);
    return name.starts_with("libc.so") || name.starts_with("libc-2.");
}
bool hasDlopen(const MappedFile& file) {
    const std::string name = fileName(file.path);
    return isLibc(file) || name.starts_with("libdl.so") || name.starts_with("libdl-2.");
}
bool isAny(const MappedFile&) {
    return true;
}

/// Where one of the process's files has this machine code; 0: nowhere.
std::uint64_t findCode(pid_t pid, const std::vector<MappedFile>& files, std::string_view code) {
    for (const MappedFile& file : files)
        if (const auto at = codeAddress(pathOf(pid, file), file.start, code)) return *at;
    return 0;
}

core::Result<Entries> findEntries(pid_t pid, const std::vector<MappedFile>& files) {
    const std::array<const char*, 2> python{"Py_AddPendingCall", "PyRun_SimpleString"};
    auto inPython = lookUp(pid, files, python, mayDefinePython);
    if (inPython[0] == 0 && !files.empty())  // an interpreter inside of another program
        inPython = lookUp(pid, {files.front()}, python, isAny);
    if (inPython[0] == 0 || inPython[1] == 0)
        return refuse(named(pid) + " is not a 64-bit Python process",
                      "list training processes with 'highwater ps'");
    if (std::none_of(files.begin(), files.end(), isTorch))
        return refuse(named(pid) + " is Python but has not imported torch",
                      "attach once it trains, or " + std::string(kLaunchInstead));
    const auto inLibc = lookUp(pid, files, std::array<const char*, 2>{"mmap", "getppid"}, isLibc);
    const auto dlopen = lookUp(pid, files, std::array<const char*, 1>{"dlopen"}, hasDlopen);
    const ReturnPath path{findCode(pid, files, kStoreCode), inLibc[1],
                          findCode(pid, files, kRestoreCode)};
    if (inLibc[0] == 0 || path.store == 0 || path.pause == 0 || path.restore == 0)
        return refuse(named(pid) + " uses a C library that Highwater does not know",
                      kLaunchInstead);
    return Entries{inPython[0], inPython[1], inLibc[0], dlopen[0], path};
}

/// In a container the process may see other files, or none, under the same path.
core::Status checkSight(pid_t pid, const std::string& agentPath) {
    if (sees(pid, agentPath)) return {};
    return refuse(named(pid) + " does not see the file " + agentPath + ": it runs in a container",
                  "run Highwater inside of that container");
}

/// By its command, where nothing else of it can be seen.
bool isCalledPython(const std::string& command) {
    return fileName(command.substr(0, command.find(' '))).starts_with("python");
}

/// The name of the file that it runs; empty where we may not look.
std::string programOf(pid_t pid) {
    std::error_code error;
    return std::filesystem::read_symlink(procPath(pid, "exe"), error).filename().string();
}

}  // namespace

core::Result<Entries> checkTarget(pid_t pid, const std::string& agentPath) {
    const auto status = statusOf(pid);
    if (!status)
        return refuse("there is no process " + std::to_string(pid),
                      "list training processes with 'highwater ps'");
    if (status->state == 'Z' || status->state == 'X')
        return refuse(named(pid) + " has ended", "list training processes with 'highwater ps'");
    if (const core::Status rights = checkRights(pid, *status); !rights) return rights.error();
    const auto files = look(pid);
    if (!files) return files.error();
    auto entries = findEntries(pid, *files);
    if (!entries) return entries.error();
    if (const auto by = Claim::holder(pid))
        return refuse(
            named(pid) + " is being recorded already" + (*by == 0 ? "" : ", by " + named(*by)),
            "end that recording with 'highwater detach " + std::to_string(pid) + "'");
    if (const core::Status sight = checkSight(pid, agentPath); !sight) return sight.error();
    return entries;
}

std::vector<Candidate> listCandidates(const std::string& agentPath, bool all) {
    std::vector<Candidate> found;
    const uid_t user = geteuid();
    for (const pid_t pid : processes()) {
        const auto status = statusOf(pid);
        if (!status || pid == getpid() || (user != 0 && status->uid != user)) continue;
        if (programOf(pid).starts_with("highwater")) continue;  // replays a step, trains nothing
        const auto files = mappedFiles(pid);
        const std::string command = commandOf(pid);
        const bool torch = files && std::any_of(files->begin(), files->end(), isTorch);
        const bool python = files ? std::any_of(files->begin(), files->end(), mayDefinePython)
                                  : isCalledPython(command);
        // One that does not show what it has loaded may train.
        if (!torch && (!python || (files && !all))) continue;
        Candidate candidate{pid, command,       torch ? "pytorch" : "", false,
                            "",  folderOf(pid), residentBytes(pid),     secondsOf(pid)};
        const auto entries = checkTarget(pid, agentPath);
        candidate.attachable = static_cast<bool>(entries);
        if (!entries) candidate.why = entries.error().what;
        found.push_back(std::move(candidate));
    }
    return found;
}

}  // namespace hw::profiler
