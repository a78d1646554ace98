// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <vector>

#include "viewer/plots/legend.h"
#include "viewer/plots/timeline_plot.h"

namespace hw::viewer {

/// What the colours of the plot mean; with a line for the plan, if there is one.
std::vector<Legend::Item> timelineLegend(const TimelinePlot& plot, const PlanPointer& plan,
                                         const Document* document);

}  // namespace hw::viewer
