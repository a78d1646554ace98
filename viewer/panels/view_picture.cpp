// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/panels/view_picture.h"

#include <QApplication>
#include <QVBoxLayout>
#include <algorithm>

#include "viewer/models/search_model.h"
#include "viewer/panels/panel.h"
#include "viewer/plots/font_scale.h"
#include "viewer/plots/theme.h"

namespace hw::viewer {
namespace {

// A size of text for as long as this lives.
class TextFor {
public:
    explicit TextFor(double scale) : before_(fontScale()) { setFontScale(scale); }
    ~TextFor() { setFontScale(before_); }
    TextFor(const TextFor&) = delete;
    TextFor& operator=(const TextFor&) = delete;

private:
    double before_;
};

}  // namespace

// 300 pixels an inch on paper. A column's 8.5 cm hold 380 pixels: text of 11 pixels is 7 points.
const std::vector<PicturePreset>& picturePresets() {
    static const std::vector<PicturePreset> presets{
        {.name = "screen", .title = "As on the screen", .width = 1680, .height = 0},
        {.name = "column",
         .title = "One column of a paper (8.5 cm)",
         .width = 380,
         .height = 340,
         .millimetres = 85,
         .light = true,
         .scale = 1004 / 380.0},
        {.name = "page",
         .title = "Two columns of a paper (17.8 cm)",
         .width = 760,
         .height = 400,
         .millimetres = 178,
         .light = true,
         .scale = 2102 / 760.0},
        {.name = "slide",
         .title = "A slide (16 : 9)",
         .width = 1280,
         .height = 720,
         .text = 1.4,
         .light = true,
         .scale = 1.5},
    };
    return presets;
}

core::Result<PicturePreset> picturePreset(const std::string& name) {
    std::string known;
    for (const PicturePreset& preset : picturePresets()) {
        if (name == preset.name) return preset;
        known += (known.empty() ? "" : ", ") + std::string(preset.name);
    }
    return core::Error{core::ErrorCode::Usage, "there is no preset \"" + name + "\"",
                       "the presets are " + known};
}

// A hidden widget gets its layout only when it is asked for it, docks only when they are shown;
// WA_DontShowOnScreen does both without a window appearing.
core::Status drawHidden(QWidget& widget, const QSize& size, const std::string& file, double scale,
                        double millimetres) {
    widget.setAttribute(Qt::WA_DontShowOnScreen);
    widget.resize(size);
    widget.show();
    QApplication::processEvents(QEventLoop::ExcludeUserInputEvents);
    widget.resize(size);                  // docks ask for more than they need until they are shown
    for (int pass = 0; pass < 3; ++pass)  // a legend of several rows is heard of one by one
        QApplication::processEvents(QEventLoop::ExcludeUserInputEvents);
    return savePictureOf(widget, file, scale, millimetres);
}

core::Status selectWords(Workspace& workspace, const std::string& words) {
    if (words.empty()) return {};
    const core::Result<Target> found = firstFound(workspace.document(), words);
    if (!found) return found.error();
    workspace.selection().select(*found);
    return {};
}

core::Result<QSize> savePictureOfView(Workspace& workspace, const PanelKind& kind,
                                      const ViewPicture& picture, bool computes) {
    const PicturePreset& preset = picture.size;
    const ThemeFor colours(preset.light);
    const TextFor text(preset.text);
    QWidget frame;
    frame.setStyleSheet(theme().styleSheet());
    auto* column = new QVBoxLayout(&frame);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    Panel* panel = kind.make(workspace);
    column->addWidget(panel->header());
    column->addWidget(panel, 1);
    if (core::Status axes = panel->chooseAxes(picture.axes); !axes) return axes.error();
    if (computes)
        if (core::Status done = panel->compute(); !done) return done.error();
    if (core::Status selected = selectWords(workspace, picture.select); !selected)
        return selected.error();
    if (core::Status ready = panel->prepareShot(picture.plans); !ready) return ready.error();
    panel->applyTheme();
    panel->hideControls();
    // Tables are as high as their rows, whatever the preset; of its width they have to hear first.
    frame.resize(preset.width, frame.height());
    column->activate();
    const int natural = panel->header()->sizeHint().height() + panel->naturalHeight();
    const bool elastic = panel->naturalHeight() == Panel::kAnyHeight;
    const int height =
        preset.height == 0 || (!elastic && preset.millimetres > 0) ? natural : preset.height;
    if (core::Status saved = drawHidden(frame, {preset.width, height}, picture.file, preset.scale,
                                        preset.millimetres);
        !saved)
        return saved.error();
    return frame.size();
}

}  // namespace hw::viewer
