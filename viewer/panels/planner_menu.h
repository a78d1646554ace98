// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QCheckBox>
#include <QToolButton>
#include <vector>

#include "viewer/models/workspace.h"

namespace hw::viewer {

/// A button with a list of all planners to tick; the list stays open while they are ticked.
class PlannerMenu : public QToolButton {
    Q_OBJECT
public:
    explicit PlannerMenu(Workspace& workspace);

    const std::vector<QCheckBox*>& boxes() const { return boxes_; }
    void applyTheme();  // the swatches

private:
    void update();

    Workspace& workspace_;
    std::vector<QCheckBox*> boxes_;  // one a planner, named by it
};

}  // namespace hw::viewer
