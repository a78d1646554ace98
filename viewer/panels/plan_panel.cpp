// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/panels/plan_panel.h"

#include <QVBoxLayout>
#include <algorithm>

#include "viewer/panels/eliding_label.h"
#include "viewer/plots/theme.h"

namespace hw::viewer {
namespace {
constexpr int kOpenAtFirst = 3;  // layers whose ops are shown without a click

// "highwater at 60 % · peak 14.58 MB (measured 14.58 MB) · +7.2 % (measured +6.9 %) · …"
QString summaryOf(const Document& document, const PlanEntry& plan) {
    const auto beside = [](const QString& predicted, const QString& measured) {
        return measured.isEmpty() ? predicted
                                  : PlanPanel::tr("%1 (measured %2)").arg(predicted, measured);
    };
    const QString peak = plan.measuredPeak ? document.size.text(*plan.measuredPeak) : QString();
    const QString extra = plan.measuredOverhead ? overheadText(*plan.measuredOverhead) : QString();
    QStringList parts{PlanPanel::tr("%1 at %2")
                          .arg(plan.planner, percentText(ratio(plan.budget, document.peak()))),
                      PlanPanel::tr("peak %1").arg(beside(document.size.text(plan.peak), peak)),
                      beside(overheadText(plan.overhead), extra),
                      PlanPanel::tr("%1 ops recomputed").arg(plan.recomputedOps)};
    if (!plan.chosen.empty())
        parts << PlanPanel::tr("%1 run otherwise").arg(plan.chosen.implementations.size());
    return parts.join(QStringLiteral(" · "));
}
}  // namespace

const PanelKind PlanPanel::kKind{
    .name = "plan",
    .title = "Plan",
    .help =
        "<p>What the plan that is drawn recomputes or frees early, by layer, each with its reason "
        "and with the bytes that the peak does without.</p>",
    .area = PanelArea::LowerRight,
    .make = makePanel<PlanPanel>,
    .needsStep = true};

PlanPanel::PlanPanel(Workspace& workspace) : Panel(workspace, kKind) {
    model_ = new PlanModel(this);
    table_ = new TableView(model_, PlanModel::Why);
    table_->setRootIsDecorated(true);
    table_->setTextElideMode(Qt::ElideRight);
    // The reasons need the room more than the finer figures do.
    table_->setDispensable({PlanModel::Freed, PlanModel::Saved});
    summary_ = new ElidingLabel;
    summary_->setObjectName(QStringLiteral("muted"));
    empty_ = makeNote();
    addToHeader(summary_);
    addToHeader(table_->filterBox());
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->addWidget(table_, 1);
    column->addWidget(empty_, 1);
    setFocusProxy(table_);
    connect(&workspace, &Workspace::documentChanged, this, &PlanPanel::reload);
    connect(&workspace.active(), &ActivePlan::planChanged, this, &PlanPanel::reload);
    connect(&workspace.active(), &ActivePlan::changesFound, this, &PlanPanel::reload);
    connect(&workspace.selection(), &SelectionModel::selectionChanged, this,
            &PlanPanel::updateSelection);
    connect(table_, &TableView::picked, this, [this](const QModelIndex& index) {
        const PlanChange* change = model_->change(index);
        if (!change) return this->workspace().selection().selectLayer(model_->layer(index));
        if (change->evictions.empty()) return this->workspace().selection().selectOp(change->op);
        this->workspace().selection().selectStorage(change->evictions.front().storage);
    });
    showPlan();
}

void PlanPanel::reload() {
    stale_ = true;
    if (isVisible()) showPlan();
}

void PlanPanel::showEvent(QShowEvent* event) {
    Panel::showEvent(event);
    if (stale_) showPlan();
}

void PlanPanel::showPlan() {
    stale_ = false;
    const DocumentPointer& document = workspace().document();
    const PlanPointer& plan = workspace().active().plan();
    const InspectedPlan inspected = workspace().active().inspected();
    model_->setPlan(document, inspected);
    const bool any = model_->rowCount() > 0;
    table_->setVisible(any);
    empty_->setVisible(!any);
    summary_->clear();
    if (!document || !plan) {
        empty_->setText(document && !document->plannable
                            ? noStep()
                            : tr("No plan is chosen.\nMove the budget in What if, click a plan in "
                                 "Compare, or give a plan file with --plan."));
        return;
    }
    if (isPlanned(plan) && !inspected.plan)
        return empty_->setText(tr("What the plan does is being found."));
    empty_->setText(
        tr("This plan computes every op once and frees as the recorded step does: there "
           "is nothing to explain."));
    summary_->setText(summaryOf(*document, *plan));
    table_->setColumnHidden(PlanModel::Measured, !model_->measured());
    for (int row = 0; row < std::min(kOpenAtFirst, table_->shown().rowCount()); ++row)
        table_->expand(table_->shown().index(row, 0));
    table_->fitColumns();
    updateSelection();
}

void PlanPanel::updateSelection() {
    if (stale_) return;
    const core::OpIndex op = workspace().selection().op();
    const QModelIndex found = model_->indexOf(op);
    // A layer's own row stays marked while its layer is.
    const QModelIndex current = table_->sourceOf(table_->currentIndex());
    if (!found.isValid() || (current.isValid() && !model_->change(current) &&
                             model_->layer(current) == workspace().selection().current().layer &&
                             workspace().selection().current().storage == core::kNone))
        return;
    table_->mark(found);
}

int PlanPanel::naturalHeight() const {
    int rows = 0;
    for (int row = 0; row < model_->rowCount(); ++row)
        rows += 1 + (row < kOpenAtFirst ? model_->rowCount(model_->index(row, 0)) : 0);
    return empty_->isHidden() ? std::clamp(60 + rows * table_->rowHeightHint(), 300, 900) : 240;
}

core::Status PlanPanel::compute() {
    return workspace().active().plan() ? core::Status() : workspace().planNow();
}

core::Status PlanPanel::prepareShot(const std::vector<std::string>&) {
    workspace().active().changesNow();
    showPlan();
    return {};
}

}  // namespace hw::viewer
