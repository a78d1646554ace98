// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/panels/batch_panel.h"
#include "viewer/panels/compare_panel.h"
#include "viewer/panels/flame_panel.h"
#include "viewer/panels/inspector_panel.h"
#include "viewer/panels/layers_panel.h"
#include "viewer/panels/map_panel.h"
#include "viewer/panels/peak_panel.h"
#include "viewer/panels/plan_panel.h"
#include "viewer/panels/ranks_panel.h"
#include "viewer/panels/sizes_panel.h"
#include "viewer/panels/steps_panel.h"
#include "viewer/panels/timeline_panel.h"
#include "viewer/panels/trace_panel.h"
#include "viewer/panels/whatif_panel.h"

namespace hw::viewer {

const std::vector<const PanelKind*>& panelKinds() {
    static const std::vector<const PanelKind*> kinds{
        &TimelinePanel::kKind, &PeakPanel::kKind,      &FlamePanel::kKind,   &LayersPanel::kKind,
        &MapPanel::kKind,      &WhatIfPanel::kKind,    &ComparePanel::kKind, &PlanPanel::kKind,
        &SizesPanel::kKind,    &BatchPanel::kKind,     &RanksPanel::kKind,   &StepsPanel::kKind,
        &TracePanel::kKind,    &InspectorPanel::kKind,
    };
    return kinds;
}

}  // namespace hw::viewer
