// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QTableView>
#include <QTimer>
#include <QWidget>
#include <optional>

#include "viewer/models/process_model.h"

namespace hw::viewer {

/// Which training: one that runs, from a list that is kept up to date while it is seen, or a
/// program to start. Below stands what is in the way, if anything is.
class TrainingChooser : public QWidget {
    Q_OBJECT
public:
    /// `start`: what the button beside the command says. `ready`: of a process that can be chosen.
    TrainingChooser(const QString& start, const QString& ready);

    ProcessModel& processes() const { return *model_; }
    std::optional<TrainingProcess> selected() const;
    /// Of the processes that are there at the next look the one that runs that command, if it is
    /// the only one; until then, and otherwise, none.
    void choose(const QString& command);
    QString command() const { return command_->text(); }
    void setCommand(const QString& command) { command_->setText(command); }
    /// More about the program to start.
    void addBelowCommand(QWidget* options);
    void setStartText(const QString& text) { start_->setText(text); }
    /// While something is under way, nothing is started.
    void setFree(bool free);
    void showProblem(const QString& what, const QString& hint);
    void clearProblem() { problem_->hide(); }

signals:
    void selectionChanged();
    void attachRequested();  // to the selected process, by a double click
    void startRequested();

protected:
    void showEvent(QShowEvent* event) override;
    void hideEvent(QHideEvent* event) override;

private:
    QWidget* makeList();
    QLayout* makeCommand(const QString& start);
    void update();

    ProcessModel* model_;
    QTableView* table_;
    QLabel *none_, *problem_;
    QLineEdit* command_;
    QPushButton* start_;
    QTimer refresh_;
    bool free_ = true;
    QString meant_;  // see choose()
};

}  // namespace hw::viewer
