// SPDX-License-Identifier: GPL-3.0-or-later
// `doctor`: what of Highwater works on this machine, and what to do about the rest.
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>

#include "app/recording.h"
#include "app/window_apart.h"
#include "executor/host/find_executor.h"
#include "profiler/attach/native_capture.h"
#include "profiler/attach/rights.h"

namespace hw::app {
namespace {

namespace fs = std::filesystem;
using core::Error;
using core::ErrorCode;

/// Works; works, but less or later; does not.
enum class Health { Good, Limited, Missing };

const char* name(Health health) {
    switch (health) {
        case Health::Good:
            return "ok";
        case Health::Limited:
            return "limited";
        case Health::Missing:
            break;
    }
    return "missing";
}

struct Finding {
    std::string part;
    Health health = Health::Good;
    std::string what, hint;
};

/// What is to be compiled now instead of when it is first wanted.
enum class Build { Nothing, Capture, All };

/// What is compiled for a torch: there, to be compiled when it is first wanted, or impossible.
Finding compiled(const std::string& part, const profiler::Unit& unit,
                 const profiler::FrameworkFiles& files, Health otherwise, bool now) {
    const auto found =
        now ? profiler::built(unit, files, toTerminal) : profiler::alreadyBuilt(unit, files);
    if (!found) {
        const std::string& hint = found.error().hint;
        return {part, otherwise, found.error().what,
                hint.empty() ? "see the reason; other parts do not need it" : hint};
    }
    if (!found->empty()) return {part, Health::Good, *found, ""};
    return {part, Health::Good, "is compiled when it is first wanted, once (about a minute)", ""};
}

Finding capture(const profiler::FrameworkFiles& files, Build build) {
    Finding found = compiled("capture", profiler::captureUnit(files), files, Health::Limited,
                             build != Build::Nothing);
    if (found.health == Health::Limited)
        found.what =
            "ops are seen through Python, which takes longer, and programs cannot be "
            "trained under plans: " +
            found.what;
    return found;
}

Finding executor(const executor::Torch& torch, const profiler::FrameworkFiles& files, Build build) {
    if (std::string ready = executor::readyExecutor(profiler::release(torch.version));
        !ready.empty())
        return {"executor", Health::Good, ready, ""};
    const auto unit = executor::executorUnit(files, false);
    if (!unit) return {"executor", Health::Missing, unit.error().what, unit.error().hint};
    return compiled("executor", *unit, files, Health::Missing, build == Build::All);
}

/// What depends on the torch of `python`.
std::vector<Finding> ofTorch(const std::string& python, Build build) {
    const auto torch = executor::torchOf(python);
    if (!torch)
        return {{"torch", Health::Missing, torch.error().what,
                 "install it (pip install torch), or name another interpreter: highwater doctor "
                 "PYTHON"}};
    std::vector<Finding> found{
        {"torch", Health::Good, torch->version + " in " + torch->package, ""}};
    const auto files = profiler::frameworkIn(torch->package);
    if (!files) {
        found.push_back({"capture", Health::Limited,
                         "ops are seen through Python: " + files.error().what,
                         "install torch with its headers: PyPI's has them, Debian's are in "
                         "libtorch-dev"});
        return found;
    }
    found.push_back(capture(*files, build));
    found.push_back(executor(*torch, *files, build));
    return found;
}

Finding compiler() {
    const auto path = profiler::compiler();
    if (path) return {"compiler", Health::Good, *path, ""};
    return {"compiler", Health::Limited, path.error().what, path.error().hint};
}

Finding agent() {
    const auto path = profiler::findAgent("");
    if (path) return {"agent", Health::Good, *path, ""};
    return {"agent", Health::Missing, path.error().what, path.error().hint};
}

Finding attach() {
    const core::Status may = profiler::mayAttach(false);
    if (may) return {"attach", Health::Good, "processes of this user can be attached to", ""};
    return {"attach", Health::Limited, may.error().what, may.error().hint};
}

std::string cuptiIn(const std::vector<fs::path>& folders) {
    for (const fs::path& folder : folders) {
        std::error_code error;
        for (const auto& entry : fs::directory_iterator(folder, error))
            if (entry.path().filename().string().starts_with("libcupti.so.1"))
                return entry.path().string();
    }
    return "";
}

Finding cupti(const std::string& python) {
    if (!fs::exists("/proc/driver/nvidia/version"))
        return {"cupti", Health::Good, "there is no NVIDIA GPU to record", ""};
    if (const auto library = profiler::findAgent("");
        !library || !fs::exists(fs::path(*library).parent_path() / "libhighwater_cupti.so"))
        return {"cupti", Health::Limited, "this build of Highwater does not record GPUs",
                "build it where the CUDA toolkit's headers are installed"};
    std::vector<fs::path> folders{"/usr/local/cuda/extras/CUPTI/lib64", "/usr/local/cuda/lib64"};
    if (const auto torch = executor::torchOf(python)) {
        const fs::path nvidia = fs::path(torch->package).parent_path() / "nvidia";
        folders.insert(folders.end(), {nvidia / "cuda_cupti/lib", nvidia / "cu13/lib"});
    }
    const char* given = std::getenv("HIGHWATER_CUPTI");
    const std::string path = given != nullptr && *given != '\0' ? given : cuptiIn(folders);
    if (fs::exists(path)) return {"cupti", Health::Good, path, ""};
    return {"cupti", Health::Limited, "CUPTI was not found: kernels and copies are not recorded",
            "install the CUDA toolkit's CUPTI, or name its libcupti.so in HIGHWATER_CUPTI"};
}

/// As in executor/replay/sandbox.h, which is part of another program.
Finding sandbox() {
    const std::uint32_t wanted = SECCOMP_RET_ERRNO;
    if (syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &wanted) == 0)
        return {"sandbox", Health::Good, "ops of sessions run without rights to write or connect",
                ""};
    return {
        "sandbox", Health::Limited,
        "this kernel, or container, has no seccomp: ops of sessions run with all of your rights",
        "run sessions of people whom you trust only"};
}

Finding window() {
#ifdef HIGHWATER_WITH_VIEWER
    return {"window", Health::Good, "built in", ""};
#else
    const auto path = windowApart();
    if (path) return {"window", Health::Good, *path, ""};
    return {"window", Health::Limited, path.error().what, path.error().hint};
#endif
}

int run(const std::string& python, Build build, const Common& common) {
    std::vector<Finding> findings{agent(), compiler()};
    for (Finding& finding : ofTorch(python, build)) findings.push_back(std::move(finding));
    findings.insert(findings.end(), {attach(), sandbox(), cupti(python), window()});
    Json parts = Json::array();
    bool works = true;
    for (const Finding& finding : findings) {
        works = works && finding.health != Health::Missing;
        parts.push_back({{"part", finding.part},
                         {"state", name(finding.health)},
                         {"what", finding.what},
                         {"hint", finding.hint}});
    }
    if (common.json) {
        answerWith({{"version", HIGHWATER_VERSION},
                    {"python", python},
                    {"works", works},
                    {"parts", parts}});
        return works ? 0 : static_cast<int>(ErrorCode::Target);
    }
    std::printf("Highwater %s with %s\n\n", HIGHWATER_VERSION, python.c_str());
    for (const Finding& finding : findings) {
        std::printf("%-9s %-8s %s\n", finding.part.c_str(), name(finding.health),
                    finding.what.c_str());
        if (!finding.hint.empty()) std::printf("%18s → %s\n", "", finding.hint.c_str());
    }
    return works ? 0 : static_cast<int>(ErrorCode::Target);
}

}  // namespace

void addDoctor(CLI::App& app, Common& common) {
    auto* command = addCommand(app, common, "doctor",
                               "Say what of Highwater works on this machine, and what to do about "
                               "the rest");
    auto python = std::make_shared<std::string>("python3");
    command->add_option("PYTHON", *python,
                        "The interpreter whose torch is looked at (default: python3)");
    auto build = std::make_shared<Build>(Build::Nothing);
    command
        ->add_option_function<std::string>(
            "--build",
            [build](const std::string& part) {
                *build = part == "all" ? Build::All : Build::Capture;
            },
            "Compile now what else is compiled when it is first wanted: capture (and "
            "live runtime), or all (the executor, too)")
        ->check(CLI::IsMember({"capture", "all"}));
    command->callback([python, build, &common] { common.exitCode = run(*python, *build, common); });
}

}  // namespace hw::app
