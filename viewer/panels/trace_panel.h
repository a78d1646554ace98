// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QToolButton>

#include "viewer/panels/panel.h"
#include "viewer/plots/legend.h"
#include "viewer/plots/trace_plot.h"

namespace hw::viewer {

/// The memory trace of the plan that Compare or What if chose; of the recorded step without one.
class TracePanel : public Panel {
    Q_OBJECT
public:
    static const PanelKind kKind;
    explicit TracePanel(Workspace& workspace);

    TracePlot& plot() const { return *plot_; }
    const Legend& legend() const { return *legend_; }
    void applyTheme() override;
    int naturalHeight() const override { return empty_->isHidden() ? 900 : 240; }
    core::Status prepareShot(const std::vector<std::string>& planFiles) override;

protected:
    void setAxes(TraceAxes axes) override;
    void showEvent(QShowEvent* event) override;

private:
    QToolButton* toggle(const QString& text, const QString& tip);
    void updatePlan();
    void updateLegend();

    TracePlot* plot_;
    Legend* legend_;
    QLabel* empty_;  // instead of the plot, where there is no step
    QToolButton *steps_, *bytes_;
    bool stale_ = true;  // while it is not shown, plans come and go unseen
};

}  // namespace hw::viewer
