// SPDX-License-Identifier: GPL-3.0-or-later
// Colours and fonts of the window, dark and light.
#pragma once

#include <QColor>
#include <QFont>
#include <QString>

#include "core/graph/training_graph.h"
#include "viewer/models/bands.h"
#include "viewer/models/lanes.h"
#include "viewer/models/plan_trace.h"

namespace hw::viewer {

struct Theme {
    bool light = false;
    QColor window, panel, raised, line, grid, text, muted, accent, alert;

    QColor planLine() const;   // the plan's curve over the recorded one
    QColor otherLine() const;  // another session's step
    QColor liveLine() const;   // what a training under the plan holds
    QColor category(core::Category category) const;
    QColor band(const Bands& bands, Band band) const;
    QColor phase(core::Phase phase) const;
    QColor family(OpFamily family) const;
    QColor lifetime(core::ActionKind by) const;  // of what that action leaves in memory
    /// For the whole application, from the tokens above.
    QString styleSheet() const;
};

const Theme& theme();
void setTheme(bool light);
/// A theme for as long as this lives; the window's own comes back with its end.
class ThemeFor {
public:
    explicit ThemeFor(bool light) : before_(theme().light) { setTheme(light); }
    ~ThemeFor() { setTheme(before_); }
    ThemeFor(const ThemeFor&) = delete;
    ThemeFor& operator=(const ThemeFor&) = delete;

private:
    bool before_;
};

/// From `a` (share 0) to `b` (share 1).
QColor blend(const QColor& a, const QColor& b, double share);

QFont uiFont(int pixels, bool bold = false);
inline constexpr int kBasePixels = 13;
inline constexpr int kAxisPixels = 11;
inline constexpr int kFigurePixels = 19;

}  // namespace hw::viewer
