// SPDX-License-Identifier: MIT
#include "core/memory/packing_problem.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <numeric>
#include <queue>

namespace hw::core {
namespace {

constexpr std::int64_t kWorkBetweenChecks = 200'000;  // well under a millisecond

double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

// Instants right before which a block ends and between which and the last such instant one began:
// there, and nowhere else, the set of live blocks is contained in no other.
std::vector<std::int64_t> sectionEnds(const std::vector<Block>& blocks) {
    std::vector<std::pair<std::int64_t, bool>> changes;  // at one instant ends come first
    for (const Block& block : blocks) {
        if (!block.takesSpace()) continue;
        changes.emplace_back(block.begin, true);
        changes.emplace_back(block.end, false);
    }
    std::sort(changes.begin(), changes.end());
    std::vector<std::int64_t> ends;
    bool grown = false;
    for (const auto& [time, begins] : changes) {
        if (!begins && grown) ends.push_back(time);
        grown = begins;
    }
    return ends;
}

std::int32_t countUpTo(const std::vector<std::int64_t>& sorted, std::int64_t value) {
    return static_cast<std::int32_t>(std::upper_bound(sorted.begin(), sorted.end(), value) -
                                     sorted.begin());
}

// Units that live in each section.
std::vector<std::int64_t> loadOf(const std::vector<PackingItem>& items, std::int32_t sections) {
    std::vector<std::int64_t> load(static_cast<std::size_t>(sections) + 1, 0);
    for (const PackingItem& item : items)
        load[item.first] += item.size, load[item.last] -= item.size;
    std::partial_sum(load.begin(), load.end(), load.begin());
    load.pop_back();
    return load;
}

// Of each section, the most that a block of it is padded by (bytes; sizes are in bytes, too): the
// block on top of a section need not be padded, and at best the most padded one lies there.
std::vector<std::int64_t> highestPadding(const std::vector<PackingItem>& items,
                                         std::int32_t sections) {
    std::vector<std::int32_t> begins(items.size());
    std::iota(begins.begin(), begins.end(), 0);
    std::sort(begins.begin(), begins.end(),
              [&](std::int32_t a, std::int32_t b) { return items[a].first < items[b].first; });
    std::vector<std::int64_t> highest(static_cast<std::size_t>(sections), 0);
    std::priority_queue<std::pair<std::int64_t, std::int32_t>> alive;  // padding, last section
    auto next = begins.begin();
    for (std::int32_t t = 0; t < sections; ++t) {
        for (; next != begins.end() && items[*next].first <= t; ++next)
            alive.emplace(items[*next].size - items[*next].bytes, items[*next].last);
        while (!alive.empty() && alive.top().second <= t) alive.pop();
        if (!alive.empty()) highest[t] = alive.top().first;
    }
    return highest;
}

}  // namespace

PackingProblem::PackingProblem(const std::vector<Block>& blocks, std::int64_t alignment) {
    const std::vector<std::int64_t> ends = sectionEnds(blocks);
    sections = static_cast<std::int32_t>(ends.size());
    std::int64_t divisor = 0;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        const Block& block = blocks[i];
        if (!block.takesSpace()) continue;
        PackingItem item;
        item.bytes = block.size.count();
        item.size = (item.bytes + alignment - 1) / alignment * alignment;
        item.first = countUpTo(ends, block.begin);
        item.last = countUpTo(ends, block.end);
        item.block = i;
        divisor = std::gcd(divisor, item.size);
        items.push_back(item);
    }
    unit = std::max<std::int64_t>(divisor, 1);
    reserved.assign(static_cast<std::size_t>(sections), 0);
    const std::vector<std::int64_t> padding = highestPadding(items, sections);
    for (PackingItem& item : items) item.size /= unit;
    load = loadOf(items, sections);
    for (std::size_t t = 0; t < load.size(); ++t)
        lowerBound = std::max(lowerBound, load[t] * unit - padding[t]);
}

PackingProblem PackingProblem::coarse(const std::vector<std::int32_t>& major) const {
    std::vector<Block> lives;  // on the axis of the sections
    lives.reserve(major.size());
    for (const std::int32_t i : major)
        lives.push_back({items[i].first, items[i].last, Bytes(items[i].size)});
    const std::vector<std::int64_t> ends = sectionEnds(lives);
    PackingProblem made;
    made.unit = unit;
    made.lowerBound = lowerBound;
    made.sections = static_cast<std::int32_t>(ends.size());
    std::vector<std::int64_t> minor = load;  // in sections of the whole problem
    for (const std::int32_t i : major) {
        PackingItem item = items[i];
        for (std::int32_t t = item.first; t < item.last; ++t) minor[t] -= item.size;
        item.first = countUpTo(ends, item.first);
        item.last = countUpTo(ends, items[i].last);
        made.items.push_back(item);
    }
    made.load = loadOf(made.items, made.sections);
    // A coarse section reserves what the fullest of the sections up to it, since the last, needs.
    made.reserved.assign(ends.size(), 0);
    for (std::int32_t t = 0; t < sections; ++t) {
        const auto at = static_cast<std::size_t>(countUpTo(ends, t));
        if (at >= ends.size()) break;
        const std::int64_t spare = made.load[at] - (load[t] - minor[t]);
        made.reserved[at] = std::max(made.reserved[at], minor[t] - spare);
    }
    return made;
}

std::int64_t PackingProblem::arenaOf(const std::vector<std::int64_t>& offsets) const {
    std::int64_t arena = 0;
    for (std::size_t i = 0; i < items.size(); ++i)
        arena = std::max(arena, offsets[i] * unit + items[i].bytes);
    return arena;
}

WorkMeter::WorkMeter(const PackOptions& options)
    : left_(options.workLimit),
      deadline_(options.timeLimitSeconds ? now() + *options.timeLimitSeconds
                                         : std::numeric_limits<double>::infinity()),
      cancelled_(options.cancelled) {}

WorkMeter WorkMeter::slice(std::int64_t work) {
    WorkMeter part;
    part.parent_ = this;
    part.left_ = work;
    return part;
}

bool WorkMeter::spend(std::int64_t amount) {
    left_ -= amount;
    if (left_ < 0) exhausted_ = true;
    if (parent_ != nullptr) {
        if (!parent_->spend(amount)) exhausted_ = true;
        return !exhausted_;
    }
    untilCheck_ -= amount;
    if (untilCheck_ < 0) {
        untilCheck_ = kWorkBetweenChecks;
        if ((cancelled_ && cancelled_()) || now() > deadline_) exhausted_ = true;
    }
    return !exhausted_;
}

}  // namespace hw::core
