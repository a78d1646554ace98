// SPDX-License-Identifier: MIT
#include "profiler/framework/build.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/base/digest.h"
#include "core/base/file.h"
#include "profiler/framework/command.h"

namespace hw::profiler {
namespace {

namespace fs = std::filesystem;
using core::Error;
using core::ErrorCode;

Error none(const std::string& why) {
    return {ErrorCode::Target, why, ""};
}

/// Held by one process at a time; where it cannot be had, there is no waiting.
class FileLock {
public:
    explicit FileLock(const std::string& path)
        : file_(open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600)) {
        while (file_ >= 0 && flock(file_, LOCK_EX) != 0 && errno == EINTR) {
        }
    }
    ~FileLock() {
        if (file_ >= 0) close(file_);
    }
    FileLock(const FileLock&) = delete;
    FileLock& operator=(const FileLock&) = delete;

private:
    int file_;
};

/// A folder that travels between machines with the same builds of frameworks; empty: there is none.
fs::path travellingFolder(const Unit& unit) {
    const char* folder = unit.travels ? std::getenv("HIGHWATER_CAPTURES") : nullptr;
    return folder != nullptr ? folder : "";
}

core::Result<fs::path> cacheFolder(const Unit& unit) {
    fs::path folder = travellingFolder(unit);
    if (!folder.empty()) {
        std::error_code error;
        fs::create_directories(folder, error);
        if (!fs::is_directory(folder)) return none(folder.string() + " is no folder");
        return folder;
    }
    if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache != '\0')
        folder = cache;
    else if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0')
        folder = fs::path(home) / ".cache";
    else
        return none("there is no cache folder: HOME is not set, and XDG_CACHE_HOME names none");
    folder /= "highwater/capture";
    std::error_code error;
    fs::create_directories(folder, error);
    if (access(folder.c_str(), W_OK) != 0)
        return none(folder.string() + " is not writable; XDG_CACHE_HOME names another folder");
    return folder;
}

void addFile(core::Digest& digest, const std::string& path, bool withPlace) {
    struct stat status {};
    stat(path.c_str(), &status);
    digest.add(status.st_size);
    if (!withPlace) return;
    digest.add(path);
    digest.add(status.st_mtim.tv_sec);
}

void addSources(core::Digest& digest, const Unit& unit) {
    for (const SourceFile& source : unit.sources) digest.add(source.text);
}

std::string shortened(core::Digest& digest) {
    return digest.hex().substr(0, 16);
}

/// Names this build of the framework together with our sources.
std::string keyOf(const Unit& unit, const FrameworkFiles& files) {
    core::Digest digest;
    addSources(digest, unit);
    for (const std::string& path : {files.libtorch, files.libc10, files.cuda})
        addFile(digest, path, true);
    digest.add(files.hasNewAbi() ? 1 : 0);  // which was taken for the other one before
    digest.add(files.cudaHeaders);
    for (const auto* flags : {&unit.flags, &unit.cudaFlags})
        for (const std::string& flag : *flags) digest.add(flag);
    return shortened(digest);
}

/// Names all builds of the framework that one file serves, wherever they lie: those of one release
/// with the same ABI, all with CUDA or all without. Where the release is unknown, one build.
std::string travellingKey(const Unit& unit, const FrameworkFiles& files) {
    core::Digest digest;
    addSources(digest, unit);
    if (files.version.empty()) {
        for (const std::string& path : {files.libtorch, files.libc10, files.cuda})
            addFile(digest, path, false);
        return shortened(digest);
    }
    digest.add(files.hasNewAbi() ? 1 : 0);
    const std::string number = files.version.substr(0, files.version.find('+'));
    return "torch-" + number + (files.cuda.empty() ? "-" : "-cuda-") + shortened(digest);
}

/// What came with Highwater for this framework; empty where nothing did.
fs::path shipped(const Unit& unit, const FrameworkFiles& files) {
    if (!unit.travels) return "";
    const fs::path file = core::programFolder().parent_path() / "lib/captures" /
                          (travellingKey(unit, files) + unit.suffix);
    std::error_code error;
    return fs::exists(file, error) ? file : "";
}

/// What is loaded from there is what we, or root, have put there; in a folder that the user names,
/// whoever carried it there.
bool isTrustworthy(const fs::path& path, bool named) {
    struct stat status {};
    if (stat(path.c_str(), &status) != 0) return false;
    const bool ours = status.st_uid == geteuid() || status.st_uid == 0;
    const mode_t others = named ? S_IWOTH : S_IWGRP | S_IWOTH;
    return (ours || named) && (status.st_mode & others) == 0;
}

/// Compilers read what headers name: as root, only root's.
core::Status requireRootsOwn(const FrameworkFiles& files) {
    if (geteuid() != 0) return {};
    for (const std::string& path : {files.headers, files.libtorch}) {
        struct stat status {};
        if (stat(path.c_str(), &status) == 0 && status.st_uid != 0)
            return none(path + " belongs to another user, and nothing is compiled with it as root");
    }
    return {};
}

/// Where what is built lies, or will; where the reason lies why `compiler` could not build it.
struct Place {
    fs::path folder, file, refusal;
};

core::Result<Place> placeOf(const Unit& unit, const FrameworkFiles& framework,
                            const std::string& compiler) {
    const auto folder = cacheFolder(unit);
    if (!folder) return folder.error();
    const bool travels = !travellingFolder(unit).empty();
    const std::string key = travels ? travellingKey(unit, framework) : keyOf(unit, framework);
    core::Digest asked;
    addFile(asked, compiler, true);
    return Place{*folder, *folder / (key + unit.suffix),
                 *folder / (key + "-" + asked.hex().substr(0, 8) + ".refused")};
}

