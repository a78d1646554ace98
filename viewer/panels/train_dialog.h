// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QDialog>
#include <QLabel>
#include <QPushButton>

#include "viewer/models/live_run.h"
#include "viewer/models/workspace.h"
#include "viewer/panels/training_chooser.h"

namespace hw::viewer {

/// Chooses what trains under the plan that is drawn: a process that runs, or a program to start. It
/// closes when the plan has been taken in, and stays with the reason where it is refused.
class TrainDialog : public QDialog {
    Q_OBJECT
public:
    TrainDialog(Workspace& workspace, LiveRun& run, QWidget* parent = nullptr);

    ProcessModel& processes() const { return chooser_->processes(); }

protected:
    void showEvent(QShowEvent* event) override;

private:
    void describePlan();
    void applyToSelected();
    void launch();
    void update();

    Workspace& workspace_;
    LiveRun& run_;
    PlannedStep planned_;  // as it was when the dialog opened
    QString suggested_;    // the command that the session knows
    QLabel *plan_, *figures_;
    TrainingChooser* chooser_;
    QPushButton* apply_;
};

}  // namespace hw::viewer
