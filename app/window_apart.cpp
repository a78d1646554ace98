// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window_apart.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "core/base/file.h"
#include "profiler/framework/command.h"
#include "viewer/needed_packages.h"

namespace hw::app {
namespace {

namespace fs = std::filesystem;
using core::Error;
using core::ErrorCode;

/// Of what the loader says: "PROGRAM: error while loading shared libraries: libQt6Gui.so.6: cannot
/// open …".
std::string missingLibrary(const std::string& said) {
    constexpr std::string_view kBefore = "shared libraries: ";
    const auto begin = said.find(kBefore);
    if (begin == std::string::npos) return "";
    const auto name = begin + kBefore.size();
    return said.substr(name, said.find(':', name) - name);
}

}  // namespace

core::Result<std::string> windowApart() {
    std::error_code error;
    const fs::path path = core::programFolder() / "highwater-window";
    if (!fs::exists(path, error))
        return Error{ErrorCode::Usage, "this build has no window and takes no pictures",
                     "install Qt 6 and QCustomPlot (scripts/setup) and build again, or open the "
                     "session where Highwater has a window: it is one file"};
    const core::ScratchFolder scratch;
    const fs::path output = scratch.path() / "output";
    if (profiler::runInto({path.string(), "--version"}, output) == profiler::Ran::Well)
        return path.string();
    const std::string said = profiler::contentsOf(output), library = missingLibrary(said);
    const bool ofQt = library.starts_with("libQt6");
    return Error{ErrorCode::Target,
                 "the window and pictures need " + (library.empty() ? said : library),
                 ofQt ? "pip install PySide6-Essentials" : viewer::kInstallNeeded};
}

void becomeWindow(int argc, char** argv) {
    constexpr std::string_view kItsCommands[] = {"view", "shot", "report", "completion", "manual"};
    if (argc > 1 &&
        std::ranges::find(kItsCommands, std::string_view(argv[1])) == std::end(kItsCommands))
        return;
    if (const auto window = windowApart()) execv(window->c_str(), argv);
}

}  // namespace hw::app
