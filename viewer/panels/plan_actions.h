// SPDX-License-Identifier: GPL-3.0-or-later
// What can be done with the plan that is looked at: write it out, run it.
#pragma once

#include <QProcess>
#include <QTemporaryDir>
#include <memory>

#include "viewer/models/workspace.h"
#include "viewer/panels/plan_export.h"

namespace hw::viewer {

class PlanActions : public QObject {
    Q_OBJECT
public:
    PlanActions(Workspace& workspace, QWidget* window);
    ~PlanActions() override;  // ends a run

    /// Whether a plan is drawn; says so where none is.
    bool needsPlan();
    /// Asks where to, then writes the plan file.
    void exportPlan();
    /// Runs the plan with the native executor, in the background; the session keeps what was
    /// measured, and the window shows it.
    void runPlan();
    /// Asks, in the background, with what the open session would run.
    void check();
    bool running() const { return executor_.state() != QProcess::NotRunning; }

signals:
    void told(const QString& what);
    void failed(const QString& what, const QString& hint);
    /// The plan ran; what was measured is on its way into the views.
    void finishedRun();
    /// "torch 2.11.0", or what is missing and what to do about it.
    void runnerKnown(const QString& text, bool runs);

private:
    void start();
    void askForPython();
    void listen();
    void checked(int exitCode);
    void ended(int exitCode, QProcess::ExitStatus how);

    Workspace& workspace_;
    QWidget* window_;
    PlanExport export_;
    QProcess executor_, check_;
    std::unique_ptr<QTemporaryDir> folder_;  // of the plan that runs
    QString session_, checked_;
    QString named_;    // by the session: an interpreter, without which nothing here runs its steps
    QString python_;   // that the user has allowed
    QByteArray said_;  // on stderr
};

}  // namespace hw::viewer
