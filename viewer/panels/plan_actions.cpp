// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/panels/plan_actions.h"

#include <QFileInfo>
#include <QJsonDocument>
#include <QMessageBox>
#include <QPushButton>
#include <QWidget>

#include "viewer/models/tool.h"
#include "viewer/panels/file_dialog.h"

namespace hw::viewer {
namespace {

constexpr int kVerificationFailed = 6;  // exit code: it ran, and a result differed

}  // namespace

PlanActions::PlanActions(Workspace& workspace, QWidget* window)
    : QObject(window), workspace_(workspace), window_(window), export_(this) {
    connect(&export_, &PlanExport::told, this, &PlanActions::told);
    connect(&export_, &PlanExport::failed, this, &PlanActions::failed);
    connect(&check_, &QProcess::finished, this, &PlanActions::checked);
    connect(&workspace_, &Workspace::documentChanged, this, &PlanActions::check);
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
    for (QProcess* process : {&executor_, &check_}) process->disconnect(this);
    if (check_.state() != QProcess::NotRunning) {
        check_.kill();
        check_.waitForFinished(1000);
    }
    if (!running()) return;
    executor_.kill();
    executor_.waitForFinished(1000);
}

bool PlanActions::needsPlan() {
    const PlanPointer& plan = workspace_.active().plan();
    if (plan && plan->ok() && !plan->schedule.empty()) return true;
    emit failed(tr("no plan is chosen"),
                tr("move the budget to where a planner has a plan, or choose a row of Compare"));
    return false;
}

void PlanActions::exportPlan() {
    if (!needsPlan()) return;
    const PlanPointer plan = workspace_.active().plan();
    const Document& document = *workspace_.document();
    QString planner = plan->planner;
    planner.replace(QLatin1Char(':'), QLatin1Char('-'));
    const QString suggestion = QStringLiteral("%1-%2-%3.plan.json")
                                   .arg(QFileInfo(document.name).completeBaseName(), planner)
                                   .arg(qRound(ratio(plan->budget, document.peak()) * 100));
    askToSave(window_, tr("Export plan"), document.path, suggestion, exportFilter(),
              QStringLiteral("plan.json"),
              [this, plan, shown = workspace_.document()](const QString& path) {
                  export_.write(shown, plan, path);
              });
}

void PlanActions::runPlan() {
    if (running() || !needsPlan()) return;
    if (named_.isEmpty() || named_ == python_) return start();
    askForPython();
}

// A session may come from anybody, and name any program.
void PlanActions::askForPython() {
    auto* box = new QMessageBox(QMessageBox::Question, QStringLiteral("Highwater"),
                                tr("Start %1?").arg(named_), QMessageBox::Cancel, window_);
    box->setInformativeText(
        tr("The session names this Python interpreter, and nothing else here runs its steps. Start "
           "it only if you know where it comes from."));
    box->setAttribute(Qt::WA_DeleteOnClose);
    QPushButton* const allow = box->addButton(tr("Start it"), QMessageBox::AcceptRole);
    connect(allow, &QPushButton::clicked, this, [this, named = named_] {
        if (named != named_) return;  // another session is shown by now
        python_ = named;
        start();
    });
    box->setDefaultButton(QMessageBox::Cancel);
    box->open();
}

void PlanActions::start() {
    if (running() || !needsPlan()) return;
    folder_ = std::make_unique<QTemporaryDir>();
    const QString file = folder_->filePath(QStringLiteral("run.plan.json"));
    if (core::Status saved = savePlan(*workspace_.active().plan(), file.toStdString()); !saved)
        return emit failed(toQString(saved.error().what), toQString(saved.error().hint));
    const Document& document = *workspace_.document();
    session_ = QString::fromStdString(document.path);
    said_.clear();
    emit told(tr("running the plan of %1…").arg(workspace_.active().plan()->planner));
    QStringList arguments{QStringLiteral("run"),
                          session_,
                          file,
                          QStringLiteral("--step"),
                          QString::number(document.step),
                          QStringLiteral("--json")};
    if (!named_.isEmpty()) arguments << QStringLiteral("--python") << python_;
    executor_.start(toolProgram(), arguments, QIODevice::ReadOnly);
}

// Once a session: another step of it runs with the same.
void PlanActions::check() {
    const DocumentPointer& document = workspace_.document();
    if (!document || !document->plannable || workspace_.loader().following()) return;
    const QString path = QString::fromStdString(document->path);
    if (path == checked_ || check_.state() != QProcess::NotRunning) return;
    checked_ = path;
    check_.start(toolProgram(),
                 {QStringLiteral("run"), path, QStringLiteral("--check"), QStringLiteral("--json")},
                 QIODevice::ReadOnly);
}

void PlanActions::checked(int exitCode) {
    const QString said = QString::fromUtf8(check_.readAllStandardError());
    const QJsonDocument answer = QJsonDocument::fromJson(check_.readAllStandardOutput());
    const ToolError error = toolError(said);
    named_ = exitCode == 0 ? QString() : answer[QStringLiteral("session_names")].toString();
    if (!named_.isEmpty())
        emit runnerKnown(tr("%1, once you allow it").arg(named_), true);
    else if (exitCode == 0)
        emit runnerKnown(answer[QStringLiteral("runs_with")].toString(), true);
    else if (!error.what.isEmpty())
        emit runnerKnown(
            error.hint.isEmpty() ? error.what : error.what + QStringLiteral(" – ") + error.hint,
            false);
    check();  // another session may have been opened meanwhile
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
    emit told(ran && exitCode == 0 ? tr("the run is over: what it measured is in Compare")
                                   : QString());
    if (!ran || exitCode != 0)
        emit failed(error.what.isEmpty() ? tr("the executor ended unexpectedly") : error.what,
                    error.hint);
    const DocumentPointer& document = workspace_.document();
    if (ran && document && QString::fromStdString(document->path) == session_) workspace_.reload();
    if (ran) emit finishedRun();
}

}  // namespace hw::viewer
