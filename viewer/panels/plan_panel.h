// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QLabel>

#include "viewer/models/plan_model.h"
#include "viewer/panels/panel.h"
#include "viewer/panels/table_view.h"

namespace hw::viewer {

/// What the chosen plan recomputes, encodes and frees, layer by layer, and why.
class PlanPanel : public Panel {
    Q_OBJECT
public:
    static const PanelKind kKind;
    explicit PlanPanel(Workspace& workspace);

    PlanModel& model() const { return *model_; }
    TableView& table() const { return *table_; }
    QString summary() const { return summary_->text(); }
    void applyTheme() override { table_->viewport()->update(); }
    core::Status compute() override;
    core::Status prepareShot(const std::vector<std::string>& planFiles) override;
    int naturalHeight() const override;

protected:
    void showEvent(QShowEvent* event) override;

private:
    void reload();
    void showPlan();
    void updateSelection();

    PlanModel* model_;
    TableView* table_;
    QLabel *summary_, *empty_;
    bool stale_ = true;  // while it is not shown, plans come and go unseen
};

}  // namespace hw::viewer
