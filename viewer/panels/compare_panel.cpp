// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/panels/compare_panel.h"

#include <QHeaderView>
#include <QPainter>
#include <QStyledItemDelegate>
#include <QVBoxLayout>
#include <algorithm>
#include <utility>

#include "viewer/plots/planner_style.h"
#include "viewer/plots/theme.h"

namespace hw::viewer {
namespace {

constexpr int kCompareSwatch = 40, kCompareRow = 32;
constexpr int kAbove = 10, kBetween = 8;
constexpr int kRowsFirst = 2;  // of the table, before there are figures above it

// The row of the plan on the timeline is tinted, selected or not; every planner has the line of its
// curve beside its name.
class RowDelegate : public QStyledItemDelegate {
public:
    using QStyledItemDelegate::QStyledItemDelegate;

    QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override {
        return {QStyledItemDelegate::sizeHint(option, index).width(), kCompareRow};
    }
    void paint(QPainter* painter, const QStyleOptionViewItem& option,
               const QModelIndex& index) const override {
        if (index.data(CompareModel::kActiveRole).toBool()) {
            QColor tint = theme().accent;
            tint.setAlphaF(theme().light ? 0.14F : 0.24F);
            painter->fillRect(option.rect, tint);
        }
        QStyleOptionViewItem text(option);
        if (index.data(CompareModel::kOtherBudgetRole).toBool())
            text.palette.setColor(QPalette::Text, theme().muted);
        if (index.column() == CompareModel::Planner) {
            const QRect swatch(option.rect.left() + 8, option.rect.top(), kCompareSwatch,
                               option.rect.height());
            drawPlannerSwatch(painter, swatch, index.data().toString());
            text.rect.setLeft(swatch.right());
            painter->setPen(theme().grid);
            painter->drawLine(option.rect.bottomLeft(), option.rect.bottomRight());
        }
        QStyledItemDelegate::paint(painter, text, index);
    }
};

}  // namespace

const PanelKind ComparePanel::kKind{
    .name = "compare",
    .title = "Compare",
    .help =
        "<p>Every planner at the budget, predicted beside measured, all under one judge; below "
        "them, muted, plans that were kept for other budgets. The gap is to the proven lower "
        "bound.</p><p>A click draws a plan; <b>Ctrl+Enter</b> runs it and "
        "compares every result, <b>Ctrl+E</b> writes it to a file.</p>",
    .area = PanelArea::LowerRight,
    .make = makePanel<ComparePanel>,
    .needsStep = true,
    .everyPlanner = true,
    .tourTitle = "Which plan",
    .tourText =
        "All planners at this budget under one judge. <b>Ctrl+E</b> exports the plan, "
        "<b>Ctrl+Enter</b> runs it and compares every result."};

ComparePanel::ComparePanel(Workspace& workspace) : Panel(workspace, kKind) {
    model_ = new CompareModel(workspace, this);
    table_ = new TableView(model_);
    table_->setItemDelegate(new RowDelegate(table_));
    table_->setLeading(CompareModel::Planner, kCompareSwatch + 8);
    table_->setSelectionMode(QAbstractItemView::SingleSelection);
    auto* column = new QVBoxLayout(this);
    budget_ = new QLabel;
    budget_->setObjectName(QStringLiteral("muted"));
    budget_->hide();
    addToHeader(budget_);
    addToHeader(table_->filterBox());
    column->setContentsMargins(0, kAbove, 0, 0);
    column->setSpacing(kBetween);
    figures_ = new FigureStrip({tr("peak"), tr("step time"), tr("recomputed"), tr("from optimal")});
    empty_ = makeNote();
    empty_->setText(noStep());
    outcome_ = new QLabel;
    outcome_->setObjectName(QStringLiteral("runOutcome"));
    outcome_->setContentsMargins(14, 0, 14, 0);
    outcome_->setWordWrap(true);
    column->addWidget(figures_);
    column->addWidget(outcome_);
    column->addWidget(table_, 1);
    column->addWidget(empty_, 1);
    setFocusProxy(table_);
    const auto pick = [this](const QModelIndex& index) {
        this->workspace().choose(model_->planAt(table_->sourceOf(index).row()));
    };
    connect(table_, &TableView::clicked, this, pick);
    connect(table_, &TableView::activated, this, pick);
    connect(&workspace, &Workspace::documentChanged, this, &ComparePanel::updateFigures);
    connect(&workspace.active(), &ActivePlan::planChanged, this, &ComparePanel::updateFigures);
    connect(&workspace, &Workspace::plansChanged, this, &ComparePanel::updateFigures);
    connect(model_, &QAbstractItemModel::dataChanged, table_, &TableView::fitColumns);
    updateFigures();
}

// Nothing was measured until a plan has run. Where not all columns fit, the planner, the peak and
// the extra time stay, and the budget if there is more than one.
void ComparePanel::chooseColumns() {
    bool measured = false, budgets = false;
    for (int row = 0; row < model_->rowCount(); ++row) {
        measured = measured || (model_->planAt(row) && model_->planAt(row)->measuredPeak);
        budgets = budgets || model_->index(row, 0).data(CompareModel::kOtherBudgetRole).toBool();
    }
    QList<int> dispensable{CompareModel::PlanningTime, CompareModel::Gap};
    if (measured)
        dispensable << CompareModel::Results << CompareModel::MeasuredPeak
                    << CompareModel::MeasuredOverhead;
    if (!budgets) dispensable << CompareModel::Budget;
    for (const auto column :
         {CompareModel::MeasuredPeak, CompareModel::MeasuredOverhead, CompareModel::Results})
        table_->setColumnHidden(column, !measured);
    table_->setColumnHidden(CompareModel::Budget, false);
    table_->setDispensable(dispensable);
    table_->fitColumns();
}

// A low view is for the table: its rows say the same and more.
void ComparePanel::placeFigures() {
    const int rows = table_->header()->sizeHint().height() +
                     std::min(kRowsFirst, table_->shown().rowCount()) * kCompareRow;
    int room = height() - kAbove - rows;
    const auto place = [&](QWidget* part, bool wanted, int needed) {
        const bool fits = wanted && !table_->isHidden() && needed + kBetween <= room;
        if (fits) room -= needed + kBetween;
        part->setVisible(fits);
    };
    place(figures_, true, figures_->heightWithin(width()));
    place(outcome_, !outcome_->text().isEmpty(), outcome_->heightForWidth(width()));
}

QSize ComparePanel::minimumSizeHint() const {
    return {200, 90};
}

void ComparePanel::resizeEvent(QResizeEvent* event) {
    Panel::resizeEvent(event);
    placeFigures();
    // Once the table has its place.
    QMetaObject::invokeMethod(this, &ComparePanel::showDrawn, Qt::QueuedConnection);
}

// The row of the plan that is drawn.
void ComparePanel::showDrawn() {
    if (const int row = model_->activeRow(); row >= 0)
        table_->scrollTo(table_->shown().mapFromSource(model_->index(row, 0)));
}

// The slider and the field that show the budget are in another view.
void ComparePanel::hideControls() {
    Panel::hideControls();
    const DocumentPointer& document = workspace().document();
    if (!document || !document->plannable) return;
    budget_->setText(tr("budget %1 · %2")
                         .arg(document->size.text(workspace().budget()),
                              percentText(workspace().budgetRatio())));
    budget_->show();
}

void ComparePanel::updateFigures() {
    chooseColumns();
    const DocumentPointer& document = workspace().document();
    const bool plannable = !document || document->plannable;
    table_->setVisible(plannable);
    empty_->setVisible(!plannable);
    figures_->setFigures(figures());
    outcome_->setText(outcomeText());
    placeFigures();
    if (const int row = model_->activeRow(); row != std::exchange(seenRow_, row)) showDrawn();
}

void ComparePanel::setRunner(const QString& text, bool runs) {
    runner_ = text;
    runs_ = runs;
    updateFigures();
}

QString ComparePanel::runnerText() const {
    if (runner_.isEmpty()) return {};
    if (runs_) return tr("not run yet · Ctrl+Enter runs it with %1").arg(runner_.toHtmlEscaped());
    return QStringLiteral("<span style='color:%1'>%2</span> %3")
        .arg(theme().alert.name(), tr("cannot run here:"), runner_.toHtmlEscaped());
}

// What came of the latest run of the plan that is drawn.
QString ComparePanel::outcomeText() const {
    const DocumentPointer& document = workspace().document();
    const PlanPointer& plan = workspace().active().plan();
    if (!document || !isPlanned(plan)) return {};
    if (!plan->measuredPeak) return runnerText();
    const SizeUnit& size = document->size;
    QStringList parts{tr("measured: peak %1").arg(size.text(*plan->measuredPeak))};
    parts.front() += *plan->measuredPeak == plan->peak
                         ? tr(" as predicted")
                         : tr(" (predicted %1)").arg(size.text(plan->peak));
    if (plan->measuredOverhead)
        parts << tr("%1 step time (predicted %2)")
                     .arg(overheadText(*plan->measuredOverhead), overheadText(plan->overhead));
    if (plan->outputsCompared > 0)
        parts << (plan->outputsDifferent == 0
                      ? tr("all %1 results identical").arg(plan->outputsCompared)
                      : QStringLiteral("<span style='color:%1'>%2</span>")
                            .arg(theme().alert.name(), tr("%1 of %2 results differ")
                                                           .arg(plan->outputsDifferent)
                                                           .arg(plan->outputsCompared)));
    return QStringLiteral("<span style='color:%1'>●</span> ").arg(theme().accent.name()) +
           parts.join(QStringLiteral(" · "));
}

QStringList ComparePanel::figures() const {
    const DocumentPointer& document = workspace().document();
    const PlanPointer& plan = workspace().active().plan();
    const QString unknown = QStringLiteral("—");
    if (!document) return {unknown, unknown, unknown, unknown};
    const SizeUnit& size = document->size;
    const TimeFormat& time = document->time;
    if (!plan) {
        const bool possible = workspace().budget() >= document->floor;
        return {size.text(document->peak()), time.text(document->judged.time),
                possible ? tr("no plan yet") : tr("no plan fits"), unknown};
    }
    const QString arrow = QStringLiteral(" → ");
    const std::optional<double> gap = workspace().plans().gap(plan);
    return {size.number(document->peak()) + arrow + size.text(plan->peak),
            time.number(document->judged.time) + arrow + time.text(plan->time),
            tr("%1 of %2 ops").arg(plan->recomputedOps).arg(document->graph.ops.size()),
            gap ? QStringLiteral("≤ ") + percentText(*gap, 2) : tr("no bound yet")};
}

void ComparePanel::applyTheme() {
    updateFigures();
    table_->viewport()->update();
}

int ComparePanel::naturalHeight() const {
    constexpr int kMargin = 24;
    if (!empty_->isHidden()) return 240;
    const int outcome =
        outcome_->text().isEmpty() ? 0 : outcome_->heightForWidth(width()) + kBetween;
    return kAbove + figures_->heightWithin(width()) + kBetween + outcome +
           table_->header()->sizeHint().height() + table_->shown().rowCount() * kCompareRow +
           kMargin;
}

core::Status ComparePanel::compute() {
    return workspace().planNow();
}

}  // namespace hw::viewer
