// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QLabel>

#include "viewer/models/compare_model.h"
#include "viewer/panels/figure_strip.h"
#include "viewer/panels/panel.h"
#include "viewer/panels/table_view.h"

namespace hw::viewer {

class ComparePanel : public Panel {
    Q_OBJECT
public:
    static const PanelKind kKind;
    explicit ComparePanel(Workspace& workspace);

    CompareModel& model() const { return *model_; }
    TableView& table() const { return *table_; }
    /// The four large figures: peak, step time, recomputed ops, distance from optimal.
    QString figure(int which) const { return figures_->figure(static_cast<std::size_t>(which)); }
    core::Status prepareShot(const std::vector<std::string>& planFiles) override;
    int naturalHeight() const override;  // figures and rows, nothing empty below
    void applyTheme() override;

private:
    void updateFigures();
    QStringList figures() const;

    CompareModel* model_;
    TableView* table_;
    FigureStrip* figures_;
    QLabel* empty_;  // instead of them, where nothing can be planned
};

}  // namespace hw::viewer
