// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/panels/ranks_panel.h"

#include <QVBoxLayout>
#include <algorithm>

#include "viewer/panels/share_bar.h"

namespace hw::viewer {

const PanelKind RanksPanel::kKind{
    .name = "ranks",
    .title = "Ranks",
    .help =
        "<p>The last step of each rank of a distributed training, side by side: its peak, how much "
        "lower that is than the highest, the time of its ops, and how long it waits for messages "
        "and collectives of the others. The rank that waits least decides how long the step "
        "takes.</p><p>A click on a row opens that rank's step in all other views.</p>",
    .area = PanelArea::LowerRight,
    .make = makePanel<RanksPanel>,
    .needsStep = true};

RanksPanel::RanksPanel(Workspace& workspace) : Panel(workspace, kKind) {
    note_ = new QLabel;
    note_->setObjectName(QStringLiteral("muted"));
    note_->setMinimumWidth(1);
    addToHeader(note_);
    model_ = new RankModel(this);
    table_ = new TableView(model_);
    table_->setSelectionMode(QAbstractItemView::SingleSelection);
    for (const int column : {RankModel::Peak, RankModel::Waiting}) {
        table_->setItemDelegateForColumn(column, new ShareBar(RankModel::kShareRole, table_));
        table_->setLeading(column, ShareBar::kWidth);
    }
    table_->setDispensable({RankModel::Host, RankModel::Room, RankModel::Time});
    empty_ = makeNote();
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->addWidget(table_, 1);
    column->addWidget(empty_, 1);
    setFocusProxy(table_);
    connect(&workspace, &Workspace::documentChanged, this, &RanksPanel::documentChanged);
    connect(table_, &TableView::picked, this, &RanksPanel::open);
    documentChanged();
}

bool RanksPanel::applies() const {
    return workspace().document()->ranks > 1;
}

// Another step of the session changes nothing here.
void RanksPanel::documentChanged() {
    const DocumentPointer& document = workspace().document();
    const std::string path = document ? document->path : std::string();
    const std::int64_t steps = document ? document->steps : 0;
    if (path != path_ || steps != steps_) {
        path_ = path, steps_ = steps;
        stale_ = true;
        queue_.cancelAll();
        model_->setRows({});
        if (isVisible()) reload();
    }
    if (document) table_->mark(model_->indexOf(document->step));
}

void RanksPanel::showEvent(QShowEvent* event) {
    Panel::showEvent(event);
    if (stale_) reload();
}

void RanksPanel::reload() {
    stale_ = false;
    note_->clear();
    table_->hide();
    empty_->show();
    empty_->setText(tr("Reading…"));
    if (!workspace().document() || !workspace().document()->plannable)
        return take(std::vector<RankRow>());
    queue_.submit([this, path = path_](const TaskQueue::Cancelled&) -> TaskQueue::Delivery {
        return [this, rows = loadRankRows(path)] { take(rows); };
    });
}

void RanksPanel::take(const core::Result<std::vector<RankRow>>& rows) {
    model_->setRows(rows ? *rows : std::vector<RankRow>());
    const bool any = model_->rowCount() > 0;
    table_->setVisible(any);
    empty_->setVisible(!any);
    empty_->setText(!rows ? toQString(rows.error().what)
                          : tr("One rank was recorded. Record the launcher, `highwater record -- "
                               "torchrun …`, to see all of them."));
    note_->setText(any ? tr("%1 ranks · a click opens one").arg(model_->rowCount()) : QString());
    table_->fitColumns();
    if (any) table_->mark(model_->indexOf(workspace().document()->step));
}

void RanksPanel::open(const QModelIndex& index) {
    const std::int64_t step = model_->rows()[static_cast<std::size_t>(index.row())].step;
    if (step != workspace().document()->step) workspace().openStep(step);
}

int RanksPanel::naturalHeight() const {
    return table_->rowHeightHint() * (std::max(3, model_->rowCount()) + 1) + 12;
}

core::Status RanksPanel::prepareShot(const std::vector<std::string>&) {
    stale_ = false;
    const auto rows = loadRankRows(path_);
    if (!rows) return rows.error();
    take(rows);
    return {};
}

}  // namespace hw::viewer
