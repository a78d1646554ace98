// SPDX-License-Identifier: GPL-3.0-or-later
// The address maps of a report: of the recorded step, and of the plan's arena.
#pragma once

#include "viewer/export/report_content.h"
#include "viewer/plots/map_plot.h"

namespace hw::viewer {

/// Where tensors lay, as it was recorded, or, where no addresses are, would lie in a packed arena;
/// then the arena of the active plan, if there is one. Each with the plan that it is of.
struct ReportMap {
    PlanPointer plan;  // null: the recorded step
    std::shared_ptr<const AddressMap> map;
};
std::vector<ReportMap> reportMaps(const Workspace& workspace);

ReportTable mapTable(const Document& document, const std::vector<ReportMap>& maps);

/// Draws them one below the other, over the same time and with one legend.
class ReportMapFigure : public QWidget {
public:
    ReportMapFigure(const DocumentPointer& document, const std::vector<ReportMap>& maps);
};

}  // namespace hw::viewer
