// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QLabel>

#include "viewer/models/search_model.h"
#include "viewer/models/workspace.h"
#include "viewer/panels/finder.h"
#include "viewer/panels/table_view.h"

namespace hw::viewer {

/// Finds ops, tensors, layers and source lines of the step that is open, and selects one.
class SearchDialog : public Finder {
    Q_OBJECT
public:
    SearchDialog(Workspace& workspace, QWidget* parent);

    SearchModel& model() const { return *model_; }

signals:
    /// Something was chosen and is selected now.
    void found();

protected:
    void narrow(const QString& typed) override;
    void perform() override;

private:
    SearchDialog(Workspace& workspace, SearchModel* model, QWidget* parent);

    Workspace& workspace_;
    SearchModel* model_;
    TableView* list_;
    QLabel* count_;
};

}  // namespace hw::viewer
