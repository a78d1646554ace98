// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/panels/inspector_panel.h"

#include <QHeaderView>
#include <QPainter>
#include <QRegularExpression>
#include <QStyledItemDelegate>
#include <QVBoxLayout>
#include <algorithm>
#include <utility>

#include "viewer/plots/theme.h"

namespace hw::viewer {
namespace {

constexpr int kInspectorRow = 22, kInspectorPad = 6, kCell = 12, kFilter = 50;  // pixels

// Paths may be broken after their separators, figures may not.
QString breakable(const QString& text) {
    static const QRegularExpression separator(QStringLiteral("([/._])(?=[^0-9\\s])"));
    return QString(text).replace(separator, QStringLiteral("\\1\u200b"));
}

// Values wrap, so that each can be read to its end; what can be followed has the accent's colour.
class FactDelegate : public QStyledItemDelegate {
public:
    explicit FactDelegate(TableView* view) : QStyledItemDelegate(view), view_(view) {}

    QSize sizeHint(const QStyleOptionViewItem&, const QModelIndex& index) const override {
        const int room = view_->columnWidth(index.column()) - 2 * kInspectorPad;
        if (index.column() != InspectorModel::Value || room <= 0) return {0, kInspectorRow};
        const QRect text = QFontMetrics(uiFont(kCell))
                               .boundingRect(QRect(0, 0, room, 10'000), kFlags,
                                             breakable(index.data().toString()));
        return {0, std::max(kInspectorRow, text.height() + 7)};
    }

    void paint(QPainter* painter, const QStyleOptionViewItem& option,
               const QModelIndex& index) const override {
        QStyleOptionViewItem row(option);
        initStyleOption(&row, index);
        const QString text = std::exchange(row.text, QString());
        view_->style()->drawControl(QStyle::CE_ItemViewItem, &row, painter, view_);
        const bool value = index.column() == InspectorModel::Value;
        const bool title = !index.parent().isValid();
        painter->setFont(uiFont(kCell, title));
        painter->setPen(title                                            ? theme().text
                        : !value                                         ? theme().muted
                        : index.data(InspectorModel::kLinkRole).toBool() ? theme().accent
                                                                         : theme().text);
        const QRect room = option.rect.adjusted(kInspectorPad, 3, -kInspectorPad, 0);
        if (value)
            painter->drawText(room, kFlags, breakable(text));
        else
            painter->drawText(
                room, Qt::AlignLeft | Qt::AlignTop,
                painter->fontMetrics().elidedText(text, Qt::ElideRight, room.width()));
    }

private:
    static constexpr int kFlags = Qt::AlignLeft | Qt::AlignTop | Qt::TextWordWrap;
    TableView* view_;
};

}  // namespace

const PanelKind InspectorPanel::kKind{
    .name = "inspector",
    .title = "Inspector",
    .help =
        "<p>All that is known of what is selected, an op, a tensor or a layer: what it is, which "
        "line of the program made it, who needs it and until when, and what the plan that is drawn "
        "does with it, and why. With nothing selected, the step.</p><p>A click on a coloured "
        "value, or <b>Enter</b>, selects what it names; <b>Ctrl+Z</b> goes back. <b>Ctrl+C</b> "
        "copies a value.</p>",
    .area = PanelArea::SideLower,
    .make = makePanel<InspectorPanel>};

InspectorPanel::InspectorPanel(Workspace& workspace) : Panel(workspace, kKind) {
    model_ = new InspectorModel(this);
    table_ = new TableView(model_, InspectorModel::Value);
    table_->setObjectName(QStringLiteral("facts"));
    table_->setHeaderHidden(true);
    table_->setUniformRowHeights(false);
    table_->setRootIsDecorated(true);
    table_->setIndentation(10);
    table_->setSortingEnabled(false);
    table_->setRowHeight(kInspectorRow);
    table_->setItemDelegate(new FactDelegate(table_));
    table_->setCopiedColumn(InspectorModel::Value);
    table_->setAccessibleName(tr("what is known of the selection"));
    table_->filterBox()->setMinimumWidth(kFilter);
    addToHeader(table_->filterBox());
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->addWidget(table_);
    setFocusProxy(table_);
    setMinimumWidth(140);
    connect(&workspace, &Workspace::documentChanged, this, &InspectorPanel::reload);
    connect(&workspace.selection(), &SelectionModel::selectionChanged, this,
            &InspectorPanel::reload);
    connect(&workspace.selection(), &SelectionModel::rangeChanged, this, &InspectorPanel::reload);
    connect(&workspace.active(), &ActivePlan::planChanged, this, &InspectorPanel::reload);
    connect(&workspace.active(), &ActivePlan::changesFound, this, &InspectorPanel::reload);
    connect(table_, &QTreeView::clicked, this, [this](const QModelIndex& shown) {
        if (shown.column() == InspectorModel::Value) follow(table_->sourceOf(shown));
    });
    connect(table_, &TableView::followed, this, &InspectorPanel::follow);
    // Values wrap by the width of their column.
    connect(table_->header(), &QHeaderView::sectionResized, table_, &QTreeView::doItemsLayout,
            Qt::QueuedConnection);
    const auto title = [](const QModelIndex& index) { return index.data().toString(); };
    connect(table_, &QTreeView::collapsed, this,
            [this, title](const QModelIndex& index) { closed_.insert(title(index)); });
    connect(table_, &QTreeView::expanded, this,
            [this, title](const QModelIndex& index) { closed_.remove(title(index)); });
}

void InspectorPanel::reload() {
    stale_ = true;
    if (isVisible()) showFacts();
}

void InspectorPanel::showEvent(QShowEvent* event) {
    Panel::showEvent(event);
    if (stale_) showFacts();
}

void InspectorPanel::showFacts() {
    stale_ = false;
    const DocumentPointer& document = workspace().document();
    if (!document) return model_->setGroups({});
    model_->setGroups(inspect(*document, workspace().selection().current(),
                              workspace().active().inspected(), workspace().selection().range()));
    for (int row = 0; row < model_->rowCount(); ++row) {
        const QModelIndex group = model_->index(row, 0),
                          shown = table_->shown().mapFromSource(group);
        table_->setFirstColumnSpanned(shown.row(), shown.parent(), true);
        if (!closed_.contains(group.data().toString())) table_->expand(shown);
    }
    table_->fitColumns();
    if (table_->hasFocus()) table_->setCurrentIndex(table_->shown().index(0, 0));
}

void InspectorPanel::follow(const QModelIndex& source) {
    if (const Target target = model_->target(source)) workspace().selection().select(target);
}

int InspectorPanel::naturalHeight() const {
    constexpr int kLine = 60;  // letters, about
    qsizetype rows = 0;
    for (const FactGroup& group : model_->groups()) {
        ++rows;
        for (const Fact& fact : group.facts) rows += 1 + fact.value.size() / kLine;
    }
    return static_cast<int>(std::clamp<qsizetype>(40 + rows * kInspectorRow, 300, 1000));
}

core::Status InspectorPanel::compute() {
    const bool plans = workspace().document()->plannable && !workspace().active().plan();
    return plans ? workspace().planNow() : core::Status();
}

core::Status InspectorPanel::prepareShot(const std::vector<std::string>&) {
    workspace().active().changesNow();
    showFacts();
    return {};
}

}  // namespace hw::viewer
