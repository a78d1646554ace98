// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/panels/attach_dialog.h"

#include <QDir>
#include <QFileDialog>
#include <QFileInfo>
#include <QVBoxLayout>

#include "core/base/parse_bytes.h"

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
    resize(860, 520);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(20, 18, 20, 16);
    column->setSpacing(8);
    chooser_ = new TrainingChooser(startRecording(), tr("can be recorded"));
    chooser_->addBelowCommand(makeBudget());
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
        if (live_.budget() && !live_.began()) chooser_->showProblem(what, hint);
    });
    connect(&live_, &LiveRun::changed, this, [this] {
        update();
        if (live_.budget() && live_.state() == LiveRun::State::Training && isVisible()) accept();
    });
    update();
}

QWidget* AttachDialog::makeBudget() {
    within_ = new QCheckBox(tr("within a budget of"));
    within_->setObjectName(QStringLiteral("withinBudget"));
    budget_ = new QLineEdit;
    budget_->setObjectName(QStringLiteral("budget"));
    budget_->setPlaceholderText(QStringLiteral("20 GB"));
    budget_->setFixedWidth(110);
    budget_->setEnabled(false);
    auto* row = new QWidget;
    auto* parts = new QHBoxLayout(row);
    parts->setContentsMargins(0, 0, 0, 0);
    parts->setSpacing(8);
    parts->addWidget(within_);
    parts->addWidget(budget_);
    parts->addSpacing(6);
    parts->addWidget(muted(tr("from its first op on, to the same bits; nothing is recorded")));
    parts->addStretch(1);
    connect(within_, &QCheckBox::toggled, this, [this](bool on) {
        budget_->setEnabled(on);
        if (on) budget_->setFocus();
        chooser_->clearProblem();
        update();
    });
    connect(budget_, &QLineEdit::textChanged, this, [this] { chooser_->clearProblem(); });
    connect(budget_, &QLineEdit::returnPressed, this, &AttachDialog::launch);
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
    if (!process || recorder_.busy() || !folderUsable()) return;
    chooser_->clearProblem();
    recorder_.attach(process->pid, process->command,
                     Recorder::sessionFor(process->command, folder_->text()), steps_->value());
}

void AttachDialog::launch() {
    const QStringList command = QProcess::splitCommand(chooser_->command());
    if (command.isEmpty()) return;
    if (within_->isChecked()) return launchWithin(command);
    if (recorder_.busy() || !folderUsable()) return;
    chooser_->clearProblem();
    recorder_.launch(command, Recorder::sessionFor(chooser_->command(), folder_->text()),
                     steps_->value());
}

void AttachDialog::launchWithin(const QStringList& command) {
    if (live_.busy())
        return chooser_->showProblem(tr("%1 trains already").arg(live_.target()),
                                     tr("stop that first; the training goes on"));
    const auto budget = core::parseBytes(budget_->text().trimmed().toStdString());
    if (!budget) {
        chooser_->showProblem(toQString(budget.error().what), toQString(budget.error().hint));
        budget_->setFocus();
        return budget_->selectAll();
    }
    chooser_->clearProblem();
    live_.launch(*budget, command);
}

bool AttachDialog::folderUsable() {
    const QFileInfo folder(folder_->text());
    if (folder.isDir() && folder.isWritable()) return true;
    chooser_->showProblem(folder.isDir() ? tr("nothing can be written in %1").arg(folder_->text())
                                         : tr("there is no folder %1").arg(folder_->text()),
                          tr("choose another folder to save the session in"));
    return false;
}

void AttachDialog::update() {
    const bool free = !recorder_.busy(), within = within_->isChecked();
    const bool starts = live_.state() == LiveRun::State::Starting;
    chooser_->setFree(within ? !starts : free);
    chooser_->setStartText(!within  ? startRecording()
                           : starts ? tr("Starting…")
                                    : tr("Start within the budget"));
    attach_->setEnabled(free && chooser_->selected());
    attach_->setText(free ? tr("Attach and record") : tr("Connecting…"));
}

}  // namespace hw::viewer
