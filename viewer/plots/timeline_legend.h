// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <vector>

#include "viewer/plots/legend.h"
#include "viewer/plots/timeline_plot.h"

namespace hw::viewer {

/// What the colours of the plot mean; with lines for the plan and for what is
/// live, if there are any.
std::vector<Legend::Item> timelineLegend(const TimelinePlot& plot, const PlanPointer& plan,
                                         const Document* document);

}  // namespace hw::viewer
