// SPDX-License-Identifier: MIT
#include "executor/host/find_executor.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/file.h"
#include "profiler/framework/used_torches.h"

namespace hw::executor {
namespace {

using Tell = std::function<void(const std::string&)>;
namespace fs = std::filesystem;
using core::Error;
using core::ErrorCode;

bool isThere(const fs::path& path) {
    std::error_code ignored;
    return fs::exists(path, ignored);
}

Error missing(const fs::path& what) {
    return {ErrorCode::Internal, what.string() + " is missing, from which executors are made",
            "install Highwater again; in a build, it is of the target highwater_executor_sources"};
}

/// In the order of their names: they are part of what names a build.
core::Result<std::vector<profiler::SourceFile>> executorSources(const fs::path& folder) {
    std::vector<profiler::SourceFile> sources;
    for (const char* part : {"core", "executor"}) {
        std::error_code error;
        for (const auto& entry : fs::recursive_directory_iterator(folder / part, error)) {
            if (!entry.is_regular_file()) continue;
            std::ifstream file(entry.path());
            sources.push_back({fs::relative(entry.path(), folder).string(),
                               std::string(std::istreambuf_iterator<char>(file), {})});
        }
        if (error) return missing(folder / part);
    }
    std::sort(sources.begin(), sources.end(),
              [](const auto& a, const auto& b) { return a.name < b.name; });
    return sources;
}

core::Result<std::string> replayLibrary(bool newAbi) {
    const std::string name = newAbi ? "libhighwater_replay.so" : "libhighwater_replay_old_abi.so";
    for (const char* folder : {"../lib", "../lib/highwater"})
        if (std::error_code error; isThere(core::programFolder() / folder / name))
            return fs::canonical(core::programFolder() / folder / name, error).string();
    if (newAbi) return missing(name);
    return Error{ErrorCode::Target,
                 "this torch has the older C++ ABI, and this build of Highwater has no " + name,
                 "install a package of Highwater, or build it with -DHIGHWATER_OLD_ABI=ON"};
}

/// Where the loader finds what torch's libraries need, as far as they do not say so themselves.
std::vector<std::string> libraryFolders(const profiler::FrameworkFiles& torch) {
    const fs::path libraries = fs::path(torch.libtorch).parent_path();
    std::vector<std::string> folders{libraries.string()};
    std::error_code error;
    for (const auto& entry :
         fs::directory_iterator(libraries.parent_path().parent_path() / "nvidia", error))
        folders.push_back((entry.path() / "lib").string());
    std::sort(folders.begin() + 1, folders.end());
    for (const char* folder : {"/usr/local/cuda/lib64", "/usr/local/cuda/extras/CUPTI/lib64"})
        if (isThere(folder)) folders.emplace_back(folder);
    return folders;
}

/// Kernels register themselves when their library is loaded, so it must not be left out as unused.
core::Status addCuda(profiler::Unit& unit, const profiler::FrameworkFiles& torch) {
    if (torch.cuda.empty())
        return Error{ErrorCode::Usage, "the torch at hand is not built for CUDA",
                     "run on the CPU, or name an interpreter with a torch for CUDA: --python"};
    fs::path runtime;
    for (const std::string& folder : libraryFolders(torch)) {
        std::error_code error;
        for (const auto& entry : fs::directory_iterator(folder, error))
            if (entry.path().filename().string().starts_with("libcudart.so"))
                runtime = entry.path();
    }
    if (torch.cudaHeaders.empty() || runtime.empty())
        return Error{ErrorCode::Target, "the CUDA runtime or its headers are not installed",
                     "install the CUDA toolkit that this torch was built with"};
    unit.flags.insert(unit.flags.end(),
                      {"-DHIGHWATER_EXEC_CUDA", "-I" + torch.cudaHeaders, "-Wl,--no-as-needed",
                       (fs::path(torch.libtorch).parent_path() / "libtorch_cuda.so").string(),
                       torch.cuda, runtime.string()});
    return {};
}

/// What a session says of the torch that it was recorded with.
struct Recorded {
    std::string version, package;
    std::string python;  // the interpreter that it names, if there is one; never started unasked
};

Recorded recordedWith(const core::Session& session) {
    Recorded recorded;
    if (const auto processes = session.processes(); processes && !processes->empty()) {
        const core::ProcessRow& first = processes->front();
        if (first.framework == "pytorch") recorded.version = first.frameworkVersion;
        std::string python = first.command.substr(0, first.command.find(' '));
        if (python.starts_with('/') && isThere(python)) recorded.python = std::move(python);
    }
    if (const auto steps = session.steps(); steps && !steps->empty()) {
        const auto json = nlohmann::json::parse(steps->back().environment, nullptr, false);
        if (json.is_object() && json.contains("torch_package") && json["torch_package"].is_string())
            recorded.package = json["torch_package"].get<std::string>();
    }
    return recorded;
}

/// Packages of torch on this machine, the session's own first. A session may come from anybody: no
/// interpreter that it names is started, and a package only taken where this user has trained with
/// it before.
std::vector<Torch> torchesAtHand(const Recorded& recorded) {
    std::vector<Torch> found;
    const auto add = [&](const std::string& package) {
        std::string version = profiler::versionOfPackage(package);
        if (!version.empty()) found.push_back({package, std::move(version)});
    };
    if (profiler::isUsedTorch(recorded.package)) add(recorded.package);
    if (const auto package = profiler::packageOfPython("python3")) add(*package);
    return found;
}

core::Result<std::string> executorOf(const Torch& torch, bool cuda, const Tell& tell) {
    const auto files = profiler::frameworkIn(torch.package);
    const auto unit = files ? executorUnit(*files, cuda) : files.error();
    if (!unit && !unit.error().hint.empty()) return unit.error();
    auto made = unit ? profiler::built(*unit, *files, tell) : unit.error();
    if (made) return made;
    return Error{made.error().code,
                 "no executor could be made for torch " + torch.version + ": " + made.error().what,
                 "it takes a C++20 compiler, such as g++ 10 or later, and torch with its headers; "
                 "`highwater doctor` says what is missing"};
}

/// How to run with the interpreter that the session names.
std::string byItsOwn(const Recorded& recorded) {
    if (recorded.python.empty()) return "";
    return "; it names " + recorded.python + ", which is started only if you say so: --python " +
           recorded.python;
}

Error noTorch(const Recorded& recorded) {
    const std::string& own = recorded.version;  // as 2.8.0+cu128, or a distribution's 1.13.0a0
    const std::string plain = own.substr(0, own.find('+'));
    const std::string release = own.substr(0, own.find_first_not_of("0123456789."));
    return {ErrorCode::Target,
            "there is no torch here to run this session with" +
                (plain.empty() ? "" : ": it was recorded with torch " + plain),
            "install it (pip install torch" + (release.empty() ? "" : "==" + release) +
                "), or name an interpreter that has it: --python" + byItsOwn(recorded)};
}

/// What runs a session.
struct Chosen {
    std::string torch;         // its version
    std::string made;          // what `make` says of it; or the program that is ready
    bool ready = false;        // came with Highwater
    bool another = false;      // of another release than the session's
    std::optional<Error> why;  // nothing of its own release does
};

/// Of the session's own release, else of another: most ops are in every release, better than
/// nothing, and an op that is missing is named. `make`: a Result<std::string> of a Torch.
template <class Make>
core::Result<Chosen> choose(const Recorded& recorded, bool cuda, const Make& make) {
    const std::string release = profiler::release(recorded.version);
    if (std::string ready = readyExecutor(release); !ready.empty())
        return Chosen{recorded.version, std::move(ready), true, false, {}};
    const std::vector<Torch> torches = torchesAtHand(recorded);
    std::optional<Error> why;
    for (const Torch& torch : torches) {
        if (profiler::release(torch.version) != release) continue;
        auto made = make(torch);
        if (made) return Chosen{torch.version, std::move(*made), false, false, {}};
        if (made.error().code == ErrorCode::Usage) return made.error();
        if (!why) why = made.error();
    }
    if (const fs::path ready = core::programFolder() / "highwater-exec"; isThere(ready) && !cuda)
        return Chosen{HIGHWATER_LIBTORCH, ready.string(), true, true, why};
    for (const Torch& torch : torches) {
        if (profiler::release(torch.version) == release) continue;
        if (auto made = make(torch))
            return Chosen{torch.version, std::move(*made), false, true, why};
    }
    return why ? *why : noTorch(recorded);
}

}  // namespace

core::Result<Torch> torchOf(const std::string& python) {
    const auto package = profiler::packageOfPython(python);
    if (!package) return package.error();
    return Torch{*package, profiler::versionOfPackage(*package)};
}

std::string readyExecutor(const std::string& release) {
    const fs::path named = core::programFolder() / ("highwater-exec-" + release);
    if (isThere(named)) return named.string();
    const fs::path plain = core::programFolder() / "highwater-exec";
    const bool fits = release == profiler::release(HIGHWATER_LIBTORCH);
    return fits && isThere(plain) ? plain.string() : "";
}

core::Result<profiler::Unit> executorUnit(const profiler::FrameworkFiles& torch, bool cuda) {
    const fs::path folder = core::programFolder() / "../share/highwater/executor";
    auto sources = executorSources(folder);
    if (!sources) return sources.error();
    const auto library = replayLibrary(torch.hasNewAbi());
    if (!library) return library.error();
    profiler::Unit unit;
    unit.what = "the executor";
    unit.suffix = ".executor";
    unit.sources = std::move(*sources);
    unit.standard = "-std=c++20";
    unit.flags = {
        "-O2", "-I" + (folder / "include").string(), *library, "-Wl,--allow-shlib-undefined",
        // The older form of the search path also serves what torch's libraries need.
        "-Wl,--disable-new-dtags", "-Wl,-rpath," + fs::path(*library).parent_path().string()};
    for (const std::string& place : libraryFolders(torch))
        unit.flags.push_back("-Wl,-rpath," + place);
    if (cuda)
        if (const core::Status done = addCuda(unit, torch); !done) return done.error();
    return unit;
}

core::Result<std::string> executorFor(const core::Session& session, const ExecutorChoice& choice,
                                      const Tell& tell) {
    const Recorded recorded = recordedWith(session);
    if (!choice.python.empty()) {
        const auto torch = torchOf(choice.python);
        if (!torch)
            return Error{ErrorCode::Target, torch.error().what,
                         "name a Python interpreter that imports torch"};
        if (choice.anyOfRelease && !choice.cuda)
            if (std::string ready = readyExecutor(profiler::release(torch->version));
                !ready.empty())
                return ready;
        return executorOf(*torch, choice.cuda, tell);
    }
    const auto chosen = choose(recorded, choice.cuda, [&](const Torch& torch) {
        return executorOf(torch, choice.cuda, tell);
    });
    if (!chosen) return chosen.error();
    if (chosen->another && !recorded.version.empty())
        tell((chosen->why ? chosen->why->what : "torch " + recorded.version + " is not here") +
             "; running with torch " + chosen->torch + byItsOwn(recorded));
    return chosen->made;
}

core::Result<std::string> whoRuns(const core::Session& session) {
    const Recorded recorded = recordedWith(session);
    const auto chosen =
        choose(recorded, false, [](const Torch& torch) -> core::Result<std::string> {
            const auto files = profiler::frameworkIn(torch.package);
            if (!files) return files.error();
            const auto unit = executorUnit(*files, false);
            if (!unit) return unit.error();
            return profiler::alreadyBuilt(*unit, *files);
        });
    if (!chosen) return chosen.error();
    std::string who = "torch " + chosen->torch;
    if (!chosen->ready && chosen->made.empty())
        who += ", compiled for it first (once, about a minute)";
    if (chosen->another && !recorded.version.empty())
        who += " instead of " + recorded.version + ", which is not here";
    return who;
}

std::string pythonNamedBy(const core::Session& session) {
    const Recorded recorded = recordedWith(session);
    return profiler::isUsedTorch(recorded.package) ? "" : recorded.python;
}

}  // namespace hw::executor
