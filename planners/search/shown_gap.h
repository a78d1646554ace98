// SPDX-License-Identifier: MIT
// What a search shows of its best plan and of its bound.
#pragma once

#include <cstdio>
#include <string>

#include "core/base/units.h"

namespace hw::planners {

/// As good as any plan can be, to the digits shown: 0.00 % of the baseline's time.
inline bool noGapShown(core::Nanoseconds best, core::Nanoseconds bound,
                       core::Nanoseconds baseline) {
    return ratio(best - bound, baseline) <= 4e-5;
}

/// "best +4.19 %, proven bound +3.35 %": over the time of the baseline.
inline std::string progressLine(core::Nanoseconds best, core::Nanoseconds bound,
                                core::Nanoseconds baseline) {
    const auto percent = [&](core::Nanoseconds time) { return 100 * (ratio(time, baseline) - 1); };
    char line[96];
    std::snprintf(line, sizeof line, "best +%.2f %%, proven bound +%.2f %%", percent(best),
                  percent(bound));
    return line;
}

}  // namespace hw::planners
