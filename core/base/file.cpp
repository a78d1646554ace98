// SPDX-License-Identifier: MIT
#include "core/base/file.h"

#include <cstdio>
#include <fstream>

namespace hw::core {

Status writeFileAtomically(const std::string& path, const std::string& text) {
    const std::string temporary = path + ".partial";
    {
        std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
        file << text;
        file.flush();
        if (!file) {
            std::remove(temporary.c_str());
            return badInput("cannot write '" + path + "'",
                            "check that the folder exists, is writable and has room");
        }
    }
    if (std::rename(temporary.c_str(), path.c_str()) != 0) {
        std::remove(temporary.c_str());
        return badInput("cannot write '" + path + "'", "check that the path is no folder");
    }
    return {};
}

}  // namespace hw::core
