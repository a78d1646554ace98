// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/panels/batch_panel.h"

#include <QFileDialog>
#include <QVBoxLayout>
#include <algorithm>

#include "viewer/panels/file_dialog.h"
#include "viewer/plots/theme.h"

namespace hw::viewer {

const PanelKind BatchPanel::kKind{
    .name = "batch",
    .title = "Batch",
    .help =
        "<p>How large a batch fits: record the program twice with different batches, open one "
        "recording and add the other with <b>+</b>. Each planner's largest batch over the budget, "
        "and how "
        "many items a second each batch gives within the one that is set; the ring marks the most, "
        "which is not always at the largest batch.</p><p>A click on a point, or Enter on a row, "
        "opens the program at that batch, with the plan for it, as if it had been recorded.</p>",
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
    field_ = new BudgetField;
    add_ = new QToolButton;
    add_->setText(QStringLiteral("+"));
    add_->setAccessibleName(tr("Add a recording"));
    add_->setToolTip(tr("Add another recording of this program, with another batch"));
    planners_ = new PlannerMenu(workspace());
    for (QWidget* part : std::initializer_list<QWidget*>{note_, field_, add_, planners_})
        addToHeader(part);
    plots_ = new BatchPlots;
    model_ = new BatchModel(this);
    table_ = new TableView(model_);
    table_->setSelectionMode(QAbstractItemView::SingleSelection);
    table_->setDispensable({BatchModel::Times, BatchModel::MostItems, BatchModel::Fastest});
    table_->setMinimumHeight(40);
    split_ = new QSplitter(Qt::Vertical);
    split_->setHandleWidth(1);
    split_->addWidget(plots_);
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
    connect(&workspace().loader(), &DocumentLoader::recordsChanged, this, [this] {
        stale_ = true;
        if (isVisible()) reload();
    });
    connect(&workspace(), &Workspace::plannersChanged, this, [this] {
        results_.studies.clear();
        if (isVisible() && results_.family) study();
    });
    connect(add_, &QToolButton::clicked, this, &BatchPanel::addRecords);
    connect(field_, &BudgetField::entered, this, &BatchPanel::setBudget);
    connect(plots_, &BatchPlots::budgetPicked, this, &BatchPanel::setBudget);
    connect(plots_, &BatchPlots::sizePicked, this, &BatchPanel::openAt);
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
    results_ = {};
    stale_ = true;
    if (another) workspace().loader().setRecords({});
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
    field_->forget();
    empty_->setText(why);
    empty_->show();
}

void BatchPanel::showFailure(const core::Error& error) {
    showWhy(tr("How large a batch fits takes recordings of this program with two batches or "
               "more: + adds one.\n%1")
                .arg(toQString(error.what)));
}

void BatchPanel::reload() {
    stale_ = false;
    queue_.cancelAll();
    results_ = {};
    const DocumentPointer& document = workspace().document();
    add_->setEnabled(document && document->plannable);
    if (!document || !document->plannable) return showWhy(noStep());
    showWhy(tr("Reading…"));
    queue_.submit([this, files = workspace().loader().recordsWith(path_)](
                      const TaskQueue::Cancelled&) -> TaskQueue::Delivery {
        auto family = loadBatch(files);
        return [this, family] {
            if (family) return take(*family);
            showFailure(family.error());
        };
    });
}

void BatchPanel::take(const BatchFamilyPointer& family) {
    results_.family = family;
    field_->setEnabled(true);
    empty_->hide();
    split_->show();
    setBudget(family->largestPeak);
}

void BatchPanel::setBudget(core::Bytes budget) {
    results_.budget = budget;
    if (results_.family) study();
}

void BatchPanel::study() {
    queue_.cancelAll();
    submit(results_.budget, kBatchSeconds);
    for (const core::Bytes beside : budgetsAround(results_.family->largestPeak))
        submit(beside, kBatchBesideSeconds);
    draw();
}

void BatchPanel::submit(core::Bytes budget, double seconds) {
    if (results_.studies.count(budget) != 0) return;
    queue_.submit([this, budget, seconds, family = results_.family,
                   planners = workspace().selectedPlanners()](
                      const TaskQueue::Cancelled& cancelled) -> TaskQueue::Delivery {
        auto made = studyBatch(family->families, budget, planners, seconds, cancelled);
        return [this, made] {
            if (made)
                takeStudy(*made);
            else
                note_->setText(toQString(made.error().what));
        };
    });
}

void BatchPanel::takeStudy(const BatchStudy& study) {
    results_.studies[study.budget] = study;
    draw();
}

void BatchPanel::draw() {
    if (!results_.family) return;
    field_->show(results_.budget, results_.family->largestPeak, SizeUnit::fitting(results_.budget));
    plots_->show(results_, workspace().selectedPlanners());
    const BatchStudy* const known = results_.atBudget();
    model_->setStudy(known != nullptr ? *known : BatchStudy{results_.budget, {}},
                     results_.family->families.usual.sizes().back());
    table_->fitColumns();
    QStringList recorded;
    for (const std::int64_t size : results_.family->families.usual.sizes())
        recorded << QString::number(size);
    const QString sizes = recorded.join(QStringLiteral(", "));
    note_->setText(queue_.pending() > 0 ? tr("recorded at %1 · planning…").arg(sizes)
                                        : tr("recorded at %1").arg(sizes));
}

void BatchPanel::addRecords() {
    const QStringList files =
        QFileDialog::getOpenFileNames(this, tr("Add recordings of this program"), {}, openFilter());
    if (!files.isEmpty()) workspace().loader().setRecords(workspace().loader().records() + files);
}

void BatchPanel::openAt(const QString& planner, std::int64_t size) {
    const BatchStudy* const known = results_.atBudget();
    if (known == nullptr) return;
    const auto row = std::find_if(
        known->rows.begin(), known->rows.end(),
        [&](const planners::LargestSize& each) { return toQString(each.planner) == planner; });
    if (row == known->rows.end()) return;
    const auto write =
        [this, size, row = *row, family = results_.family,
         folder = made_.path().toStdString()](const TaskQueue::Cancelled&) -> TaskQueue::Delivery {
        const auto files = writeBatch(*family, size, row, folder);
        return [this, files] {
            if (!files) return note_->setText(toQString(files.error().what));
            workspace().loader().open(
                toQString(files->session),
                files->plan ? QStringList(toQString(*files->plan)) : QStringList());
        };
    };
    queue_.submit(write, /*urgent=*/true);
}

// The plots, and the table with all its rows.
int BatchPanel::naturalHeight() const {
    constexpr int kPlots = 420;
    if (!empty_->isHidden()) return 240;
    return kPlots + table_->rowHeightHint() * (model_->rowCount() + 2);
}

void BatchPanel::applyTheme() {
    plots_->applyTheme();
    planners_->applyTheme();
}

core::Status BatchPanel::prepareShot(const std::vector<std::string>&) {
    stale_ = false;
    if (!workspace().document()->plannable) {
        reload();
        return {};
    }
    auto results =
        studyBatches(workspace().loader().recordsWith(path_), workspace().selectedPlanners());
    if (!results && !workspace().loader().records().isEmpty()) return results.error();
    if (!results) {
        showFailure(results.error());
        return {};
    }
    results_ = std::move(*results);
    empty_->hide();
    split_->show();
    draw();
    return {};
}

}  // namespace hw::viewer
