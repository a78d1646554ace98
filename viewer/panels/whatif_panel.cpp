// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/panels/whatif_panel.h"

#include <QKeyEvent>
#include <QVBoxLayout>
#include <algorithm>

#include "viewer/plots/theme.h"

namespace hw::viewer {

const PanelKind WhatIfPanel::kKind{
    .name = "whatif",
    .title = "What if",
    .help =
        "<p>What a budget costs: extra step time of each planner over the budget. Below the dashed "
        "line no plan can be, left of the red edge nothing fits.</p><p>Move the budget with the "
        "slider, or <b>B</b> and the arrows, or type it exactly into the field above "
        "(15623456, 14.9 MB, 4GiB, 62.5 %): the cheapest known plan that fits is drawn at once, "
        "better ones replace it as they are found. A click on a point draws that plan.</p>",
    .area = PanelArea::LowerLeft,
    .make = makePanel<WhatIfPanel>,
    .needsStep = true,
    .tourTitle = "What fitting costs",
    .tourText =
        "Move the slider: the white line in the timeline is the cheapest plan that fits, each "
        "curve here is a planner."};

WhatIfPanel::WhatIfPanel(Workspace& workspace) : Panel(workspace, kKind) {
    settle_.setSingleShot(true);
    settle_.setInterval(120);
    redraw_.setSingleShot(true);
    redraw_.setInterval(30);
    build();
    connectControls();
    connectWorkspace();
    reload();
}

void WhatIfPanel::build() {
    figure_ = new BudgetField;
    note_ = new ElidingLabel;
    note_->setObjectName(QStringLiteral("muted"));
    addToHeader(note_);
    addToHeader(figure_);
    planners_ = new PlannerMenu(workspace());
    addToHeader(planners_);
    slider_ = new BudgetSlider;
    sliderRow_ = new QWidget;
    auto* row = new QHBoxLayout(sliderRow_);
    row->setContentsMargins(0, 0, 0, 0);
    row->addWidget(slider_);
    progress_ = new QProgressBar;
    progress_->setTextVisible(false);
    QSizePolicy keep = progress_->sizePolicy();
    keep.setRetainSizeWhenHidden(true);  // the plot must not jump when planning starts and ends
    progress_->setSizePolicy(keep);
    progress_->hide();
    plot_ = new FrontierPlot(workspace());
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 8, 0, 6);
    column->setSpacing(4);
    column->addWidget(sliderRow_);
    column->addWidget(progress_);
    column->addWidget(plot_, 1);
    empty_ = makeNote();
    empty_->setText(noStep());
    column->addWidget(empty_, 1);
    setFocusProxy(slider_);
}

void WhatIfPanel::connectControls() {
    connect(slider_, &QSlider::valueChanged, this, [this] {
        settle_.start();
        updateBudget();
        workspace().previewBudget(slider_->ratio());
    });
    connect(&settle_, &QTimer::timeout, this,
            [this] { workspace().setBudgetRatio(slider_->ratio()); });
    connect(&redraw_, &QTimer::timeout, plot_, &FrontierPlot::reload);
    connect(figure_, &BudgetField::entered, &workspace(), &Workspace::setBudget);
    connect(plot_, &FrontierPlot::planClicked, &workspace(), &Workspace::choose);
    connect(plot_, &FrontierPlot::budgetClicked, slider_, &BudgetSlider::setRatio);
}

void WhatIfPanel::connectWorkspace() {
    Workspace& shown = workspace();
    connect(&shown, &Workspace::documentChanged, this, &WhatIfPanel::reload);
    connect(&shown, &Workspace::plansChanged, this, [this] {
        updateBudget();
        redraw_.start();
    });
    connect(&shown, &Workspace::answersChanged, this, &WhatIfPanel::updateBudget);
    connect(&shown.active(), &ActivePlan::planChanged, this, [this] { redraw_.start(); });
    connect(&shown, &Workspace::budgetChanged, this, [this] {
        const QSignalBlocker quiet(slider_);
        settle_.stop();
        slider_->setRatio(workspace().budgetRatio());
        updateBudget();
        redraw_.start();
    });
    connect(&shown, &Workspace::busyChanged, this, [this](int pending) {
        mostPending_ = pending == 0 ? 0 : std::max(mostPending_, pending);
        progress_->setVisible(pending > 0);
        progress_->setRange(0, std::max(1, mostPending_));
        progress_->setValue(mostPending_ - pending);
    });
}

