// SPDX-License-Identifier: MIT
#include "source_lines.h"

#include <algorithm>

namespace hw::executor::live {

std::uint64_t SourceLines::hash() const {
    std::uint64_t hash = sites_.size();
    for (const std::uintptr_t site : sites_) hash = (hash ^ site) * 0x9e3779b97f4a7c15ull;
    return hash ^ (hash >> 32);
}

/// The innermost frame of the program's own.
std::string SourceLines::text(const std::vector<const profiler::native::SourceFrame*>& frames) {
    const auto own = std::find_if(frames.begin(), frames.end(), [](const auto* frame) {
        return !frame->hidden && !frame->framework;
    });
    if (own == frames.end()) return {};
    const std::string& file = (*own)->file;
    return file.substr(file.rfind('/') + 1) + ":" + std::to_string((*own)->line);
}

std::int32_t SourceLines::add(std::uint64_t place, std::string line) {
    const auto same = std::find(texts_.begin(), texts_.end(), line);
    const auto number = static_cast<std::int32_t>(same - texts_.begin());
    if (same == texts_.end()) texts_.push_back(std::move(line));
    lines_.emplace(place, number);
    return number;
}

}  // namespace hw::executor::live
