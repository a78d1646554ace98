// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/panels/compare_panel.h"
#include "viewer/panels/layers_panel.h"
#include "viewer/panels/map_panel.h"
#include "viewer/panels/panel.h"
#include "viewer/panels/peak_panel.h"
#include "viewer/panels/plan_panel.h"
#include "viewer/panels/sizes_panel.h"
#include "viewer/panels/steps_panel.h"
#include "viewer/panels/timeline_panel.h"
#include "viewer/panels/trace_panel.h"
#include "viewer/panels/whatif_panel.h"

namespace hw::viewer {

const std::vector<PanelKind>& panelKinds() {
    static const std::vector<PanelKind> kinds{
        {"timeline", [](Workspace& workspace) { return new TimelinePanel(workspace); }},
        {"peak", [](Workspace& workspace) { return new PeakPanel(workspace); }},
        {"layers", [](Workspace& workspace) { return new LayersPanel(workspace); }},
        {"map", [](Workspace& workspace) { return new MapPanel(workspace); }},
        {"whatif", [](Workspace& workspace) { return new WhatIfPanel(workspace); }},
        {"compare", [](Workspace& workspace) { return new ComparePanel(workspace); }, true},
        {"plan", [](Workspace& workspace) { return new PlanPanel(workspace); }},
        {"sizes", [](Workspace& workspace) { return new SizesPanel(workspace); }},
        {"steps", [](Workspace& workspace) { return new StepsPanel(workspace); }},
        {"trace", [](Workspace& workspace) { return new TracePanel(workspace); }},
    };
    return kinds;
}

}  // namespace hw::viewer
