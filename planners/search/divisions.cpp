// SPDX-License-Identifier: MIT
#include "planners/search/divisions.h"

#include <algorithm>
#include <cmath>

namespace hw::planners {

using namespace hw::core;

std::vector<bool> crossingStorages(const TrainingGraph& graph, const chen::ForwardPass& forward,
                                   const Division& division, double share) {
    const auto all = static_cast<double>(forward.savedBytes(0, forward.end));
    const double growth = 1 + division.growth * share;
    std::vector<std::int64_t> places;
    double size = all * division.last;
    for (double at = all - size; at > size / 2; at -= size *= growth)
        places.push_back(std::llround(at));
    std::reverse(places.begin(), places.end());
    const std::vector<chen::Cut> cuts = chen::narrowCuts(forward, places);
    std::vector<bool> crossing(graph.storages.size(), false);
    for (std::size_t s = 0; s < crossing.size(); ++s) {
        if (forward.lastUse[s] == kNone) continue;
        const auto next =
            std::lower_bound(cuts.begin(), cuts.end(), chen::Cut{graph.storages[s].creator, 0});
        crossing[s] = next != cuts.end() && next->after < forward.lastUse[s];
    }
    return crossing;
}

}  // namespace hw::planners
