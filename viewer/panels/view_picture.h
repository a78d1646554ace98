// SPDX-License-Identifier: GPL-3.0-or-later
// One view as a picture: for `shot`, and for what the window saves.
#pragma once

#include <string>
#include <vector>

#include "viewer/export/picture.h"
#include "viewer/panels/panel_kind.h"

namespace hw::viewer {

/// Where a picture goes. Sizes are pixels of a window in which it would look the same.
struct PicturePreset {
    const char* name;        // of `shot --preset`
    const char* title;       // for the eye, through viewText()
    int width, height;       // height 0: what the view needs
    double millimetres = 0;  // wide on paper; 0: a screen
    double text = 1;         // size of all text, over the usual one
    bool light = false;
    double scale = 1;  // pixels of a PNG per pixel of width and height
};
/// The window's own look first.
const std::vector<PicturePreset>& picturePresets();
/// Usage: there is none of this name.
core::Result<PicturePreset> picturePreset(const std::string& name);

struct ViewPicture {
    std::string file;
    PicturePreset size;
    TraceAxes axes;
    std::vector<std::string> plans;  // those that were named; the first one is drawn
    std::string select = {};         // words, for selectWords()
};

/// Selects what a search for these words finds first; empty: nothing. Usage: they find nothing.
core::Status selectWords(Workspace& workspace, const std::string& words);

/// Draws a view of what the workspace holds, without anything to press or to type into. `computes`:
/// plans that the view shows and that are not there yet are made, which takes seconds. Returns
/// width and height in pixels. Errors: as savePictureOf(), Usage when the view has no such axes.
core::Result<QSize> savePictureOfView(Workspace& workspace, const PanelKind& kind,
                                      const ViewPicture& picture, bool computes);

/// Renders a widget that no screen shows, at this size.
core::Status drawHidden(QWidget& widget, const QSize& size, const std::string& file, double scale,
                        double millimetres = 0);

}  // namespace hw::viewer
