// SPDX-License-Identifier: MIT
#include "core/base/file.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace hw::core {

Status writeFileAtomically(const std::string& path, const std::string& text) {
    std::error_code ignored;
    // What is no plain file, such as /dev/stdout, is written to as it is.
    const bool special =
        std::filesystem::exists(path, ignored) && !std::filesystem::is_regular_file(path, ignored);
    const std::string temporary = special ? path : path + ".partial";
    {
        std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
        file << text;
        file.flush();
        if (!file) {
            if (!special) std::remove(temporary.c_str());
            return badInput("cannot write '" + path + "'",
                            "check that the folder exists, is writable and has room");
        }
    }
    if (!special && std::rename(temporary.c_str(), path.c_str()) != 0) {
        std::remove(temporary.c_str());
        return badInput("cannot write '" + path + "'", "check that the path is no folder");
    }
    return {};
}

std::filesystem::path programFolder() {
    std::error_code ignored;
    return std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
}

ScratchFolder::ScratchFolder(const std::filesystem::path& parent) {
    std::string name = (parent / "highwater-XXXXXX").string();
    if (mkdtemp(name.data()) != nullptr) path_ = name;
}

ScratchFolder::~ScratchFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace hw::core
