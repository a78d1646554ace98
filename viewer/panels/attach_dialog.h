// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QDialog>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSpinBox>
#include <QTableView>
#include <QTimer>

#include "viewer/models/process_model.h"
#include "viewer/models/recorder.h"

namespace hw::viewer {

/// Chooses what to record: a training process that runs, or a program to start. It closes when the
/// recording has begun, and stays with the reason where it cannot.
class AttachDialog : public QDialog {
    Q_OBJECT
public:
    explicit AttachDialog(Recorder& recorder, QWidget* parent = nullptr);

    ProcessModel& processes() const { return *model_; }

protected:
    void showEvent(QShowEvent* event) override;
    void hideEvent(QHideEvent* event) override;

private:
    QWidget* makeList();
    QLayout* makeLaunch();
    QLayout* makeOptions();
    void attachSelected();
    void launch();
    bool folderUsable();
    void showProblem(const QString& what, const QString& hint);
    void update();

    Recorder& recorder_;
    ProcessModel* model_;
    QTableView* table_;
    QLabel *none_, *problem_;
    QLineEdit *command_, *folder_;
    QSpinBox* steps_;
    QPushButton *attach_, *start_;
    QTimer refresh_;
};

}  // namespace hw::viewer
