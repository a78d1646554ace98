// SPDX-License-Identifier: MIT
#include "core/memory/pack_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace hw::core {
namespace {

constexpr std::int64_t kNodesPerRestart = 300;
constexpr std::int64_t kFixedRules = 5;
constexpr std::int64_t kRules = 7;       // ways to set priorities
constexpr double kNoise = 0.3;           // relative, of a priority after the first round
constexpr double kForget = 0.95;         // of the conflicts, at each restart
constexpr double kSectionBlame = 0.125;  // conflict of each block in an overfull section

// The sequence of Luby, Sinclair and Zuckerman: 1 1 2 1 1 2 4 …, `index` from 1.
std::int64_t luby(std::int64_t index) {
    std::int64_t power = 1;
    while (2 * power - 1 < index) power *= 2;
    return 2 * power - 1 == index ? power : luby(index - power + 1);
}

// Every rule once; then mostly those that go by conflicts, which find what fixed orders miss.
std::int64_t ruleOf(std::int64_t restart) {
    if (restart < kRules) return restart;
    if (restart % 4 == 3) return restart / 4 % kFixedRules;
    return kFixedRules + restart % 2;
}

}  // namespace

CanonicalSearch::CanonicalSearch(const PackingProblem& problem)
    : problem_(problem),
      items_(problem.items),
      sectionCapacity_(static_cast<std::size_t>(problem.sections)),
      latest_(items_.size()),
      offsets_(items_.size()),
      completion_(static_cast<std::size_t>(problem.sections)),
      reach_(static_cast<std::size_t>(problem.sections)),
      crowd_(items_.size(), 0),
      rank_(items_.size()),
      conflicts_(items_.size(), 0),
      frames_(items_.size() + 1) {
    for (std::size_t i = 0; i < items_.size(); ++i)
        crowd_[i] = *std::max_element(problem.load.begin() + items_[i].first,
                                      problem.load.begin() + items_[i].last);
}

SearchResult CanonicalSearch::run(std::int64_t capacity, WorkMeter& meter,
                                  std::vector<std::int64_t>& offsets) {
    std::int64_t highest = 0;
    for (std::size_t i = 0; i < items_.size(); ++i) {
        if (items_[i].bytes > capacity) return SearchResult::Impossible;
        latest_[i] = (capacity - items_[i].bytes) / problem_.unit;
        highest = std::max(highest, latest_[i] + items_[i].size);
    }
    for (std::size_t t = 0; t < sectionCapacity_.size(); ++t)
        sectionCapacity_[t] = highest - problem_.reserved[t];
    for (std::size_t i = 0; i < items_.size(); ++i)
        latest_[i] =
            std::min(latest_[i], *std::min_element(sectionCapacity_.begin() + items_[i].first,
                                                   sectionCapacity_.begin() + items_[i].last) -
                                     items_[i].size);
    meter_ = &meter;
    if (capacity != capacity_) {
        capacity_ = capacity;
        restarts_ = 0;
        random_.seed(1);
        std::fill(conflicts_.begin(), conflicts_.end(), 0.0);
    }
    // Enough for a few descents to the bottom.
    const auto n = static_cast<std::int64_t>(items_.size());
    const std::int64_t base = std::max(kNodesPerRestart, 3 * n / 2) * n / 2 + 1;
    while (!meter.exhausted()) {
        const std::int64_t number = restarts_++;
        const SearchResult result = restart(number, base * luby(number / kRules + 1));
        if (result == SearchResult::Found) offsets = offsets_;
        if (result != SearchResult::OutOfWork) return result;
    }
    return SearchResult::OutOfWork;
}

SearchResult CanonicalSearch::restart(std::int64_t number, std::int64_t work) {
    restartWork_ = work;
    setPriorities(number);
    std::vector<std::int32_t> order(items_.size());
    for (std::size_t i = 0; i < items_.size(); ++i) order[rank_[i]] = static_cast<std::int32_t>(i);
    Frame& root = frames_[0];
    root.clear();
    for (const std::int32_t i : order) {
        Entry entry{0, i, 0};
        // Of blocks alike, the one tried first lies lowest.
        for (const Entry& other : root) {
            const PackingItem &a = items_[i], &b = items_[other.item];
            if (a.first == b.first && a.last == b.last && a.size == b.size)
                entry.lowest = std::max(entry.lowest, other.lowest + b.size);
        }
        root.push_back(entry);
    }
    return solve(0);
}

void CanonicalSearch::setPriorities(std::int64_t number) {
    const std::int64_t rule = ruleOf(number);
    const double noise = number < kRules ? 0.0 : kNoise;
    const double most = std::max(1e-9, *std::max_element(conflicts_.begin(), conflicts_.end()));
    const double capacity = static_cast<double>(
        std::max<std::int64_t>(*std::max_element(problem_.load.begin(), problem_.load.end()), 1));
    std::vector<double> priority(items_.size());
    for (std::size_t i = 0; i < items_.size(); ++i) {
        const double size = static_cast<double>(items_[i].size) / capacity;
        const double life = items_[i].last - items_[i].first;
        const double crowd = static_cast<double>(crowd_[i]) / capacity;
        const double conflict = conflicts_[i] / most;
        const double values[kRules] = {crowd + size * life / problem_.sections,
                                       std::pow(crowd, 8) * life,
                                       life,
                                       size * life,
                                       size + 1e-9 * items_[i].last / problem_.sections,
                                       conflict,
                                       (conflict + 0.05) * size * life};
        const double shake = static_cast<double>(random_() >> 11) * 0x1p-52 - 1;  // in [-1, 1)
        priority[i] = values[rule] * (1 + noise * shake);
    }
    std::vector<std::int32_t> order(items_.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::int32_t a, std::int32_t b) { return priority[a] > priority[b]; });
    for (std::size_t r = 0; r < order.size(); ++r) rank_[order[r]] = static_cast<std::int32_t>(r);
    for (double& conflict : conflicts_) conflict *= kForget;
}

