// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "viewer/models/layer_model.h"
#include "viewer/panels/panel.h"
#include "viewer/panels/table_view.h"

namespace hw::viewer {

/// The tree of layers: what holds the peak, what is saved for the backward pass, and the time. A
/// narrow panel shows the first figures only.
class LayersPanel : public Panel {
    Q_OBJECT
public:
    static const PanelKind kKind;
    explicit LayersPanel(Workspace& workspace);

    LayerModel& model() const { return *model_; }
    TableView& table() const { return *table_; }
    void applyTheme() override { table_->viewport()->update(); }
    int naturalHeight() const override;
    bool applies() const override;

protected:
    void resizeEvent(QResizeEvent* event) override;

private:
    void reload();
    void chooseColumns();
    /// Opens the tree level by level while all rows fit.
    void openWhatFits(int rows);

    LayerModel* model_;
    TableView* table_;
    QLabel* empty_;
};

}  // namespace hw::viewer
