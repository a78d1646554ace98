// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QComboBox>

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
    /// Of a trace of several devices: whose memory is shown. Hidden where there is one.
    QComboBox& devices() const { return *devices_; }
    void applyTheme() override;
    core::Status prepareShot(const std::vector<std::string>& planFiles) override;

protected:
    void keyPressEvent(QKeyEvent* event) override;

private:
    void reload();
    void listDevices();
    void updatePlan();
    void updateLive();
    void updateLegend();

    TimelinePlot* plot_;
    Legend* legend_;
    QComboBox* devices_;
    bool budgetShown_ = true;  // a picture without a plan shows what was recorded, nothing else
};

}  // namespace hw::viewer
