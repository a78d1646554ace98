// SPDX-License-Identifier: MIT
#include "source_lines.h"

#include <algorithm>

namespace hw::live::runtime {

std::string SourceLines::text(const std::vector<const profiler::native::SourceFrame*>& frames) {
    const profiler::native::SourceFrame* const own = profiler::native::Stacks::ownOf(frames);
    if (own == nullptr) return {};
    return own->file.substr(own->file.rfind('/') + 1) + ":" + std::to_string(own->line);
}

std::int32_t SourceLines::add(std::uint64_t place, std::string line) {
    const auto same = std::find(texts_.begin(), texts_.end(), line);
    const auto number = static_cast<std::int32_t>(same - texts_.begin());
    if (same == texts_.end()) texts_.push_back(std::move(line));
    lines_.emplace(place, number);
    return number;
}

}  // namespace hw::live::runtime
