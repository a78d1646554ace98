// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/panels/empty_state.h"

#include <QPushButton>
#include <QVBoxLayout>

#include "viewer/plots/theme.h"

namespace hw::viewer {
namespace {

QLabel* label(const QString& text, const char* name) {
    auto* made = new QLabel(text);
    made->setObjectName(QLatin1String(name));
    made->setTextInteractionFlags(Qt::TextSelectableByMouse);
    made->setAlignment(Qt::AlignLeft | Qt::AlignVCenter);
    return made;
}

}  // namespace

EmptyState::EmptyState(QWidget* parent) : QWidget(parent) {
    setAttribute(Qt::WA_StyledBackground);
    auto* page = new QHBoxLayout(this);
    auto* column = new QVBoxLayout;
    column->setSpacing(8);
    page->addStretch(1);
    page->addLayout(column);
    page->addStretch(1);
    column->addStretch(2);
    column->addWidget(label(tr("See where the memory of a training step goes"), "headline"));
    problem_ = label({}, "problem");
    problem_->setWordWrap(true);
    problem_->setMaximumWidth(640);
    problem_->hide();
    column->addWidget(problem_);
    column->addSpacing(12);
    column->addWidget(label(
        tr("Attach to a training run that is under way, or start one, within a budget if need be:"),
        "muted"));
    auto* record = new QPushButton(tr("Record a training run…  Ctrl+R"));
    record->setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Fixed);
    column->addWidget(record);
    connect(record, &QPushButton::clicked, this, &EmptyState::recordRequested);
    column->addSpacing(8);
    column->addWidget(
        label(tr("On a machine without a screen, record a script, unchanged:"), "muted"));
    column->addWidget(
        label(QStringLiteral("highwater record -o run.hws -- python3 train.py"), "command"));
    column->addSpacing(8);
    column->addWidget(label(tr("Or import a log that another tool wrote:"), "muted"));
    column->addWidget(label(QStringLiteral("highwater import step.log.gz -o run.hws"), "command"));
    column->addSpacing(8);
    column->addWidget(
        label(tr("Then open the session here, or drop the file on this window:"), "muted"));
    auto* open = new QPushButton(tr("Open a session…  Ctrl+O"));
    open->setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Fixed);
    column->addWidget(open);
    column->addSpacing(8);
    column->addWidget(label(tr("Or look around in a session that comes with Highwater:"), "muted"));
    auto* sample = new QPushButton(tr("Open the sample session"));
    sample->setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Fixed);
    column->addWidget(sample);
    connect(sample, &QPushButton::clicked, this, &EmptyState::sampleRequested);
    column->addStretch(3);
    connect(open, &QPushButton::clicked, this, &EmptyState::openRequested);
}

void EmptyState::setProblem(const QString& what, const QString& hint) {
    problem_->setVisible(!what.isEmpty());
    problem_->setText(
        QStringLiteral("<span style='color:%1'>%2</span>%3")
            .arg(theme().alert.name(), what.toHtmlEscaped(),
                 hint.isEmpty() ? QString() : QStringLiteral("<br>") + hint.toHtmlEscaped()));
}

}  // namespace hw::viewer
