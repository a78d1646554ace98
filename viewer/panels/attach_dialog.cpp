// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/panels/attach_dialog.h"

#include <QDir>
#include <QFileDialog>
#include <QFileInfo>
#include <QHeaderView>
#include <QStackedLayout>
#include <QVBoxLayout>

#include "viewer/plots/theme.h"

namespace hw::viewer {
namespace {

constexpr int kRefresh = 2000;  // milliseconds
constexpr int kPidWidth = 84, kStateWidth = 330;

QLabel* title(const QString& text) {
    auto* made = new QLabel(text);
    made->setObjectName(QStringLiteral("attachTitle"));
    made->setStyleSheet(QStringLiteral("font-weight: 600"));
    return made;
}

QLabel* muted(const QString& text) {
    auto* made = new QLabel(text);
    made->setObjectName(QStringLiteral("muted"));
    return made;
}

}  // namespace

AttachDialog::AttachDialog(Recorder& recorder, QWidget* parent)
    : QDialog(parent), recorder_(recorder) {
    setObjectName(QStringLiteral("attachDialog"));
    setWindowTitle(tr("Record a training run"));
    resize(860, 520);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(20, 18, 20, 16);
    column->setSpacing(8);
    column->addWidget(title(tr("Training that runs already")));
    column->addWidget(makeList(), 1);
    column->addSpacing(10);
    column->addWidget(title(tr("Or a program to start")));
    column->addLayout(makeLaunch());
    column->addSpacing(10);
    column->addLayout(makeOptions());
    problem_ = new QLabel;
    problem_->setObjectName(QStringLiteral("attachProblem"));
    problem_->setWordWrap(true);
    problem_->setTextInteractionFlags(Qt::TextSelectableByMouse);
    problem_->hide();
    column->addWidget(problem_);

    refresh_.setInterval(kRefresh);
    connect(&refresh_, &QTimer::timeout, model_, &ProcessModel::refresh);
    connect(model_, &ProcessModel::refreshed, this, [this] {
        if (!table_->currentIndex().isValid() && model_->rowCount() > 0) table_->selectRow(0);
        none_->setText(
            tr("No process has PyTorch loaded. Start your training: it will appear here."));
        update();
    });
    connect(model_, &ProcessModel::failed, this,
            [this](const QString& what) { showProblem(what, {}); });
    connect(&recorder_, &Recorder::failed, this, &AttachDialog::showProblem);
    connect(&recorder_, &Recorder::changed, this, [this] {
        update();
        if (recorder_.state() == Recorder::State::Recording) hide();
    });
    update();
}

QWidget* AttachDialog::makeList() {
    model_ = new ProcessModel(this);
    table_ = new QTableView;
    table_->setObjectName(QStringLiteral("processes"));
    table_->setModel(model_);
    table_->setSelectionBehavior(QAbstractItemView::SelectRows);
    table_->setSelectionMode(QAbstractItemView::SingleSelection);
    table_->setShowGrid(false);
    table_->setWordWrap(false);
    table_->setTextElideMode(Qt::ElideMiddle);
    table_->verticalHeader()->hide();
    table_->verticalHeader()->setDefaultSectionSize(30);
    table_->horizontalHeader()->setHighlightSections(false);
    table_->horizontalHeader()->setSectionResizeMode(ProcessModel::Command, QHeaderView::Stretch);
    table_->setColumnWidth(ProcessModel::Pid, kPidWidth);
    table_->setColumnWidth(ProcessModel::State, kStateWidth);
    none_ = muted(tr("Looking for training processes…"));
    none_->setAlignment(Qt::AlignCenter);
    auto* frame = new QFrame;
    frame->setObjectName(QStringLiteral("listFrame"));
    frame->setStyleSheet(
        QStringLiteral("QFrame#listFrame { border: 1px solid %1; border-radius: 4px; }")
            .arg(theme().line.name()));
    auto* stack = new QStackedLayout(frame);
    stack->setContentsMargins(1, 1, 1, 1);
    stack->addWidget(none_);
    stack->addWidget(table_);
    connect(table_, &QTableView::doubleClicked, this, &AttachDialog::attachSelected);
    connect(table_->selectionModel(), &QItemSelectionModel::currentRowChanged, this, [this] {
        if (!recorder_.busy()) problem_->hide();
        update();
    });
    const auto choose = [this, stack] { stack->setCurrentIndex(model_->rowCount() > 0 ? 1 : 0); };
    connect(model_, &ProcessModel::rowsInserted, this, choose);
    connect(model_, &ProcessModel::rowsRemoved, this, choose);
    return frame;
}

QLayout* AttachDialog::makeLaunch() {
    command_ = new QLineEdit;
    command_->setObjectName(QStringLiteral("command"));
    command_->setPlaceholderText(QStringLiteral("python3 train.py --batch-size 64"));
    command_->setClearButtonEnabled(true);
    start_ = new QPushButton(tr("Start and record"));
    start_->setObjectName(QStringLiteral("startAndRecord"));
    start_->setAutoDefault(false);
    auto* row = new QHBoxLayout;
    row->addWidget(command_, 1);
    row->addWidget(start_);
    connect(command_, &QLineEdit::textChanged, this, &AttachDialog::update);
    connect(command_, &QLineEdit::returnPressed, this, &AttachDialog::launch);
    connect(start_, &QPushButton::clicked, this, &AttachDialog::launch);
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
    const QModelIndex row = table_->currentIndex();
    if (!row.isValid() || recorder_.busy() || !folderUsable()) return;
    const TrainingProcess process = model_->at(row.row());
    problem_->hide();
    recorder_.attach(process.pid, process.command,
                     Recorder::sessionFor(process.command, folder_->text()), steps_->value());
}

void AttachDialog::launch() {
    const QStringList command = QProcess::splitCommand(command_->text());
    if (command.isEmpty() || recorder_.busy() || !folderUsable()) return;
    problem_->hide();
    recorder_.launch(command, Recorder::sessionFor(command_->text(), folder_->text()),
                     steps_->value());
}

bool AttachDialog::folderUsable() {
    const QFileInfo folder(folder_->text());
    if (folder.isDir() && folder.isWritable()) return true;
    showProblem(folder.isDir() ? tr("nothing can be written in %1").arg(folder_->text())
                               : tr("there is no folder %1").arg(folder_->text()),
                tr("choose another folder to save the session in"));
    return false;
}

void AttachDialog::showProblem(const QString& what, const QString& hint) {
    problem_->setVisible(!what.isEmpty());
    problem_->setText(
        QStringLiteral("<span style='color:%1'>%2</span>%3")
            .arg(theme().alert.name(), what.toHtmlEscaped(),
                 hint.isEmpty() ? QString() : QStringLiteral("<br>") + hint.toHtmlEscaped()));
    update();
}

void AttachDialog::update() {
    const bool free = !recorder_.busy();
    attach_->setEnabled(free && table_->currentIndex().isValid());
    start_->setEnabled(free && !command_->text().trimmed().isEmpty());
    attach_->setText(free ? tr("Attach and record") : tr("Connecting…"));
}

void AttachDialog::showEvent(QShowEvent* event) {
    QDialog::showEvent(event);
    model_->refresh();
    refresh_.start();
    table_->setFocus();
}

void AttachDialog::hideEvent(QHideEvent* event) {
    QDialog::hideEvent(event);
    refresh_.stop();
}

}  // namespace hw::viewer
