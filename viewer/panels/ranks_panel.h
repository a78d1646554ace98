// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "viewer/models/rank_model.h"
#include "viewer/models/task_queue.h"
#include "viewer/panels/panel.h"
#include "viewer/panels/table_view.h"

namespace hw::viewer {

/// The ranks of the session side by side; the one that is open is marked.
class RanksPanel : public Panel {
    Q_OBJECT
public:
    static const PanelKind kKind;
    explicit RanksPanel(Workspace& workspace);

    TableView& table() const { return *table_; }
    const RankModel& model() const { return *model_; }
    void applyTheme() override { table_->viewport()->update(); }
    int naturalHeight() const override;
    bool applies() const override;  // to a session of several ranks
    core::Status prepareShot(const std::vector<std::string>& planFiles) override;

protected:
    void showEvent(QShowEvent* event) override;

private:
    void documentChanged();
    void reload();
    void take(const core::Result<std::vector<RankRow>>& rows);
    void open(const QModelIndex& index);

    QLabel *note_, *empty_;
    RankModel* model_;
    TableView* table_;
    std::string path_;
    std::int64_t steps_ = 0;
    bool stale_ = true;
    TaskQueue queue_{TaskQueue::Priority::Background};  // last: it stops before the rest goes away
};

}  // namespace hw::viewer
