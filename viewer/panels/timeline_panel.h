// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "viewer/panels/panel.h"
#include "viewer/plots/legend.h"
#include "viewer/plots/timeline_plot.h"

namespace hw::viewer {

class TimelinePanel : public Panel {
    Q_OBJECT
public:
    static const PanelKind kKind;
    explicit TimelinePanel(Workspace& workspace);

    TimelinePlot& plot() const { return *plot_; }
    const Legend& legend() const { return *legend_; }
    void applyTheme() override;
    core::Status prepareShot(const std::vector<std::string>& planFiles) override;

protected:
    void keyPressEvent(QKeyEvent* event) override;

private:
    void reload();
    void updatePlan();
    void updateLive();
    void updateLegend();

    TimelinePlot* plot_;
    Legend* legend_;
    bool budgetShown_ = true;  // a picture without a plan shows what was recorded, nothing else
};

}  // namespace hw::viewer
