// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/panels/compare_panel.h"

#include <QHBoxLayout>
#include <QHeaderView>
#include <QPainter>
#include <QStyledItemDelegate>
#include <QVBoxLayout>

#include "viewer/plots/planner_style.h"
#include "viewer/plots/theme.h"

namespace hw::viewer {
namespace {

constexpr int kCellPixels = 12;  // as the style sheet has them
constexpr int kMargin = 14, kBetweenFigures = 22, kSwatch = 40, kRow = 32;

// The row of the plan on the timeline is tinted, selected or not; every planner has the line of its
// curve beside its name.
class RowDelegate : public QStyledItemDelegate {
public:
    using QStyledItemDelegate::QStyledItemDelegate;

    QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override {
        return {QStyledItemDelegate::sizeHint(option, index).width(), kRow};
    }
    void paint(QPainter* painter, const QStyleOptionViewItem& option,
               const QModelIndex& index) const override {
        if (index.data(CompareModel::kActiveRole).toBool()) {
            QColor tint = theme().accent;
            tint.setAlphaF(theme().light ? 0.14F : 0.24F);
            painter->fillRect(option.rect, tint);
        }
        QStyleOptionViewItem text(option);
        if (index.column() == CompareModel::Planner) {
            const QRect swatch(option.rect.left() + 8, option.rect.top(), kSwatch,
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
        "<p>Every planner at the budget, predicted beside measured, all under one judge. The gap "
        "is to the proven lower bound.</p><p>A click draws a plan; <b>Ctrl+Enter</b> runs it and "
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
    table_->setLeading(CompareModel::Planner, kSwatch + 8);
    table_->setDispensable({CompareModel::Budget, CompareModel::PlanningTime});
    table_->setSelectionMode(QAbstractItemView::SingleSelection);
    auto* column = new QVBoxLayout(this);
    addToHeader(table_->filterBox());
    column->setContentsMargins(0, 10, 0, 0);
    column->setSpacing(8);
    strip_ = makeFigures();
    empty_ = makeNote();
    empty_->setText(noStep());
    column->addWidget(strip_);
    column->addWidget(table_, 1);
    column->addWidget(empty_, 1);
    setFocusProxy(table_);
    const auto pick = [this](const QModelIndex& index) {
        this->workspace().choose(model_->planAt(table_->sourceOf(index).row()));
    };
    connect(table_, &TableView::clicked, this, pick);
    connect(table_, &TableView::activated, this, pick);
    connect(&workspace, &Workspace::documentChanged, this, &ComparePanel::updateFigures);
    connect(&workspace, &Workspace::activePlanChanged, this, &ComparePanel::updateFigures);
    connect(&workspace, &Workspace::plansChanged, this, &ComparePanel::updateFigures);
    connect(model_, &QAbstractItemModel::dataChanged, table_, &TableView::fitColumns);
    updateFigures();
}

void ComparePanel::fitFigures() {
    int size = kFigurePixels;
    const auto needed = [&] {
        const QFontMetrics metrics(uiFont(size, true));
        int width = 2 * kMargin + 3 * kBetweenFigures;
        for (const QLabel* figure : figures_)
            width += metrics.horizontalAdvance(figure->text()) + 2;
        return width;
    };
    while (size > kCellPixels && needed() > width()) --size;
    for (QLabel* figure : figures_)
        figure->setStyleSheet(QStringLiteral("font-size: %1px").arg(size));
}

void ComparePanel::resizeEvent(QResizeEvent* event) {
    Panel::resizeEvent(event);
    fitFigures();
}

QWidget* ComparePanel::makeFigures() {
    auto* strip = new QWidget;
    auto* row = new QHBoxLayout(strip);
    row->setContentsMargins(kMargin, 0, kMargin, 0);
    row->setSpacing(kBetweenFigures);
    const std::array<QString, 4> names{tr("peak"), tr("step time"), tr("recomputed"),
                                       tr("from optimal")};
    for (std::size_t i = 0; i < names.size(); ++i) {
        auto* cell = new QVBoxLayout;
        cell->setSpacing(0);
        auto* name = new QLabel(names[i]);
        name->setObjectName(QStringLiteral("figureLabel"));
        figures_[i] = new QLabel;
        figures_[i]->setObjectName(QStringLiteral("figure"));
        figures_[i]->setMinimumWidth(40);
        figures_[i]->setMinimumHeight(QFontMetrics(uiFont(kFigurePixels, true)).height() + 2);
        cell->addWidget(name);
        cell->addWidget(figures_[i]);
        row->addLayout(cell);
    }
    row->addStretch(1);
    return strip;
}

void ComparePanel::updateFigures() {
    writeFigures();
    fitFigures();
}

void ComparePanel::writeFigures() {
    const DocumentPointer& document = workspace().document();
    const PlanPointer& plan = workspace().activePlan();
    const bool plannable = !document || document->plannable;
    strip_->setVisible(plannable);
    table_->setVisible(plannable);
    empty_->setVisible(!plannable);
    if (!document) {
        for (QLabel* figure : figures_) figure->setText(QStringLiteral("—"));
        return;
    }
    const SizeUnit& size = document->size;
    const TimeFormat& time = document->time;
    if (!plan) {
        figures_[0]->setText(size.text(document->peak()));
        figures_[1]->setText(time.text(document->judged.time));
        const bool possible = workspace().budget() >= document->floor;
        figures_[2]->setText(possible ? tr("no plan yet") : tr("no plan fits"));
        figures_[3]->setText(QStringLiteral("—"));
        return;
    }
    figures_[0]->setText(size.number(document->peak()) + QStringLiteral(" → ") +
                         size.text(plan->peak));
    figures_[1]->setText(time.number(document->judged.time) + QStringLiteral(" → ") +
                         time.text(plan->time));
    figures_[2]->setText(
        tr("%1 of %2 ops").arg(plan->recomputedOps).arg(document->graph.ops.size()));
    const std::optional<double> gap = workspace().gap(plan);
    figures_[3]->setText(gap ? QStringLiteral("≤ ") + percentText(*gap, 2) : tr("no bound yet"));
}

void ComparePanel::applyTheme() {
    table_->viewport()->update();
}

int ComparePanel::naturalHeight() const {
    constexpr int kFigures = 90, kMargin = 24;
    if (!empty_->isHidden()) return 240;
    return kFigures + table_->header()->sizeHint().height() + table_->shown().rowCount() * kRow +
           kMargin;
}

core::Status ComparePanel::prepareShot(const std::vector<std::string>&) {
    table_->filterBox()->hide();  // nothing to type in a picture
    return workspace().planNow();
}

}  // namespace hw::viewer
