// SPDX-License-Identifier: MIT
// Lines of the program that ops come from, for a mismatch within a budget, of which no session
// tells. Where Python has its frames elsewhere (before 3.11) there are none.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "stacks.h"

namespace hw::live::runtime {

class SourceLines {
public:
    static constexpr std::int32_t kNone = -1;

    explicit SourceLines(const profiler::native::AgentApi& agent) : unsent_(agent) {}

    /// `frameworkFolder`: of torch, with its final slash.
    void start(const profiler::native::FrameLayout& layout, std::string frameworkFolder) {
        stacks_.start(profiler::wire::Stacks::Line, layout, std::move(frameworkFolder));
    }
    /// Of the op that the calling thread is about to run, with `guard` held; a place that is new
    /// takes Python's lock, and the guard is given up for that.
    template <typename Guard>
    std::int32_t here(Guard& guard) {
        if (!stacks_.on()) return kNone;
        stacks_.read(sites_, kDeepest);
        if (sites_.empty()) return kNone;
        const std::uint64_t place = profiler::native::Stacks::hash(sites_);
        const auto known = lines_.find(place);
        if (known != lines_.end()) return known->second;
        if (lines_.size() == kMost) return kNone;
        guard.unlock();
        profiler::native::Stacks::Sites sites;
        std::string line = text(stacks_.describe(sites));
        guard.lock();
        return add(place, std::move(line));
    }
    /// `file.py:12`; empty: not known.
    std::string operator[](std::int32_t line) const {
        return line == kNone ? std::string() : texts_[static_cast<std::size_t>(line)];
    }

private:
    static constexpr std::size_t kDeepest = 16;    // frames, the framework's among them
    static constexpr std::size_t kMost = 1 << 16;  // places

    static std::string text(const std::vector<const profiler::native::SourceFrame*>& frames);
    std::int32_t add(std::uint64_t place, std::string line);

    profiler::native::Stream unsent_;
    profiler::native::Stacks stacks_{unsent_};
    profiler::native::Stacks::Sites sites_;
    std::unordered_map<std::uint64_t, std::int32_t> lines_;
    std::vector<std::string> texts_;
};

}  // namespace hw::live::runtime
