// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QLabel>
#include <QProgressBar>
#include <QTimer>

#include "viewer/panels/budget_field.h"
#include "viewer/panels/budget_slider.h"
#include "viewer/panels/eliding_label.h"
#include "viewer/panels/panel.h"
#include "viewer/panels/planner_menu.h"
#include "viewer/plots/frontier_plot.h"

namespace hw::viewer {

class WhatIfPanel : public Panel {
    Q_OBJECT
public:
    static const PanelKind kKind;
    explicit WhatIfPanel(Workspace& workspace);

    BudgetSlider& slider() const { return *slider_; }
    BudgetField& budget() const { return *figure_; }
    FrontierPlot& plot() const { return *plot_; }
    PlannerMenu& planners() const { return *planners_; }
    void applyTheme() override;
    int naturalHeight() const override { return empty_->isHidden() ? 900 : 240; }
    core::Status compute() override;
    void hideControls() override;

protected:
    void resizeEvent(QResizeEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    void build();
    void connectControls();
    void connectWorkspace();
    void reload();
    void updateBudget();
    void noteOn(core::Bytes budget);
    void alignSlider();

    BudgetField* figure_;
    ElidingLabel* note_;
    QLabel* empty_;  // instead of the plot, where nothing can be planned
    PlannerMenu* planners_;
    BudgetSlider* slider_;
    QWidget* sliderRow_;
    QProgressBar* progress_;
    FrontierPlot* plot_;
    QTimer settle_;  // plans are asked for when the slider rests
    QTimer redraw_;  // many results, one redraw
    int mostPending_ = 0;
};

}  // namespace hw::viewer
