// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QSplitter>
#include <QTemporaryDir>
#include <QToolButton>

#include "viewer/models/batch_model.h"
#include "viewer/models/task_queue.h"
#include "viewer/panels/budget_field.h"
#include "viewer/panels/panel.h"
#include "viewer/panels/planner_menu.h"
#include "viewer/panels/table_view.h"
#include "viewer/plots/batch_plot.h"

namespace hw::viewer {

/// The largest batch of each planner within a budget, from records of the program at other batches.
class BatchPanel : public Panel {
    Q_OBJECT
public:
    static const PanelKind kKind;
    explicit BatchPanel(Workspace& workspace);

    void applyTheme() override;
    int naturalHeight() const override;
    core::Status prepareShot(const std::vector<std::string>& planFiles) override;

    TableView& table() const { return *table_; }
    BatchPlot& budgets() const { return plots_->budgets(); }
    BatchPlot& sizes() const { return plots_->sizes(); }
    BudgetField& budgetField() const { return *field_; }
    const QLabel& empty() const { return *empty_; }

protected:
    void showEvent(QShowEvent* event) override;

private:
    void makeParts();
    void connectParts();
    void documentChanged();
    bool ours(const std::string& path) const;  // one of the sessions that are made here
    void reload();
    void showWhy(const QString& why);
    void showFailure(const core::Error& error);
    void take(const BatchFamilyPointer& family);
    void setBudget(core::Bytes budget);
    void study();
    void submit(core::Bytes budget, double seconds);
    void takeStudy(const BatchStudy& study);
    void draw();
    void addRecords();
    void openAt(const QString& planner, std::int64_t size);

    QLabel *note_, *empty_;
    BudgetField* field_;
    QToolButton* add_;
    PlannerMenu* planners_;
    QSplitter* split_;
    BatchPlots* plots_;
    BatchModel* model_;
    TableView* table_;
    QTemporaryDir made_;  // sessions at sizes that were looked at
    std::string path_;    // of the record that was opened first
    BatchResults results_;
    bool stale_ = true;
    TaskQueue queue_{TaskQueue::Priority::Background};  // last: it stops before the rest goes away
};

}  // namespace hw::viewer
