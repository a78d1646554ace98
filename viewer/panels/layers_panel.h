// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QTableView>

#include "viewer/models/layer_model.h"
#include "viewer/panels/panel.h"

namespace hw::viewer {

/// Which layers hold the peak. A click selects the layer's first op.
class LayersPanel : public Panel {
    Q_OBJECT
public:
    explicit LayersPanel(Workspace& workspace);
    void applyTheme() override { table_->viewport()->update(); }

private:
    LayerModel* model_;
    QTableView* table_;
};

}  // namespace hw::viewer
