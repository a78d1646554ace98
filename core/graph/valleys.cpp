// SPDX-License-Identifier: MIT
#include "core/graph/valleys.h"

#include <algorithm>

namespace hw::core {

namespace {

Bytes middle(Bytes low, Bytes high) {
    return low + Bytes((high - low).count() / 2);
}

}  // namespace

std::vector<std::size_t> splitAtValleys(const std::vector<Bytes>& heights,
                                        const std::vector<Bytes>& lows, Bytes level) {
    std::vector<std::size_t> begins;
    if (heights.empty()) return begins;
    const Bytes floor = *std::min_element(lows.begin(), lows.end());
    Bytes peak = heights[0];
    std::size_t valley = 0;  // lowest place since the peak
    for (std::size_t at = 1; at < heights.size(); ++at) {
        const Bytes lower = std::min(peak, heights[at]);
        if (lower > level && lows[valley] <= middle(floor, lower)) {
            begins.push_back(valley + 1);
            peak = heights[at], valley = at;
        } else if (heights[at] > peak) {
            peak = heights[at], valley = at;
        } else if (lows[at] < lows[valley]) {
            valley = at;
        }
    }
    return begins;
}

Bytes halfHeight(const std::vector<Bytes>& heights, const std::vector<Bytes>& lows) {
    if (heights.empty()) return Bytes(0);
    return middle(*std::min_element(lows.begin(), lows.end()),
                  *std::max_element(heights.begin(), heights.end()));
}

}  // namespace hw::core
