// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/panels/attach_dialog.h"

#include <QDir>
#include <QFileDialog>
#include <QFileInfo>
#include <QShowEvent>
#include <QVBoxLayout>

#include "core/base/parse_bytes.h"
#include "planners/registry.h"

namespace hw::viewer {
namespace {

QLabel* muted(const QString& text) {
    auto* made = new QLabel(text);
    made->setObjectName(QStringLiteral("muted"));
    return made;
}

QString startRecording() {
    return AttachDialog::tr("Start and record");
}

}  // namespace

AttachDialog::AttachDialog(Recorder& recorder, LiveRun& live, QWidget* parent)
    : QDialog(parent), recorder_(recorder), live_(live) {
    setObjectName(QStringLiteral("attachDialog"));
    setWindowTitle(tr("Record a training run"));
    resize(1000, 520);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(20, 18, 20, 16);
    column->setSpacing(8);
    chooser_ = new TrainingChooser(startRecording(), tr("can be recorded"));
    chooser_->addBelowCommand(makeTerms());
    column->addWidget(chooser_, 1);
    column->addSpacing(10);
    column->addLayout(makeOptions());
    connect(chooser_, &TrainingChooser::selectionChanged, this, &AttachDialog::update);
    connect(chooser_, &TrainingChooser::attachRequested, this, &AttachDialog::attachSelected);
    connect(chooser_, &TrainingChooser::startRequested, this, &AttachDialog::launch);
    connect(&recorder_, &Recorder::failed, chooser_, &TrainingChooser::showProblem);
    connect(&recorder_, &Recorder::changed, this, [this] {
        update();
        if (recorder_.state() == Recorder::State::Recording) hide();
    });
    connect(&live_, &LiveRun::failed, this, [this](const QString& what, const QString& hint) {
        if (live_.terms() && !live_.began()) chooser_->showProblem(what, hint);
    });
    connect(&live_, &LiveRun::changed, this, [this] {
        update();
        if (live_.terms() && live_.state() == LiveRun::State::Training && isVisible()) accept();
    });
    update();
}

// Either of them, or a recording.
QWidget* AttachDialog::makeTerms() {
    auto* made = new QWidget;
    auto* rows = new QVBoxLayout(made);
    rows->setContentsMargins(0, 0, 0, 0);
    rows->setSpacing(6);
    rows->addLayout(makeBudget());
    rows->addLayout(makeRescue());
    for (auto [box, other] : {std::pair(within_, rescue_), {rescue_, within_}})
        connect(box, &QCheckBox::toggled, this, [this, other = other](bool on) {
            if (on) other->setChecked(false);
            chooser_->clearProblem();
            update();
        });
    connect(within_, &QCheckBox::toggled, this, [this](bool on) {
        budget_->setEnabled(on);
        planner_->setEnabled(on);
        if (on) budget_->setFocus();
    });
    return made;
}

QLayout* AttachDialog::makeBudget() {
    within_ = new QCheckBox(tr("within a budget of"));
    within_->setObjectName(QStringLiteral("withinBudget"));
    budget_ = new QLineEdit;
    budget_->setObjectName(QStringLiteral("budget"));
    budget_->setPlaceholderText(QStringLiteral("20 GB"));
    budget_->setFixedWidth(110);
    budget_->setEnabled(false);
    planner_ = new QComboBox;
    planner_->setObjectName(QStringLiteral("planner"));
    planner_->setToolTip(
        tr("Whose plan takes over from DTR once it is there, or how DTR decides to the end"));
    for (const planners::PlannerInfo& info : planners::plannerList()) {
        if (info.name == "none") continue;
        planner_->addItem(toQString(info.name));
        planner_->setItemData(planner_->count() - 1, toQString(info.description), Qt::ToolTipRole);
    }
    planner_->setCurrentText(toQString(planners::ownPlanner().name));
    planner_->setEnabled(false);
    auto* row = new QHBoxLayout;
    row->setSpacing(8);
    row->addWidget(within_);
    row->addWidget(budget_);
    row->addWidget(muted(tr("by")));
    row->addWidget(planner_);
    row->addSpacing(6);
    row->addWidget(muted(tr("the same results; nothing is recorded")));
    row->addStretch(1);
    connect(budget_, &QLineEdit::textChanged, this, [this] { chooser_->clearProblem(); });
    connect(budget_, &QLineEdit::returnPressed, this, &AttachDialog::launch);
    return row;
}

QLayout* AttachDialog::makeRescue() {
    rescue_ = new QCheckBox(tr("rescue it when memory runs out"));
    rescue_->setObjectName(QStringLiteral("rescue"));
    auto* row = new QHBoxLayout;
    row->setSpacing(8);
    row->addWidget(rescue_);
    row->addSpacing(6);
    row->addWidget(muted(tr("acts only when an allocation fails; nothing is recorded")));
    row->addStretch(1);
    return row;
}

QLayout* AttachDialog::makeOptions() {
    folder_ = new QLineEdit(QDir::currentPath());
    folder_->setObjectName(QStringLiteral("folder"));
    auto* browse = new QPushButton(tr("Choose…"));
    browse->setAutoDefault(false);
    steps_ = new QSpinBox;
    steps_->setObjectName(QStringLiteral("steps"));
    steps_->setRange(0, 1'000'000);
    steps_->setSpecialValueText(tr("until stopped"));
    steps_->setMinimumWidth(124);
    attach_ = new QPushButton(tr("Attach and record"));
    attach_->setObjectName(QStringLiteral("attach"));
    attach_->setDefault(true);
    auto* row = new QHBoxLayout;
    row->setSpacing(8);
    row->addWidget(muted(tr("Save in")));
    row->addWidget(folder_, 1);
    row->addWidget(browse);
    row->addSpacing(12);
    row->addWidget(muted(tr("Steps")));
    row->addWidget(steps_);
    row->addSpacing(12);
    row->addWidget(attach_);
    connect(attach_, &QPushButton::clicked, this, &AttachDialog::attachSelected);
    connect(browse, &QPushButton::clicked, this, [this] {
        const QString chosen =
            QFileDialog::getExistingDirectory(this, tr("Save in"), folder_->text());
        if (!chosen.isEmpty()) folder_->setText(chosen);
    });
    return row;
}

void AttachDialog::attachSelected() {
    const std::optional<TrainingProcess> process = chooser_->selected();
    if (!process) return;
    if (free()) {
        if (const auto chosen = terms()) live_.apply(*chosen, process->pid, process->command);
        return;
    }
    if (recorder_.busy() || !folderUsable()) return;
    chooser_->clearProblem();
    recorder_.attach(process->pid, process->command,
                     Recorder::sessionFor(process->command, folder_->text()), steps_->value());
}

void AttachDialog::launch() {
    const QStringList command = QProcess::splitCommand(chooser_->command());
    if (command.isEmpty()) return;
    if (free()) {
        if (const auto chosen = terms()) live_.launch(*chosen, command);
        return;
    }
    if (recorder_.busy() || !folderUsable()) return;
    chooser_->clearProblem();
    recorder_.launch(command, Recorder::sessionFor(chooser_->command(), folder_->text()),
                     steps_->value());
}

std::optional<LiveTerms> AttachDialog::terms() {
    if (live_.busy()) {
        chooser_->showProblem(tr("%1 trains already").arg(live_.target()),
                              tr("stop that first; the training goes on"));
        return std::nullopt;
    }
    if (rescue_->isChecked()) return LiveTerms();
    const auto budget = core::parseBytes(budget_->text().trimmed().toStdString());
    if (!budget) {
        chooser_->showProblem(toQString(budget.error().what), toQString(budget.error().hint));
        budget_->setFocus();
        budget_->selectAll();
        return std::nullopt;
    }
    chooser_->clearProblem();
    return LiveTerms{*budget, planner_->currentText()};
}

bool AttachDialog::folderUsable() {
    const QFileInfo folder(folder_->text());
    if (folder.isDir() && folder.isWritable()) return true;
    chooser_->showProblem(folder.isDir() ? tr("nothing can be written in %1").arg(folder_->text())
                                         : tr("there is no folder %1").arg(folder_->text()),
                          tr("choose another folder to save the session in"));
    return false;
}

// What was chosen for one training is not meant for the next.
void AttachDialog::showEvent(QShowEvent* event) {
    if (!event->spontaneous()) {
        chooser_->choose(QString());
        within_->setChecked(false);
        rescue_->setChecked(false);
    }
    QDialog::showEvent(event);
}

void AttachDialog::update() {
    const bool recorderFree = !recorder_.busy(), recorded = !free();
    const bool starts = live_.state() == LiveRun::State::Starting;
    const bool able = recorded ? recorderFree : !starts;
    chooser_->setFree(able);
    chooser_->setStartText(recorded               ? startRecording()
                           : starts               ? tr("Starting…")
                           : within_->isChecked() ? tr("Start within the budget")
                                                  : tr("Start with the rescue"));
    attach_->setEnabled(able && chooser_->selected());
    attach_->setText(!recorded      ? tr("Apply")
                     : recorderFree ? tr("Attach and record")
                                    : tr("Connecting…"));
}

}  // namespace hw::viewer
