// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/panels/batch_panel.h"

#include <QFileDialog>
#include <QVBoxLayout>
#include <algorithm>

#include "core/base/parse_bytes.h"
#include "planners/registry.h"
#include "viewer/panels/file_dialog.h"
#include "viewer/plots/theme.h"

namespace hw::viewer {
namespace {

constexpr double kSeconds = 3, kBesideSeconds = 1;  // of a planner, at the budget and beside it

}  // namespace

const PanelKind BatchPanel::kKind{
    .name = "batch",
    .title = "Batch",
    .help =
        "<p>How large a batch fits: record the program twice with different batches, open one "
        "recording and <b>add</b> the other. Each planner's largest batch over the budget, and how "
        "many items a second each batch gives within the one that is set; the ring marks the most, "
        "which is not always at the largest batch.</p><p>A click on a point or a row opens the "
        "program at that batch, with the plan for it, as if it had been recorded.</p>",
    .area = PanelArea::LowerRight,
    .make = makePanel<BatchPanel>,
    .needsStep = true};

BatchPanel::BatchPanel(Workspace& workspace) : Panel(workspace, kKind) {
    makeParts();
    connectParts();
    documentChanged();
}

void BatchPanel::makeParts() {
    note_ = new QLabel;
    note_->setObjectName(QStringLiteral("muted"));
    note_->setMinimumWidth(1);
    field_ = new QLineEdit;
    field_->setAccessibleName(tr("Budget of the batch"));
    field_->setToolTip(tr("Budget, such as 24GB or 500 MiB"));
    field_->setPlaceholderText(tr("budget"));
    field_->setFixedWidth(110);
    add_ = new QToolButton;
    add_->setText(tr("Add a recording…"));
    add_->setToolTip(tr("Another recording of this program, with another batch"));
    planners_ = new PlannerMenu(workspace());
    for (QWidget* part : std::initializer_list<QWidget*>{note_, field_, add_, planners_})
        addToHeader(part);
    budgets_ = new BatchPlot(tr("budget"), tr("largest batch"));
    sizes_ = new BatchPlot(tr("batch"), tr("items a second"));
    auto* plots = new QWidget;
    auto* row = new QHBoxLayout(plots);
    row->setContentsMargins(0, 0, 0, 0);
    row->setSpacing(0);
    row->addWidget(budgets_, 1);
    row->addWidget(sizes_, 1);
    model_ = new BatchModel(this);
    table_ = new TableView(model_);
    table_->setSelectionMode(QAbstractItemView::SingleSelection);
    table_->setDispensable({BatchModel::Times, BatchModel::MostItems, BatchModel::Fastest});
    table_->setMinimumHeight(40);
    split_ = new QSplitter(Qt::Vertical);
    split_->setHandleWidth(1);
    split_->addWidget(plots);
    split_->addWidget(table_);
    split_->setSizes({600, 400});  // their shares
    empty_ = makeNote();
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->addWidget(split_, 1);
    column->addWidget(empty_, 1);
    setFocusProxy(table_);
}

void BatchPanel::connectParts() {
    connect(&workspace(), &Workspace::documentChanged, this, &BatchPanel::documentChanged);
    connect(&workspace(), &Workspace::recordsChanged, this, [this] {
        stale_ = true;
        if (isVisible()) reload();
    });
    connect(&workspace(), &Workspace::plannersChanged, this, [this] {
        studies_.clear();
        if (isVisible() && family_) study();
    });
    connect(add_, &QToolButton::clicked, this, &BatchPanel::addRecords);
    connect(field_, &QLineEdit::editingFinished, this, &BatchPanel::typed);
    connect(budgets_, &BatchPlot::placePicked, this, [this](double x) {
        const SizeUnit unit = SizeUnit::fitting(budget_);
        setBudget(core::Bytes(static_cast<std::int64_t>(x * unit.bytes)));
    });
    connect(budgets_, &BatchPlot::pointPicked, this, [this](const QString&, double x) {
        const SizeUnit unit = SizeUnit::fitting(budget_);
        setBudget(core::Bytes(static_cast<std::int64_t>(x * unit.bytes)));
    });
    connect(sizes_, &BatchPlot::pointPicked, this, [this](const QString& planner, double x) {
        openAt(planner, static_cast<std::int64_t>(x));
    });
    connect(table_, &TableView::activated, this, [this](const QModelIndex& index) {
        const planners::LargestSize& row = model_->at(table_->sourceOf(index).row());
        if (row.size) openAt(toQString(row.planner), *row.size);
    });
    connect(&queue_, &TaskQueue::pendingChanged, this, [this] { draw(); });
}

bool BatchPanel::ours(const std::string& path) const {
    return path.starts_with(made_.path().toStdString() + "/");
}

// The program at another size is still the same family.
void BatchPanel::documentChanged() {
    const DocumentPointer& document = workspace().document();
    const std::string path = document ? document->path : std::string();
    if (path == path_ || ours(path)) return;
    const bool another = !path_.empty();
    path_ = path;
    family_ = nullptr;
    studies_.clear();
    stale_ = true;
    if (another) workspace().setRecords({});
    if (isVisible()) reload();
}

void BatchPanel::showEvent(QShowEvent* event) {
    Panel::showEvent(event);
    if (stale_) reload();
}

void BatchPanel::showWhy(const QString& why) {
    split_->hide();
    note_->clear();
    field_->setEnabled(false);
    empty_->setText(why);
    empty_->show();
}

void BatchPanel::reload() {
    stale_ = false;
    queue_.cancelAll();
    family_ = nullptr;
    studies_.clear();
    const DocumentPointer& document = workspace().document();
    add_->setEnabled(document && document->plannable);
    if (!document || !document->plannable) return showWhy(noStep());
    std::vector<std::string> files{path_};
    for (const QString& record : workspace().records()) files.push_back(record.toStdString());
    showWhy(tr("Reading…"));
    queue_.submit([this, files](const TaskQueue::Cancelled&) -> TaskQueue::Delivery {
        auto family = loadBatch(files);
        return [this, family] {
            if (family) return take(*family);
            showWhy(tr("How large a batch fits takes recordings of this program with two batches "
                       "or more.\n%1")
                        .arg(toQString(family.error().what)));
        };
    });
}

void BatchPanel::take(const BatchFamilyPointer& family) {
    family_ = family;
    field_->setEnabled(true);
    empty_->hide();
    split_->show();
    setBudget(family->largestPeak);
}

void BatchPanel::setBudget(core::Bytes budget) {
    budget_ = budget;
    field_->setText(SizeUnit::fitting(budget).text(budget));
    if (family_) study();
}

void BatchPanel::typed() {
    if (!family_ || field_->text() == SizeUnit::fitting(budget_).text(budget_)) return;
    const auto budget = core::parseBytes(field_->text().remove(QLatin1Char(' ')).toStdString());
    if (budget)
        setBudget(*budget);
    else
        note_->setText(toQString(budget.error().what));
}

void BatchPanel::study() {
    queue_.cancelAll();
    submit(budget_, kSeconds);
    for (const core::Bytes beside : budgetsAround(family_->largestPeak))
        submit(beside, kBesideSeconds);
    draw();
}

void BatchPanel::submit(core::Bytes budget, double seconds) {
    if (studies_.count(budget) != 0) return;
    queue_.submit(
        [this, budget, seconds, family = family_, planners = workspace().selectedPlanners()](
            const TaskQueue::Cancelled& cancelled) -> TaskQueue::Delivery {
            auto made = studyBatch(family->family, budget, planners, seconds, cancelled);
            return [this, made] {
                if (made)
                    takeStudy(*made);
                else
                    note_->setText(toQString(made.error().what));
            };
        });
}

void BatchPanel::takeStudy(const BatchStudy& study) {
    studies_[study.budget] = study;
    draw();
}

void BatchPanel::draw() {
    if (!family_) return;
    const SizeUnit unit = SizeUnit::fitting(budget_);
    std::map<QString, BatchPlot::Curve> overBudget;
    for (const auto& [budget, study] : studies_)
        for (const planners::LargestSize& row : study.rows)
            if (row.size)
                overBudget[toQString(row.planner)].points.push_back(
                    QPointF(unit.value(budget), static_cast<double>(*row.size)));
    std::vector<BatchPlot::Curve> left, right;
    const auto known = studies_.find(budget_);
    QStringList names = workspace().selectedPlanners();
    if (const QString own = toQString(planners::ownPlanner().name); names.removeOne(own))
        names << own;  // on top
    for (const QString& planner : names) {
        overBudget[planner].planner = planner;
        left.push_back(overBudget[planner]);
        if (known == studies_.end()) continue;
        for (const planners::LargestSize& row : known->second.rows) {
            if (toQString(row.planner) != planner || row.tried.empty()) continue;
            BatchPlot::Curve curve{planner, {}, -1};
            for (const planners::TriedSize& tried : row.tried) {
                if (tried.size == row.fastest) curve.marked = static_cast<int>(curve.points.size());
                curve.points.push_back(QPointF(static_cast<double>(tried.size),
                                               planners::itemsPerSecond(tried.size, tried.time)));
            }
            right.push_back(std::move(curve));
        }
    }
    budgets_->show(std::move(left), unit.name, unit.value(budget_), unit.text(budget_));
    sizes_->show(std::move(right), {}, -1, {});
    model_->setStudy(known == studies_.end() ? BatchStudy{budget_, {}} : known->second,
                     family_->family.sizes().back());
    table_->fitColumns();
    QStringList recorded;
    for (const std::int64_t size : family_->family.sizes()) recorded << QString::number(size);
    note_->setText(queue_.pending() > 0
                       ? tr("recorded at %1 · planning…").arg(recorded.join(QStringLiteral(", ")))
                       : tr("recorded at %1").arg(recorded.join(QStringLiteral(", "))));
}

void BatchPanel::addRecords() {
    const QStringList files =
        QFileDialog::getOpenFileNames(this, tr("Add recordings of this program"), {}, openFilter());
    if (!files.isEmpty()) workspace().setRecords(workspace().records() + files);
}

void BatchPanel::openAt(const QString& planner, std::int64_t size) {
    const auto known = studies_.find(budget_);
    if (known == studies_.end() || !family_) return;
    const auto row = std::find_if(
        known->second.rows.begin(), known->second.rows.end(),
        [&](const planners::LargestSize& each) { return toQString(each.planner) == planner; });
    if (row == known->second.rows.end()) return;
    const auto files = writeBatch(*family_, size, *row, made_.path().toStdString());
    if (!files) {
        note_->setText(toQString(files.error().what));
        return;
    }
    workspace().open(toQString(files->session),
                     files->plan ? QStringList(toQString(*files->plan)) : QStringList());
}

void BatchPanel::applyTheme() {
    budgets_->applyTheme();
    sizes_->applyTheme();
    planners_->applyTheme();
}

core::Status BatchPanel::prepareShot(const std::vector<std::string>&) {
    stale_ = false;
    if (!workspace().document()->plannable) {
        reload();
        return {};
    }
    std::vector<std::string> files{path_};
    for (const QString& record : workspace().records()) files.push_back(record.toStdString());
    auto family = loadBatch(files);
    if (!family) return family.error();
    family_ = *family;
    budget_ = family_->largestPeak;
    const QStringList planners = workspace().selectedPlanners();
    std::vector<core::Bytes> budgets = budgetsAround(budget_);
    budgets.push_back(budget_);
    for (const core::Bytes budget : budgets) {
        auto made = studyBatch(family_->family, budget, planners,
                               budget == budget_ ? kSeconds : kBesideSeconds);
        if (!made) return made.error();
        studies_[budget] = std::move(*made);
    }
    field_->setText(SizeUnit::fitting(budget_).text(budget_));
    empty_->hide();
    split_->show();
    draw();
    return {};
}

}  // namespace hw::viewer
