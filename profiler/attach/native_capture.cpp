// SPDX-License-Identifier: MIT
#include "profiler/attach/native_capture.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/base/digest.h"
#include "core/base/file.h"
#include "core/base/spawn.h"
#include "profiler/agent/embedded.h"
#include "profiler/attach/process.h"

namespace hw::profiler {
namespace {

namespace fs = std::filesystem;
using core::Error;
using core::ErrorCode;

const char kProbe[] =
    "import importlib.util as u; s = u.find_spec('torch'); "
    "print(s.submodule_search_locations[0] if s else '')";

Error none(const std::string& why) {
    return {ErrorCode::Target, why, ""};
}

enum class Ran { Well, Badly, Never };

/// Runs a program to its end with its output going to a file.
Ran run(const std::vector<std::string>& command, const fs::path& output) {
    const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    const int file = open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    const core::Spawned program = core::spawn({command, {}, nothing, file, file});
    close(nothing);
    close(file);
    if (program.error != 0) return Ran::Never;
    return core::succeeded(core::waitFor(program.pid)) ? Ran::Well : Ran::Badly;
}

std::string contentsOf(const fs::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
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
fs::path travellingFolder() {
    const char* folder = std::getenv("HIGHWATER_CAPTURES");
    return folder != nullptr ? folder : "";
}

core::Result<fs::path> cacheFolder() {
    fs::path folder = travellingFolder();
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
        return none("there is no cache folder (HOME is not set)");
    folder /= "highwater/capture";
    std::error_code error;
    fs::create_directories(folder, error);
    if (access(folder.c_str(), W_OK) != 0) return none(folder.string() + " is not writable");
    return folder;
}

/// Names this build of the framework together with our sources; where the library travels, wherever
/// the framework lies.
std::string keyOf(const FrameworkFiles& files) {
    const bool travels = !travellingFolder().empty();
    core::Digest digest;
    for (const EmbeddedFile* source = kNativeFiles; source->name != nullptr; ++source)
        digest.add(source->text);
    for (const std::string& path : {files.libtorch, files.libc10, files.cuda}) {
        struct stat status {};
        stat(path.c_str(), &status);
        digest.add(status.st_size);
        if (travels) continue;
        digest.add(path);
        digest.add(status.st_mtim.tv_sec);
    }
    if (!travels) digest.add(files.cudaHeaders);
    return digest.hex().substr(0, 16);
}

/// Whether names of the standard library in the framework are those of the current C++ ABI.
bool hasNewAbi(const std::string& libc10) {
    return contentsOf(libc10).find("__cxx1112basic_string") != std::string::npos;
}

std::string compiler() {
    const char* chosen = std::getenv("CXX");
    return chosen != nullptr && *chosen != '\0' ? chosen : "c++";
}

/// The C++ standard that the framework's headers ask for: torch 2.12 and later refuse an older one.
std::string standard(const FrameworkFiles& files) {
    const bool newer =
        contentsOf(files.headers + "/ATen/ATen.h").find("C++20 or later") != std::string::npos;
    return newer ? "-std=c++20" : "-std=c++17";
}

/// NDEBUG as in released frameworks, whose classes have other members without it. One unit with
/// everything: nearly all of the time goes into the framework's headers.
core::Status compile(const FrameworkFiles& files, const fs::path& folder) {
    std::ofstream all(folder / "capture.cpp");
    for (const EmbeddedFile* source = kNativeFiles; source->name != nullptr; ++source) {
        const fs::path file = folder / source->name;
        fs::create_directories(file.parent_path());
        std::ofstream(file) << source->text;
        if (file.extension() == ".cpp") all << "#include \"" << source->name << "\"\n";
    }
    all.close();
    const fs::path log = folder / "log";
    std::vector<std::string> command{
        compiler(),
        standard(files),
        "-O3",
        "-DNDEBUG",
        "-fPIC",
        "-shared",
        "-w",
        "-fvisibility=hidden",
        "-fno-plt",
        std::string("-D_GLIBCXX_USE_CXX11_ABI=") + (hasNewAbi(files.libc10) ? "1" : "0"),
        "-I" + folder.string(),
        "-I" + files.headers,
        "-I" + files.headers + "/torch/csrc/api/include",
        (folder / "capture.cpp").string(),
        files.libtorch,
        files.libc10,
        "-o",
        (folder / "capture.so").string()};
    std::vector<std::string> withCuda = command;
    withCuda.insert(withCuda.end(), {"-DHIGHWATER_CUDA", "-I" + files.cudaHeaders, files.cuda});
    // Headers of another CUDA may not do; without them, only what the GPU allocates goes unseen.
    const bool hasCuda = !files.cuda.empty() && !files.cudaHeaders.empty();
    Ran ran = hasCuda ? run(withCuda, log) : Ran::Badly;
    if (ran == Ran::Badly) ran = run(command, log);
    if (ran == Ran::Never) return none("there is no C++ compiler ('" + compiler() + "')");
    if (ran == Ran::Well) return {};
    std::istringstream lines(contentsOf(log));
    for (std::string line; std::getline(lines, line);)
        if (line.find("error") != std::string::npos) return none(line);
    return none("the compiler failed");
}

bool ownedByUs(const fs::path& path) {
    struct stat status {};
    return stat(path.c_str(), &status) == 0 && status.st_uid == geteuid() &&
           (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

std::string resolved(const fs::path& path) {
    std::error_code error;
    const fs::path real = fs::canonical(path, error);
    return error ? std::string() : real.string();
}

/// The folder with the headers of CUDA's runtime: of a package beside the framework's, or of a
/// toolkit; empty where there is none. Packages of some versions hold them in part only.
std::string cudaHeaders(const fs::path& packages) {
    std::vector<fs::path> folders;
    const auto eachIn = [&](const fs::path& parent, const std::string& begin,
                            const std::string& below) {
        std::error_code error;
        std::vector<fs::path> found;
        for (const auto& entry : fs::directory_iterator(parent, error))
            if (entry.path().filename().string().starts_with(begin))
                found.push_back(entry.path() / below);
        std::sort(found.rbegin(), found.rend());
        folders.insert(folders.end(), found.begin(), found.end());
    };
    eachIn(packages / "nvidia", "cu", "include");
    folders.emplace_back("/usr/local/cuda/include");
    eachIn("/usr/local", "cuda-", "include");
    folders.push_back(packages / "triton/backends/nvidia/include");  // comes with the framework
    for (const fs::path& folder : folders)
        if (fs::exists(folder / "cuda_runtime_api.h") && fs::exists(folder / "crt/host_defines.h"))
            return folder.string();
    return "";
}

void findCuda(FrameworkFiles& files) {
    const fs::path libraries = fs::path(files.libtorch).parent_path();
    files.cuda = resolved(libraries / "libc10_cuda.so");
    if (!files.cuda.empty()) files.cudaHeaders = cudaHeaders(libraries.parent_path().parent_path());
}

/// Headers of a library: beside it as in a wheel, or in the system's folder of headers.
core::Result<FrameworkFiles> withHeaders(FrameworkFiles files) {
    if (files.libtorch.empty() || files.libc10.empty()) return none("its libraries were not found");
    for (const fs::path& folder : {fs::path(files.libtorch).parent_path().parent_path() / "include",
                                   fs::path("/usr/include")})
        if (fs::exists(folder / "ATen/record_function.h")) {
            files.headers = folder.string();
            findCuda(files);
            return files;
        }
    return none("the framework's headers are not installed");
}

}  // namespace

core::Result<FrameworkFiles> frameworkOf(const std::vector<std::string>& mappedFiles) {
    FrameworkFiles files;
    for (const std::string& path : mappedFiles) {
        const std::string name = fs::path(path).filename().string();
        if (name.starts_with("libtorch_cpu.so")) files.libtorch = resolved(path);
        if (name.starts_with("libc10.so")) files.libc10 = resolved(path);
    }
    return withHeaders(files);
}

core::Result<FrameworkFiles> frameworkOfProcess(pid_t pid) {
    const auto mapped = mappedFiles(pid);
    if (!mapped) return mapped.error();
    std::vector<std::string> paths;
    for (const MappedFile& file : *mapped) paths.push_back(file.path);
    return frameworkOf(paths);
}

core::Result<FrameworkFiles> frameworkOfPython(const std::string& python) {
    if (!fs::path(python).filename().string().starts_with("python"))
        return none("'" + python + "' is not a Python interpreter");
    const core::ScratchFolder scratch;
    const fs::path output = scratch.path() / "output";
    if (run({python, "-c", kProbe}, output) != Ran::Well)
        return none("'" + python + "' could not be asked");
    std::istringstream lines(contentsOf(output));
    std::string root;
    std::getline(lines, root);
    if (root.empty()) return none("'" + python + "' has no torch");
    FrameworkFiles files;
    files.libtorch = resolved(fs::path(root) / "lib/libtorch_cpu.so");
    files.libc10 = resolved(fs::path(root) / "lib/libc10.so");
    return withHeaders(files);
}

core::Result<std::string> nativeCapture(const FrameworkFiles& files,
                                        const std::function<void(const std::string&)>& progress) {
    auto cache = cacheFolder();
    if (!cache) return cache.error();
    const fs::path library = *cache / (keyOf(files) + ".so");
    if (fs::exists(library)) {
        if (ownedByUs(library) || !travellingFolder().empty()) return library.string();
        return none(library.string() + " belongs to somebody else");
    }
    const FileLock lock(library.string() + ".lock");  // somebody else may be building it
    if (fs::exists(library)) return library.string();
    progress("building the native capture for this torch, once (about a minute)");
    const core::ScratchFolder scratch(*cache);
    if (core::Status built = compile(files, scratch.path()); !built) return built.error();
    std::error_code error;
    fs::rename(scratch.path() / "capture.so", library, error);
    if (error) return none("it could not be moved to " + library.string());
    return library.string();
}

}  // namespace hw::profiler
