// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/plots/timeline_legend.h"

#include "viewer/plots/theme.h"

namespace hw::viewer {

std::vector<Legend::Item> timelineLegend(const TimelinePlot& plot, const PlanPointer& plan,
                                         const Document* document) {
    std::vector<Legend::Item> items;
    for (const Band band : document ? plot.bands() : std::vector<Band>())
        items.push_back({theme().band(document->bands, band), document->bands.name(band)});
    if (isPlanned(plan) && document)
        items.push_back(
            {theme().planLine(),
             TimelinePlot::tr("plan: %1 at %2")
                 .arg(plan->planner, percentText(ratio(plan->budget, document->peak()))),
             true});
    if (plot.other())
        items.push_back(
            {theme().otherLine(),
             TimelinePlot::tr("%1: peak %2")
                 .arg(plot.other()->name, plot.other()->size.text(plot.other()->peak())),
             true});
    if (plot.showsLive()) items.push_back({theme().liveLine(), TimelinePlot::tr("live"), true});
    return items;
}

}  // namespace hw::viewer
