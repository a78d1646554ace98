// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/panels/train_dialog.h"

#include <QProcess>
#include <QShowEvent>
#include <QVBoxLayout>

namespace hw::viewer {

TrainDialog::TrainDialog(Workspace& workspace, LiveRun& run, QWidget* parent)
    : QDialog(parent), workspace_(workspace), run_(run) {
    setObjectName(QStringLiteral("trainDialog"));
    setWindowTitle(tr("Train under this plan"));
    resize(1000, 560);
    plan_ = new QLabel;
    plan_->setObjectName(QStringLiteral("headline"));
    plan_->setWordWrap(true);
    figures_ = new QLabel;
    figures_->setObjectName(QStringLiteral("muted"));
    figures_->setWordWrap(true);
    chooser_ = new TrainingChooser(tr("Start under the plan"), tr("can take the plan in"));
    auto* promise = new QLabel(tr(
        "The program is not changed and computes the same bits. Stop takes the plan out again."));
    promise->setObjectName(QStringLiteral("muted"));
    promise->setWordWrap(true);
    apply_ = new QPushButton;
    apply_->setObjectName(QStringLiteral("apply"));
    apply_->setDefault(true);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(20, 18, 20, 16);
    column->setSpacing(8);
    column->addWidget(plan_);
    column->addWidget(figures_);
    column->addSpacing(10);
    column->addWidget(chooser_, 1);
    column->addSpacing(10);
    auto* row = new QHBoxLayout;
    row->addWidget(promise, 1);
    row->addWidget(apply_);
    column->addLayout(row);
    connect(apply_, &QPushButton::clicked, this, &TrainDialog::applyToSelected);
    connect(chooser_, &TrainingChooser::selectionChanged, this, &TrainDialog::update);
    connect(chooser_, &TrainingChooser::attachRequested, this, &TrainDialog::applyToSelected);
    connect(chooser_, &TrainingChooser::startRequested, this, &TrainDialog::launch);
    connect(&run_, &LiveRun::failed, chooser_, &TrainingChooser::showProblem);
    connect(&run_, &LiveRun::changed, this, [this] {
        update();
        if (run_.state() == LiveRun::State::Training) hide();
    });
    update();
}

void TrainDialog::describePlan() {
    const Document& document = *workspace_.document();
    const PlanEntry& plan = *planned_.plan;
    plan_->setText(tr("Train under the plan of %1 for %2 (%3 of the recorded peak)")
                       .arg(plan.planner, document.size.text(plan.budget),
                            percentText(ratio(plan.budget, document.peak()))));
    figures_->setText(tr("Predicted: peak %1 instead of %2, step time %3, %4 ops recomputed.")
                          .arg(document.size.text(plan.peak), document.size.text(document.peak()),
                               overheadText(plan.overhead))
                          .arg(plan.recomputedOps));
}

void TrainDialog::applyToSelected() {
    const std::optional<TrainingProcess> process = chooser_->selected();
    if (!process || run_.busy()) return;
    chooser_->clearProblem();
    run_.apply(planned_, process->pid, process->command);
}

void TrainDialog::launch() {
    const QStringList command = QProcess::splitCommand(chooser_->command());
    if (command.isEmpty() || run_.busy()) return;
    chooser_->clearProblem();
    run_.launch(planned_, command);
}

void TrainDialog::update() {
    const bool free = !run_.busy();
    chooser_->setFree(free);
    apply_->setEnabled(free && chooser_->selected());
    apply_->setText(free ? tr("Apply") : tr("Starting…"));
}

void TrainDialog::showEvent(QShowEvent* event) {
    const Document& document = *workspace_.document();
    planned_ = {toQString(document.path), document.step, workspace_.active().plan()};
    describePlan();
    // What somebody has typed stays, while it is for the same program.
    if (document.command != suggested_ || chooser_->command().isEmpty())
        chooser_->setCommand(suggested_ = document.command);
    if (!event->spontaneous()) chooser_->choose(document.command);
    chooser_->clearProblem();
    update();
    QDialog::showEvent(event);
}

}  // namespace hw::viewer
