// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "viewer/panels/panel.h"
#include "viewer/plots/steps_plot.h"

namespace hw::viewer {

/// Every recorded step side by side; grows while a recording is followed.
class StepsPanel : public Panel {
    Q_OBJECT
public:
    static const PanelKind kKind;
    explicit StepsPanel(Workspace& workspace);

    StepsPlot& plot() const { return *plot_; }
    void applyTheme() override { plot_->applyTheme(); }
    int naturalHeight() const override { return 220; }
    bool applies() const override;  // to several steps

private:
    void reload();

    QLabel* note_;
    StepsPlot* plot_;
};

}  // namespace hw::viewer
