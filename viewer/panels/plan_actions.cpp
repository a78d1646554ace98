// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/panels/plan_actions.h"

#include <QFileInfo>
#include <QWidget>

#include "viewer/models/tool.h"
#include "viewer/panels/file_dialog.h"

namespace hw::viewer {
namespace {

constexpr int kVerificationFailed = 6;  // exit code: it ran, and a result differed

}  // namespace

PlanActions::PlanActions(Workspace& workspace, QWidget* window)
    : QObject(window), workspace_(workspace), window_(window) {
    executor_.setStandardOutputFile(QProcess::nullDevice());
    connect(&executor_, &QProcess::finished, this, &PlanActions::ended);
    connect(&executor_, &QProcess::readyReadStandardError, this, &PlanActions::listen);
    connect(&executor_, &QProcess::errorOccurred, this, [this](QProcess::ProcessError error) {
        if (error == QProcess::FailedToStart)
            emit failed(tr("cannot start %1").arg(toolProgram()),
                        tr("the executable `highwater` belongs beside this program"));
    });
}

PlanActions::~PlanActions() {
    executor_.disconnect(this);
    if (!running()) return;
    executor_.kill();
    executor_.waitForFinished(1000);
}

bool PlanActions::needsPlan() {
    const PlanPointer& plan = workspace_.activePlan();
    if (plan && plan->ok() && !plan->schedule.empty()) return true;
    emit failed(tr("no plan is chosen"),
                tr("move the budget to where a planner has a plan, or choose a row of Compare"));
    return false;
}

void PlanActions::exportPlan() {
    if (!needsPlan()) return;
    const PlanPointer plan = workspace_.activePlan();
    const Document& document = *workspace_.document();
    QString planner = plan->planner;
    planner.replace(QLatin1Char(':'), QLatin1Char('-'));
    const QString suggestion = QStringLiteral("%1-%2-%3.plan.json")
                                   .arg(QFileInfo(document.name).completeBaseName(), planner)
                                   .arg(qRound(ratio(plan->budget, document.peak()) * 100));
    askToSave(window_, tr("Export plan"), document.path, suggestion, tr("Plans (*.plan.json)"),
              QStringLiteral("plan.json"), [this, plan](const QString& path) {
                  if (core::Status saved = savePlan(*plan, path.toStdString()); !saved)
                      emit failed(toQString(saved.error().what), toQString(saved.error().hint));
                  else
                      emit told(tr("saved %1").arg(path));
              });
}

void PlanActions::runPlan() {
    if (running() || !needsPlan()) return;
    folder_ = std::make_unique<QTemporaryDir>();
    const QString file = folder_->filePath(QStringLiteral("run.plan.json"));
    if (core::Status saved = savePlan(*workspace_.activePlan(), file.toStdString()); !saved)
        return emit failed(toQString(saved.error().what), toQString(saved.error().hint));
    const Document& document = *workspace_.document();
    session_ = QString::fromStdString(document.path);
    said_.clear();
    emit told(tr("running the plan of %1…").arg(workspace_.activePlan()->planner));
    executor_.start(toolProgram(),
                    {QStringLiteral("run"), session_, file, QStringLiteral("--step"),
                     QString::number(document.step), QStringLiteral("--json")},
                    QIODevice::ReadOnly);
}

// The first run of a torch takes its time: an executor is compiled for it.
void PlanActions::listen() {
    said_ += executor_.readAllStandardError();
    const QString line = toolProgress(QString::fromUtf8(said_));
    if (!line.isEmpty()) emit told(line);
}

void PlanActions::ended(int exitCode, QProcess::ExitStatus how) {
    const ToolError error = toolError(QString::fromUtf8(said_ + executor_.readAllStandardError()));
    const bool ran =
        how == QProcess::NormalExit && (exitCode == 0 || exitCode == kVerificationFailed);
    emit told({});
    if (!ran || exitCode != 0)
        emit failed(error.what.isEmpty() ? tr("the executor ended unexpectedly") : error.what,
                    error.hint);
    const DocumentPointer& document = workspace_.document();
    if (ran && document && QString::fromStdString(document->path) == session_) workspace_.reload();
}

}  // namespace hw::viewer