core::Result<std::string> kept(const Place& place, const Unit& unit) {
    const bool named = !travellingFolder(unit).empty();
    for (const fs::path& path : {place.folder, place.file})
        if (!isTrustworthy(path, named))
            return none(path.string() + " belongs to somebody else, or others may write to it");
    return place.file.string();
}

core::Status refusedBefore(const Place& place) {
    const std::string reason = contentsOf(place.refusal);
    if (reason.empty()) return {};
    return none(reason + " (the compiler said so before; remove " + place.refusal.string() +
                " to have it tried again)");
}

/// What the compiler said first of what is wrong; empty where it ended for another reason, as when
/// it was killed, which says nothing of the next time.
std::string complaintIn(const fs::path& log) {
    std::istringstream lines(contentsOf(log));
    for (std::string line; std::getline(lines, line);) {
        if (line.find("Killed signal") != std::string::npos ||
            line.find("No space left") != std::string::npos)
            return "";
        if (line.find("error") != std::string::npos) return line;
    }
    return "";
}

/// One unit with everything: nearly all of the time goes into the framework's headers.
fs::path writeSources(const Unit& unit, const fs::path& folder) {
    const fs::path all = folder / "unit.cpp";
    std::ofstream list(all);
    for (const SourceFile& source : unit.sources) {
        const fs::path file = folder / source.name;
        fs::create_directories(file.parent_path());
        std::ofstream(file) << source.text;
        if (file.extension() == ".cpp") list << "#include \"" << source.name << "\"\n";
    }
    return all;
}

/// NDEBUG as in released frameworks, whose classes have other members without it.
core::Status compile(const Unit& unit, const FrameworkFiles& files, const std::string& compiler,
                     const Place& place, const fs::path& folder) {
    const fs::path log = folder / "log";
    std::vector<std::string> command{
        compiler,
        unit.standard.empty() ? files.standard() : unit.standard,
        "-DNDEBUG",
        "-w",
        "-fno-plt",
        std::string("-D_GLIBCXX_USE_CXX11_ABI=") + (files.hasNewAbi() ? "1" : "0"),
        "-I" + folder.string(),
        "-I" + files.headers,
        "-I" + files.headers + "/torch/csrc/api/include",
        writeSources(unit, folder).string(),
        "-o",
        (folder / "built").string()};
    command.insert(command.end(), unit.flags.begin(), unit.flags.end());
    command.insert(command.end(), {files.libtorch, files.libc10});
    std::vector<std::string> withCuda = command;
    withCuda.insert(withCuda.end(), unit.cudaFlags.begin(), unit.cudaFlags.end());
    // Headers of another CUDA may not do; without them, the CPU is served.
    Ran ran = unit.cudaFlags.empty() ? Ran::Badly : runInto(withCuda, log);
    if (ran == Ran::Badly) ran = runInto(command, log);
    if (ran == Ran::Well) return {};
    const std::string complaint = complaintIn(log);
    if (complaint.empty()) return none("the compiler failed");
    std::ofstream(place.refusal) << complaint;
    return none(complaint);
}

bool executable(const fs::path& path) {
    std::error_code error;
    return fs::is_regular_file(path, error) && access(path.c_str(), X_OK) == 0;
}

}  // namespace

core::Result<std::string> compiler() {
    const char* chosen = std::getenv("CXX");
    const fs::path name = chosen != nullptr && *chosen != '\0' ? chosen : "c++";
    if (name.has_parent_path()) {
        if (executable(name)) return name.string();
    } else {
        const char* path = std::getenv("PATH");
        std::istringstream folders(path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin");
        for (std::string folder; std::getline(folders, folder, ':');)
            if (executable(fs::path(folder) / name)) return (fs::path(folder) / name).string();
    }
    return Error{ErrorCode::Target, "there is no C++ compiler ('" + name.string() + "')",
                 "install a C++20 compiler: apt-get install g++, or name one in CXX"};
}

core::Result<std::string> alreadyBuilt(const Unit& unit, const FrameworkFiles& framework) {
    if (const fs::path file = shipped(unit, framework); !file.empty()) return file.string();
    const auto asked = compiler();
    const auto place = placeOf(unit, framework, asked ? *asked : "");
    if (!place) return place.error();
    if (fs::exists(place->file)) return kept(*place, unit);
    if (!asked) return asked.error();
    if (const core::Status fine = refusedBefore(*place); !fine) return fine.error();
    return std::string();
}

core::Result<std::string> built(const Unit& unit, const FrameworkFiles& framework,
                                const std::function<void(const std::string&)>& progress) {
    auto found = alreadyBuilt(unit, framework);
    if (!found || !found->empty()) return found;
    if (const core::Status own = requireRootsOwn(framework); !own) return own.error();
    const std::string with = *compiler();
    const Place place = *placeOf(unit, framework, with);
    const FileLock lock(place.file.string() + ".lock");  // somebody else may be building it
    found = alreadyBuilt(unit, framework);
    if (!found || !found->empty()) return found;
    progress("building " + unit.what + " for this torch, once (about a minute)");
    const core::ScratchFolder scratch(place.folder);
    if (core::Status done = compile(unit, framework, with, place, scratch.path()); !done)
        return done.error();
    std::error_code error;
    fs::rename(scratch.path() / "built", place.file, error);
    if (error) return none("it could not be moved to " + place.file.string());
    return place.file.string();
}

}  // namespace hw::profiler
