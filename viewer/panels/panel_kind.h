// SPDX-License-Identifier: GPL-3.0-or-later
// What the window, `shot` and the help know of a view. Each view's own file defines its kind; the
// list of them is in registry.cpp.
#pragma once

#include <QString>
#include <cstdint>
#include <string>
#include <vector>

#include "viewer/models/trace_marks.h"

namespace hw::viewer {

class Panel;
class Workspace;

/// Where a view is at first: a column at the left, in two parts; beside it an upper view, a strip
/// below that, and two views at the bottom. Views of one area are its tabs, in the registry's
/// order, the first one on top.
enum class PanelArea : std::uint8_t { Side, Upper, Strip, LowerLeft, LowerRight, SideLower };

struct PanelKind {
    const char* name;   // of `shot --view` and in kept layouts
    const char* title;  // for the eye, like all texts here through viewText()
    const char* help;   // rich text: what it shows and how it is used
    PanelArea area;
    Panel* (*make)(Workspace& workspace);
    bool needsStep = false;           // has nothing to show of a trace that holds no step
    bool everyPlanner = false;        // a picture shows all planners, not only the usual ones
    TraceAxes axes = {};              // those whose unit can be chosen
    const char* tourTitle = nullptr;  // of its stop in the tour, where it has one
    const char* tourText = nullptr;
};

template <class AnyPanel>
Panel* makePanel(Workspace& workspace) {
    return new AnyPanel(workspace);
}

/// The views, in the order in which they are listed everywhere. Each area has one at least.
const std::vector<const PanelKind*>& panelKinds();

/// A text of a kind in the user's language.
QString viewText(const char* text);

}  // namespace hw::viewer
