// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QSplitter>

#include "viewer/models/live_tensor_model.h"
#include "viewer/panels/panel.h"
#include "viewer/panels/table_view.h"
#include "viewer/plots/legend.h"
#include "viewer/plots/treemap_view.h"

namespace hw::viewer {

/// What is live at the peak: of the recorded step (within the selected time) and, beside it in the
/// same scale, of the plan; a table of the tensors of both.
class PeakPanel : public Panel {
    Q_OBJECT
public:
    static const PanelKind kKind;
    explicit PeakPanel(Workspace& workspace);

    TreemapView& recorded() const { return *recorded_; }
    TreemapView& planned() const { return *planned_; }
    TreemapView& other() const { return *other_; }
    LiveTensorModel& model() const { return *model_; }
    TableView& table() const { return *table_; }
    void applyTheme() override;
    core::Status prepareShot(const std::vector<std::string>& planFiles) override;
    void hideControls() override;

protected:
    void showEvent(QShowEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;

private:
    void reload();
    void showSets();
    void updateSelection();
    void updateLegend();
    void shareRoom();

    TreemapView *recorded_, *planned_, *other_;
    LiveTensorModel* model_;
    TableView* table_;
    Legend* legend_;
    QSplitter* split_;
    QWidget* maps_;
    bool stale_ = true;     // while it is not shown, plans come and go unseen
    bool picture_ = false;  // not a view to work in
};

}  // namespace hw::viewer
