// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QCheckBox>
#include <QComboBox>
#include <QDialog>
#include <QLineEdit>
#include <QPushButton>
#include <QSpinBox>

#include "viewer/models/live_run.h"
#include "viewer/models/recorder.h"
#include "viewer/panels/training_chooser.h"

namespace hw::viewer {

/// Chooses what to record: a training process that runs, or a program to start. Instead of being
/// recorded it may be kept within a budget, or rescued where its memory fails. The dialog closes
/// when that has begun, and stays with the reason where it cannot.
class AttachDialog : public QDialog {
    Q_OBJECT
public:
    AttachDialog(Recorder& recorder, LiveRun& live, QWidget* parent = nullptr);

    ProcessModel& processes() const { return chooser_->processes(); }

protected:
    void showEvent(QShowEvent* event) override;

private:
    QWidget* makeTerms();
    QLayout* makeBudget();
    QLayout* makeRescue();
    QLayout* makeOptions();
    void attachSelected();
    void launch();
    /// What holds instead of a recording, if that has been chosen and can be; else the dialog says
    /// why not.
    std::optional<LiveTerms> terms();
    bool free() const { return within_->isChecked() || rescue_->isChecked(); }
    bool folderUsable();
    void update();

    Recorder& recorder_;
    LiveRun& live_;
    TrainingChooser* chooser_;
    QCheckBox *within_, *rescue_;
    QComboBox* planner_;
    QLineEdit *budget_, *folder_;
    QSpinBox* steps_;
    QPushButton* attach_;
};

}  // namespace hw::viewer
