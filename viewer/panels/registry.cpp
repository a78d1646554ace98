// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/panels/compare_panel.h"
#include "viewer/panels/panel.h"
#include "viewer/panels/steps_panel.h"
#include "viewer/panels/timeline_panel.h"
#include "viewer/panels/trace_panel.h"
#include "viewer/panels/whatif_panel.h"

namespace hw::viewer {

const std::vector<PanelKind>& panelKinds() {
    static const std::vector<PanelKind> kinds{
        {"timeline", [](Workspace& workspace) { return new TimelinePanel(workspace); }},
        {"whatif", [](Workspace& workspace) { return new WhatIfPanel(workspace); }},
        {"compare", [](Workspace& workspace) { return new ComparePanel(workspace); }, true},
        {"steps", [](Workspace& workspace) { return new StepsPanel(workspace); }},
        {"trace", [](Workspace& workspace) { return new TracePanel(workspace); }},
    };
    return kinds;
}

}  // namespace hw::viewer
