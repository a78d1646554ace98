// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QSplitter>

#include "viewer/models/size_model.h"
#include "viewer/models/task_queue.h"
#include "viewer/panels/panel.h"
#include "viewer/panels/table_view.h"
#include "viewer/plots/legend.h"
#include "viewer/plots/sizes_plot.h"

namespace hw::viewer {

/// Steps of different input sizes, and the plan that Mimose makes for each at the budget.
class SizesPanel : public Panel {
    Q_OBJECT
public:
    static const PanelKind kKind;
    explicit SizesPanel(Workspace& workspace);

    void applyTheme() override;
    int naturalHeight() const override { return empty_->isHidden() ? 760 : 240; }
    core::Status prepareShot(const std::vector<std::string>& planFiles) override;

protected:
    void showEvent(QShowEvent* event) override;

private:
    void forget();
    void reload();
    void take(const SizeStudy& study);

    QLabel *note_, *empty_;
    Legend* legend_;
    QSplitter* split_;
    SizesPlot* plot_;
    SizeModel* model_;
    TableView* table_;
    SizeSamplesPointer samples_;
    std::string path_;  // of the samples
    bool stale_ = true;
    TaskQueue queue_{TaskQueue::Priority::Background};  // last: it stops before the rest goes away
};

}  // namespace hw::viewer