void WhatIfPanel::reload() {
    const QSignalBlocker quiet(slider_);
    const bool plannable = !workspace().document() || workspace().document()->plannable;
    for (QWidget* part :
         std::initializer_list<QWidget*>{sliderRow_, plot_, planners_, figure_, note_})
        part->setVisible(plannable);
    empty_->setVisible(!plannable);
    slider_->setEnabled(workspace().document() != nullptr);
    plot_->reload();
    slider_->setRatioRange(plot_->lowestRatio(), plot_->highestRatio());
    slider_->setRatio(workspace().budgetRatio());
    updateBudget();
    alignSlider();
}

void WhatIfPanel::updateBudget() {
    const DocumentPointer& document = workspace().document();
    if (!document) return figure_->forget();
    const bool moving = settle_.isActive();
    const double ratio = moving ? slider_->ratio() : workspace().budgetRatio();
    const core::Bytes budget = moving ? core::Bytes(static_cast<std::int64_t>(
                                            static_cast<double>(document->peak().count()) * ratio))
                                      : workspace().budget();
    figure_->show(budget, document->peak(), document->size);
    noteOn(budget);
}

// What is known of a budget, at every move.
void WhatIfPanel::noteOn(core::Bytes budget) {
    const Document& document = *workspace().document();
    const Answer answer = workspace().plans().answer(budget);
    note_->setAlert(answer.kind != Answer::Kind::Fits);
    switch (answer.kind) {
        case Answer::Kind::Infeasible:
            return note_->setText(
                answer.plan ? tr("nothing fits into %1, proven")
                                  .arg(document.size.text(answer.plan->budget))
                            : tr("nothing fits below %1").arg(document.size.text(document.floor)));
        case Answer::Kind::Nearest:
            return note_->setText(answer.plan ? tr("no plan yet, the nearest needs %1")
                                                    .arg(document.size.text(answer.plan->peak))
                                              : tr("no plan yet"));
        case Answer::Kind::Fits:
            break;
    }
    note_->setText(tr("budget"));
}

void WhatIfPanel::applyTheme() {
    plot_->applyTheme();
    planners_->applyTheme();
    updateBudget();
}

core::Status WhatIfPanel::compute() {
    if (core::Status done = workspace().planNow(); !done) return done;
    if (core::Status done = workspace().frontierNow(); !done) return done;
    plot_->reload();
    return {};
}

// The field and the slider that show the budget are gone.
void WhatIfPanel::hideControls() {
    Panel::hideControls();
    sliderRow_->hide();
    QSizePolicy gone = progress_->sizePolicy();
    gone.setRetainSizeWhenHidden(false);
    progress_->setSizePolicy(gone);
    if (workspace().document()) note_->setText(tr("budget %1").arg(figure_->text()));
}

void WhatIfPanel::alignSlider() {
    const int half = BudgetSlider::kHandle / 2;
    sliderRow_->layout()->setContentsMargins(plot_->axisLeft() - half, 0,
                                             std::max(0, width() - plot_->axisRight() - half), 0);
}

void WhatIfPanel::resizeEvent(QResizeEvent* event) {
    Panel::resizeEvent(event);
    plot_->resize(width(), plot_->height());  // its right end is asked for before the layout runs
    alignSlider();
}

void WhatIfPanel::keyPressEvent(QKeyEvent* event) {
    if (event->key() == Qt::Key_Escape)
        workspace().cancel();
    else
        Panel::keyPressEvent(event);
}

}  // namespace hw::viewer
