// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/panels/training_chooser.h"

#include <QDir>
#include <QHeaderView>
#include <QStackedLayout>
#include <QVBoxLayout>
#include <utility>

#include "viewer/plots/theme.h"

namespace hw::viewer {
namespace {

constexpr int kRefresh = 2000;  // milliseconds
constexpr int kPidWidth = 84, kFolderWidth = 170, kNumberWidth = 86, kStateWidth = 200;

QLabel* title(const QString& text) {
    auto* made = new QLabel(text);
    made->setStyleSheet(QStringLiteral("font-weight: 600"));
    return made;
}

}  // namespace

TrainingChooser::TrainingChooser(const QString& start, const QString& ready) {
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(8);
    model_ = new ProcessModel(this);
    model_->setReadyText(ready);
    column->addWidget(title(tr("Training that runs already")));
    column->addWidget(makeList(), 1);
    column->addSpacing(10);
    column->addWidget(title(tr("Or a program to start")));
    column->addLayout(makeCommand(start));
    problem_ = new QLabel;
    problem_->setObjectName(QStringLiteral("trainingProblem"));
    problem_->setWordWrap(true);
    problem_->setTextInteractionFlags(Qt::TextSelectableByMouse);
    problem_->hide();
    column->addWidget(problem_);

    refresh_.setInterval(kRefresh);
    connect(&refresh_, &QTimer::timeout, model_, &ProcessModel::refresh);
    connect(model_, &ProcessModel::refreshed, this, [this] {
        const int meant = model_->rowOf(std::exchange(meant_, QString()));
        if (meant >= 0 && !selected()) table_->selectRow(meant);
        none_->setText(
            tr("No process has PyTorch loaded. Start your training: it will appear here."));
        emit selectionChanged();
    });
    connect(model_, &ProcessModel::failed, this,
            [this](const QString& what) { showProblem(what, {}); });
    update();
}

QWidget* TrainingChooser::makeList() {
    table_ = new QTableView;
    table_->setObjectName(QStringLiteral("processes"));
    table_->setModel(model_);
    table_->setSelectionBehavior(QAbstractItemView::SelectRows);
    table_->setSelectionMode(QAbstractItemView::SingleSelection);
    table_->setShowGrid(false);
    table_->setTabKeyNavigation(false);  // Tab goes on, the arrows go from row to row
    table_->setWordWrap(false);
    table_->setTextElideMode(Qt::ElideLeft);  // the script stands at the end
    table_->verticalHeader()->hide();
    table_->verticalHeader()->setDefaultSectionSize(30);
    table_->horizontalHeader()->setHighlightSections(false);
    table_->horizontalHeader()->setSectionResizeMode(ProcessModel::Command, QHeaderView::Stretch);
    table_->setColumnWidth(ProcessModel::Pid, kPidWidth);
    table_->setColumnWidth(ProcessModel::Folder, kFolderWidth);
    table_->setColumnWidth(ProcessModel::Memory, kNumberWidth);
    table_->setColumnWidth(ProcessModel::Age, kNumberWidth);
    table_->setColumnWidth(ProcessModel::State, kStateWidth);
    connect(model_, &ProcessModel::leaves, this, [this](qint64 pid) {
        // Its neighbour is not what was meant.
        if (const auto chosen = selected(); chosen && chosen->pid == pid) choose(QString());
    });
    none_ = new QLabel(tr("Looking for training processes…"));
    none_->setObjectName(QStringLiteral("muted"));
    none_->setAlignment(Qt::AlignCenter);
    auto* frame = new QFrame;
    frame->setObjectName(QStringLiteral("listFrame"));
    auto* stack = new QStackedLayout(frame);
    stack->setContentsMargins(1, 1, 1, 1);
    stack->addWidget(none_);
    stack->addWidget(table_);
    connect(table_, &QTableView::doubleClicked, this, &TrainingChooser::attachRequested);
    connect(table_->selectionModel(), &QItemSelectionModel::currentRowChanged, this, [this] {
        if (free_) clearProblem();
        emit selectionChanged();
    });
    const auto choose = [this, stack] {
        const int shown = model_->rowCount() > 0 ? 1 : 0;
        const bool other = shown != stack->currentIndex();
        stack->setCurrentIndex(shown);
        if (other && !command_->isModified()) table_->setFocus();
    };
    connect(model_, &ProcessModel::rowsInserted, this, choose);
    connect(model_, &ProcessModel::rowsRemoved, this, choose);
    return frame;
}

QLayout* TrainingChooser::makeCommand(const QString& start) {
    command_ = new QLineEdit;
    command_->setObjectName(QStringLiteral("command"));
    command_->setPlaceholderText(QStringLiteral("python3 train.py --batch-size 64"));
    command_->setClearButtonEnabled(true);
    command_->setToolTip(tr("It is started in %1").arg(QDir::currentPath()));
    start_ = new QPushButton(start);
    start_->setObjectName(QStringLiteral("start"));
    start_->setAutoDefault(false);
    auto* row = new QHBoxLayout;
    row->addWidget(command_, 1);
    row->addWidget(start_);
    connect(command_, &QLineEdit::textChanged, this, &TrainingChooser::update);
    connect(command_, &QLineEdit::returnPressed, this, [this] {
        if (start_->isEnabled()) emit startRequested();
    });
    connect(start_, &QPushButton::clicked, this, &TrainingChooser::startRequested);
    return row;
}

std::optional<TrainingProcess> TrainingChooser::selected() const {
    const QModelIndex row = table_->currentIndex();
    return row.isValid() ? std::optional(model_->at(row.row())) : std::nullopt;
}

void TrainingChooser::choose(const QString& command) {
    meant_ = command;
    table_->clearSelection();
    table_->setCurrentIndex({});
}

void TrainingChooser::addBelowCommand(QWidget* options) {
    auto* column = static_cast<QVBoxLayout*>(layout());
    column->insertWidget(column->indexOf(problem_), options);
}

void TrainingChooser::setFree(bool free) {
    free_ = free;
    update();
}

void TrainingChooser::showProblem(const QString& what, const QString& hint) {
    problem_->setVisible(!what.isEmpty());
    problem_->setText(
        QStringLiteral("<span style='color:%1'>%2</span>%3")
            .arg(theme().alert.name(), what.toHtmlEscaped(),
                 hint.isEmpty() ? QString() : QStringLiteral("<br>") + hint.toHtmlEscaped()));
}

void TrainingChooser::update() {
    start_->setEnabled(free_ && !command_->text().trimmed().isEmpty());
}

void TrainingChooser::showEvent(QShowEvent* event) {
    QWidget::showEvent(event);
    model_->refresh();
    refresh_.start();
    table_->setFocus();
}

void TrainingChooser::hideEvent(QHideEvent* event) {
    QWidget::hideEvent(event);
    refresh_.stop();
}

}  // namespace hw::viewer