SearchResult CanonicalSearch::solve(std::size_t depth) {
    Frame& frame = frames_[depth];
    if (frame.empty()) return SearchResult::Found;
    while (true) {
        const auto work = static_cast<std::int64_t>(frame.size());
        restartWork_ -= work;
        if (restartWork_ < 0 || !meter_->spend(work)) return SearchResult::OutOfWork;
        sortByLowest(frame);
        if (refuted(frame)) return SearchResult::Impossible;
        const SearchResult below = placeFirst(depth);
        if (below != SearchResult::Impossible) return below;
        if (!raiseFirst(frame)) return SearchResult::Impossible;
    }
}

// Nearly sorted already: one block was raised, or those above the last placed one.
void CanonicalSearch::sortByLowest(Frame& frame) const {
    const auto before = [&](const Entry& a, const Entry& b) {
        return a.lowest != b.lowest ? a.lowest < b.lowest : rank_[a.item] < rank_[b.item];
    };
    for (std::size_t i = 1; i < frame.size(); ++i) {
        const Entry entry = frame[i];
        std::size_t to = i;
        for (; to > 0 && before(entry, frame[to - 1]); --to) frame[to] = frame[to - 1];
        frame[to] = entry;
    }
}

// Earliest completion of every section; a contradiction is blamed on the blocks in it.
bool CanonicalSearch::refuted(const Frame& frame) {
    std::int32_t from = problem_.sections, to = 0;
    for (const Entry& entry : frame) {
        const PackingItem& item = items_[entry.item];
        if (entry.lowest > latest_[entry.item]) {
            conflicts_[entry.item] += 1;
            return true;
        }
        from = std::min(from, item.first);
        to = std::max(to, item.last);
    }
    std::fill(completion_.begin() + from, completion_.begin() + to, 0);
    for (const Entry& entry : frame) {
        const PackingItem& item = items_[entry.item];
        for (std::int32_t t = item.first; t < item.last; ++t)
            completion_[t] = std::max(completion_[t], entry.lowest) + item.size;
    }
    std::int32_t section = from;
    while (section < to && completion_[section] <= sectionCapacity_[section]) ++section;
    if (section == to) return false;
    for (const Entry& entry : frame)
        if (items_[entry.item].first <= section && section < items_[entry.item].last)
            conflicts_[entry.item] += kSectionBlame;
    return true;
}

SearchResult CanonicalSearch::placeFirst(std::size_t depth) {
    Frame& frame = frames_[depth];
    const Entry placed = frame.front();
    const PackingItem& item = items_[placed.item];
    offsets_[placed.item] = placed.lowest;
    const std::int64_t top = placed.lowest + item.size;
    const std::int32_t parts = splitIntoParts(frame);
    for (std::int32_t part = 0; part < parts; ++part) {
        Frame& next = frames_[depth + 1];
        next.clear();
        for (std::size_t i = 1; i < frame.size(); ++i) {
            if (frame[i].part != part) continue;
            next.push_back(frame[i]);
            if (items_[frame[i].item].livesWith(item))
                next.back().lowest = std::max(next.back().lowest, top);
        }
        const SearchResult result = solve(depth + 1);
        if (result != SearchResult::Found) return result;
    }
    return SearchResult::Found;
}

// Numbers the parts, sets of blocks without a common section, of all entries but the first.
std::int32_t CanonicalSearch::splitIntoParts(Frame& frame) {
    std::int32_t from = problem_.sections, to = 0;
    for (std::size_t i = 1; i < frame.size(); ++i) {
        from = std::min(from, items_[frame[i].item].first);
        to = std::max(to, items_[frame[i].item].last);
    }
    if (from >= to) return 0;
    std::fill(reach_.begin() + from, reach_.begin() + to, 0);
    for (std::size_t i = 1; i < frame.size(); ++i) {
        const PackingItem& item = items_[frame[i].item];
        reach_[item.first] = std::max(reach_[item.first], item.last);
    }
    // From now on reach_[t] is the part of the blocks that begin with section t.
    std::int32_t part = -1, end = from;
    for (std::int32_t t = from; t < to; ++t) {
        if (reach_[t] > 0 && t >= end) ++part;
        end = std::max(end, reach_[t]);
        reach_[t] = part;
    }
    for (std::size_t i = 1; i < frame.size(); ++i)
        frame[i].part = reach_[items_[frame[i].item].first];
    return part + 1;
}

// The first block does not lie at its lowest offset: it rests on a block that comes later.
bool CanonicalSearch::raiseFirst(Frame& frame) const {
    std::int64_t raised = std::numeric_limits<std::int64_t>::max();
    for (std::size_t i = 1; i < frame.size(); ++i)
        if (items_[frame[i].item].livesWith(items_[frame.front().item]))
            raised = std::min(raised, frame[i].lowest + items_[frame[i].item].size);
    frame.front().lowest = raised;
    return raised != std::numeric_limits<std::int64_t>::max();
}

}  // namespace hw::core
