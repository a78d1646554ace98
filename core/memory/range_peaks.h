// SPDX-License-Identifier: MIT
// The highest bytes over ranges of a schedule, while bytes are added to and taken from ranges.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "core/base/units.h"

namespace hw::core {

/// A segment tree: asking and adding take logarithmic time.
class RangePeaks {
public:
    explicit RangePeaks(const std::vector<Bytes>& bytes) {
        while (leaves_ < bytes.size()) leaves_ *= 2;
        peaks_.assign(2 * leaves_, Bytes(0));
        added_.assign(2 * leaves_, Bytes(0));
        std::copy(bytes.begin(), bytes.end(),
                  peaks_.begin() + static_cast<std::ptrdiff_t>(leaves_));
        for (std::size_t node = leaves_ - 1; node > 0; --node) pull(node);
    }
    /// Of all places.
    Bytes peak() const { return peaks_[1]; }
    /// The first place that reaches it.
    std::size_t peakPlace() const {
        std::size_t node = 1;
        while (node < leaves_) node = 2 * node + (peaks_[2 * node] < peaks_[2 * node + 1] ? 1 : 0);
        return node - leaves_;
    }
    /// Of places begin to end - 1.
    Bytes peak(std::size_t begin, std::size_t end) const { return peak(1, 0, leaves_, begin, end); }
    void add(std::size_t begin, std::size_t end, Bytes bytes) {
        add(1, 0, leaves_, begin, end, bytes);
    }

private:
    void pull(std::size_t node) {
        peaks_[node] = std::max(peaks_[2 * node], peaks_[2 * node + 1]) + added_[node];
    }
    Bytes peak(std::size_t node, std::size_t from, std::size_t to, std::size_t begin,
               std::size_t end) const {
        if (end <= from || to <= begin) return Bytes(0);
        if (begin <= from && to <= end) return peaks_[node];
        const std::size_t half = (from + to) / 2;
        return added_[node] + std::max(peak(2 * node, from, half, begin, end),
                                       peak(2 * node + 1, half, to, begin, end));
    }
    void add(std::size_t node, std::size_t from, std::size_t to, std::size_t begin, std::size_t end,
             Bytes bytes) {
        if (end <= from || to <= begin) return;
        if (begin <= from && to <= end) {
            peaks_[node] += bytes;
            added_[node] += bytes;
            return;
        }
        const std::size_t half = (from + to) / 2;
        add(2 * node, from, half, begin, end, bytes);
        add(2 * node + 1, half, to, begin, end, bytes);
        pull(node);
    }

    std::size_t leaves_ = 1;
    std::vector<Bytes> peaks_, added_;  // by node; the second: to all below it
};

}  // namespace hw::core
