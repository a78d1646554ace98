// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QSet>

#include "viewer/models/inspector_model.h"
#include "viewer/panels/panel.h"
#include "viewer/panels/table_view.h"

namespace hw::viewer {

/// All that is known of what is selected. A click on a value that is something itself, or Enter,
/// selects that.
class InspectorPanel : public Panel {
    Q_OBJECT
public:
    static const PanelKind kKind;
    explicit InspectorPanel(Workspace& workspace);

    TableView& table() const { return *table_; }
    InspectorModel& model() const { return *model_; }
    int naturalHeight() const override;
    core::Status compute() override;
    core::Status prepareShot(const std::vector<std::string>& planFiles) override;

protected:
    void showEvent(QShowEvent* event) override;

private:
    void reload();
    void showFacts();
    void follow(const QModelIndex& source);

    InspectorModel* model_;
    TableView* table_;
    QSet<QString> closed_;  // titles of groups that somebody has closed
    bool stale_ = true;
};

}  // namespace hw::viewer
