// SPDX-License-Identifier: MIT
// Where in the program an op comes from, as far as the shim says so while a step is traced.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format.h"

namespace hw::live::runtime {

class Place {
public:
    /// Modules by their paths, such as "blocks.2.norm1"; -1: outside of any.
    std::int64_t layer = -1;
    profiler::wire::Phase phase = profiler::wire::Phase::Forward;

    std::int64_t layerOf(std::string path) {
        paths_.push_back(std::move(path));
        return static_cast<std::int64_t>(paths_.size() - 1);
    }
    const std::vector<std::string>& paths() const { return paths_; }
    /// Empty: outside of any module.
    std::string path(std::int64_t of) const {
        return of < 0 ? std::string() : paths_[static_cast<std::size_t>(of)];
    }

private:
    std::vector<std::string> paths_;
};

}  // namespace hw::live::runtime
