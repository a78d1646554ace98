// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QLabel>
#include <QWidget>

#include "viewer/models/live_run.h"
#include "viewer/panels/figure_strip.h"
#include "viewer/plots/legend.h"
#include "viewer/plots/live_steps_plot.h"

namespace hw::viewer {

/// A training within a budget: the peak of each step against it, and what is at work. When that is
/// over, what came of it. It belongs to no session and is there without one.
class LivePanel : public QWidget {
    Q_OBJECT
public:
    explicit LivePanel(LiveRun& run);

    /// The line above it, for the title bar of its dock.
    QWidget* header() const { return header_; }
    const LiveStepsPlot& plot() const { return *plot_; }
    const Legend& legend() const { return *legend_; }
    const FigureStrip& figures() const { return *figures_; }
    QString note() const { return note_->text(); }
    void applyTheme();

private:
    QWidget* makeHeader();
    void update();
    void showLegend();
    void showFigures();
    void showNote();

    LiveRun& run_;
    QWidget* header_;
    QLabel *headline_, *note_;
    Legend* legend_;
    FigureStrip* figures_;
    LiveStepsPlot* plot_;
};

}  // namespace hw::viewer
