// SPDX-License-Identifier: MIT
#include "executor/host/extension_libraries.h"

#include <filesystem>
#include <sstream>

#include "core/base/file.h"
#include "profiler/framework/command.h"

namespace hw::executor {
namespace {

constexpr std::string_view kMark = "highwater-library ";

// Extensions refer to what Python's own library has; where the interpreter has it built in, most
// still load without it.
const char kProbe[] = R"(
import sys
sys.path = [folder for folder in sys.path if folder]
import importlib, os, sysconfig, torch
def loaded():
    with open("/proc/self/maps") as maps:
        return list(dict.fromkeys(line.split(maxsplit=5)[5].rstrip("\n") for line in maps if "/" in line))
before = set(loaded())
sys.path.append(sys.argv[1])  # last: what is received there must not stand in for a library
for name in sys.argv[2:]:
    importlib.import_module(name)
def uses_torch(path):
    with open(path, "rb") as library:
        content = library.read()
    return b"libc10.so" in content or b"libtorch" in content
found = [path for path in loaded() if path not in before and ".so" in path and os.path.exists(path)]
own = os.path.join(sysconfig.get_config_var("LIBDIR") or "", sysconfig.get_config_var("INSTSONAME") or "")
python = [own] if ".so" in own and os.path.isfile(own) else []
for path in python + [path for path in found if uses_torch(path)]:
    print("\nhighwater-library " + path)
)";

/// The last line that says anything, as Python's errors end.
std::string lastLine(const std::string& text) {
    std::istringstream lines(text);
    std::string last;
    for (std::string line; std::getline(lines, line);)
        if (!line.empty()) last = line;
    return last;
}

}  // namespace

core::Result<std::vector<std::string>> librariesOfModules(const std::string& python,
                                                          const std::vector<std::string>& modules) {
    const core::ScratchFolder scratch;
    const std::filesystem::path output = scratch.path() / "output";
    std::error_code error;
    std::vector<std::string> command{python, "-c", kProbe,
                                     std::filesystem::current_path(error).string()};
    command.insert(command.end(), modules.begin(), modules.end());
    const profiler::Ran ran = profiler::runInto(command, output);
    const std::string text = profiler::contentsOf(output);
    if (ran != profiler::Ran::Well)
        return core::Error{core::ErrorCode::Target,
                           "'" + python + "' cannot import what --import names" +
                               (text.empty() ? "" : ": " + lastLine(text)),
                           "name the interpreter that has it: --python"};
    std::vector<std::string> libraries;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
        if (line.starts_with(kMark)) libraries.push_back(line.substr(kMark.size()));
    return libraries;
}

}  // namespace hw::executor
