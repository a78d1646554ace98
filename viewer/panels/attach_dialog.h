// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QDialog>
#include <QLineEdit>
#include <QPushButton>
#include <QSpinBox>

#include "viewer/models/recorder.h"
#include "viewer/panels/training_chooser.h"

namespace hw::viewer {

/// Chooses what to record: a training process that runs, or a program to start. It closes when the
/// recording has begun, and stays with the reason where it cannot.
class AttachDialog : public QDialog {
    Q_OBJECT
public:
    explicit AttachDialog(Recorder& recorder, QWidget* parent = nullptr);

    ProcessModel& processes() const { return chooser_->processes(); }

private:
    QLayout* makeOptions();
    void attachSelected();
    void launch();
    bool folderUsable();
    void update();

    Recorder& recorder_;
    TrainingChooser* chooser_;
    QLineEdit* folder_;
    QSpinBox* steps_;
    QPushButton* attach_;
};

}  // namespace hw::viewer
