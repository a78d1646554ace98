// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QCheckBox>
#include <QDialog>
#include <QLineEdit>
#include <QPushButton>
#include <QSpinBox>

#include "viewer/models/live_run.h"
#include "viewer/models/recorder.h"
#include "viewer/panels/training_chooser.h"

namespace hw::viewer {

/// Chooses what to record: a training process that runs, or a program to start. The program may be
/// trained within a budget instead. It closes when that has begun, and stays with the reason where
/// it cannot.
class AttachDialog : public QDialog {
    Q_OBJECT
public:
    AttachDialog(Recorder& recorder, LiveRun& live, QWidget* parent = nullptr);

    ProcessModel& processes() const { return chooser_->processes(); }

private:
    QWidget* makeBudget();
    QLayout* makeOptions();
    void attachSelected();
    void launch();
    void launchWithin(const QStringList& command);
    bool folderUsable();
    void update();

    Recorder& recorder_;
    LiveRun& live_;
    TrainingChooser* chooser_;
    QCheckBox* within_;
    QLineEdit *budget_, *folder_;
    QSpinBox* steps_;
    QPushButton* attach_;
};

}  // namespace hw::viewer
