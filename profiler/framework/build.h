// SPDX-License-Identifier: MIT
// What is compiled for each build of a framework, once, on the user's machine: its ABI is the
// framework's own, which nothing that we could ship would fit.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "profiler/framework/files.h"

namespace hw::profiler {

struct SourceFile {
    std::string name;  // may have folders, by which others include it
    std::string text;
};

/// What is to be compiled against a framework.
struct Unit {
    std::string what;                    // "the native capture", in messages
    std::string suffix;                  // of the file's name
    std::vector<SourceFile> sources;     // all .cpp ones are compiled as one
    std::string standard;                // empty: the one that the framework's headers ask for
    std::vector<std::string> flags;      // for compiler and linker
    std::vector<std::string> cudaFlags;  // besides; tried first, left out where they do not do
    /// It names no place of the framework: the same file serves on other machines with the same
    /// release of it.
    bool travels = false;
};

/// The compiled file: what came with Highwater (lib/captures beside the folder of the program, for
/// units that travel), else from the cache or built into it (about a minute; `progress` is told).
/// The cache: $XDG_CACHE_HOME/highwater/capture or ~/.cache/highwater/capture; for units that
/// travel $HIGHWATER_CAPTURES where it is set. Sources that a compiler has refused are not tried
/// again with the same compiler: a file beside the cache's others keeps the reason. Errors: Target,
/// saying why there is none.
core::Result<std::string> built(const Unit& unit, const FrameworkFiles& framework,
                                const std::function<void(const std::string&)>& progress);

/// The same, but nothing is compiled: empty where there is nothing yet. Errors: Target where it
/// cannot be compiled, as far as that is known.
core::Result<std::string> alreadyBuilt(const Unit& unit, const FrameworkFiles& framework);

/// The compiler that would be asked, as a path. Errors: Target.
core::Result<std::string> compiler();

}  // namespace hw::profiler
