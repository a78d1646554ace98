// SPDX-License-Identifier: MIT
#include "core/memory/packing_problem.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <numeric>

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
    load.assign(static_cast<std::size_t>(sections), 0);
    reserved.assign(static_cast<std::size_t>(sections), 0);
    // The block on top of a section need not be padded: at best the most padded one lies there.
    std::vector<std::int64_t> padding(load.size(), 0);
    for (PackingItem& item : items) {
        const std::int64_t pad = item.size - item.bytes;
        item.size /= unit;
        for (std::int32_t t = item.first; t < item.last; ++t) {
            load[t] += item.size;
            padding[t] = std::max(padding[t], pad);
        }
    }
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
    made.load.assign(ends.size(), 0);
    for (const std::int32_t i : major) {
        PackingItem item = items[i];
        for (std::int32_t t = item.first; t < item.last; ++t) minor[t] -= item.size;
        item.first = countUpTo(ends, item.first);
        item.last = countUpTo(ends, items[i].last);
        for (std::int32_t t = item.first; t < item.last; ++t) made.load[t] += item.size;
        made.items.push_back(item);
    }
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
