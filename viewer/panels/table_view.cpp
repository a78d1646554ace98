// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/panels/table_view.h"
#include "core/base/file.h"

#include <QClipboard>
#include <QContextMenuEvent>
#include <QFileDialog>
#include <QGuiApplication>
#include <QHeaderView>
#include <QMenu>
#include <QMessageBox>
#include <QStyledItemDelegate>
#include <algorithm>

#include "viewer/models/table_text.h"
#include "viewer/plots/theme.h"

namespace hw::viewer {
namespace {

constexpr int kHeaderPixels = 11, kCellPixels = 12;  // as the style sheet has them
constexpr int kLowest = 44;                          // the header and a little
constexpr int kCopiedShown = 240;                    // pixels of a text in the menu
constexpr int kPadding = 18, kWidest = 340, kMeasuredRows = 60, kTableNarrowest = 96;
constexpr int kMostMeasured = 4096;  // texts

class RowHeight : public QStyledItemDelegate {
public:
    using QStyledItemDelegate::QStyledItemDelegate;
    QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override {
        const auto* view = qobject_cast<const TableView*>(option.widget);
        return {QStyledItemDelegate::sizeHint(option, index).width(),
                view ? view->rowHeightHint() : 28};
    }
};

}  // namespace

TableView::TableView(QAbstractItemModel* model, int wide, QWidget* parent)
    : QTreeView(parent), wide_(wide) {
    shown_ = new QSortFilterProxyModel(this);
    shown_->setSourceModel(model);
    shown_->setSortRole(kRawRole);
    shown_->setFilterKeyColumn(-1);
    shown_->setFilterCaseSensitivity(Qt::CaseInsensitive);
    shown_->setRecursiveFilteringEnabled(true);
    shown_->setAutoAcceptChildRows(true);
    setModel(shown_);
    setItemDelegate(new RowHeight(this));
    setMinimumHeight(kLowest);  // the window as a whole stays small enough for a small screen
    setUniformRowHeights(true);
    setRootIsDecorated(false);
    setSelectionBehavior(SelectRows);
    setSelectionMode(ExtendedSelection);
    setAllColumnsShowFocus(true);
    setWordWrap(false);
    setHorizontalScrollMode(ScrollPerPixel);
    setVerticalScrollMode(ScrollPerPixel);
    header()->setHighlightSections(false);
    header()->setTextElideMode(Qt::ElideRight);
    header()->setStretchLastSection(false);
    header()->setMinimumSectionSize(30);
    header()->setSectionsMovable(true);
    setSortingEnabled(true);
    sortByColumn(-1, Qt::AscendingOrder);
    connect(shown_, &QAbstractItemModel::modelReset, this, &TableView::fitSoon);
    connect(this, &QTreeView::expanded, this, &TableView::fitSoon);
    // A press makes a row current before it is selected, so currentChanged() passes it over.
    connect(this, &QTreeView::clicked, this, [this](const QModelIndex& index) {
        emit picked(shown_->mapToSource(index.siblingAtColumn(0)));
    });
}

QLineEdit* TableView::filterBox() {
    if (filter_) return filter_;
    filter_ = new QLineEdit;
    filter_->setPlaceholderText(tr("filter"));
    filter_->setClearButtonEnabled(true);
    filter_->setMinimumWidth(70);
    filter_->setMaximumWidth(150);
    filter_->setAccessibleName(tr("filter of the table"));
    connect(filter_, &QLineEdit::textChanged, this, [this](const QString& text) {
        shown_->setFilterFixedString(text);
        if (!text.isEmpty() && rootIsDecorated()) expandAll();
    });
    return filter_;
}

void TableView::mark(const QModelIndex& source) {
    quiet_ = true;
    const QModelIndex index = shown_->mapFromSource(source);
    if (!index.isValid()) {
        selectionModel()->clear();
    } else if (!selectionModel()->isRowSelected(index.row(), index.parent())) {
        selectionModel()->setCurrentIndex(
            index.siblingAtColumn(0),
            QItemSelectionModel::ClearAndSelect | QItemSelectionModel::Rows);
        scrollTo(index);
    }
    quiet_ = false;
}

void TableView::setRowHeight(int pixels) {
    rowHeight_ = pixels;
}

void TableView::setLeading(int column, int pixels) {
    leading_[column] = pixels;
}

void TableView::currentChanged(const QModelIndex& current, const QModelIndex& previous) {
    QTreeView::currentChanged(current, previous);
    // The focus alone makes a row current without choosing it.
    if (!quiet_ && current.isValid() && selectionModel()->isSelected(current))
        emit picked(shown_->mapToSource(current.siblingAtColumn(0)));
}

// Most texts are there again after a change, and shaping one takes microseconds.
int TableView::textWidth(const QString& text) const {
    if (const auto known = measured_.constFind(text); known != measured_.cend()) return *known;
    if (measured_.size() >= kMostMeasured) measured_.clear();
    return *measured_.insert(text, QFontMetrics(measuredIn_).horizontalAdvance(text));
}

// Of the header and the first rows, with their parts where they are open.
int TableView::widthOf(int column) const {
    int width = QFontMetrics(uiFont(kHeaderPixels))
                    .horizontalAdvance(shown_->headerData(column, Qt::Horizontal).toString()) +
                8;
    int seen = 0;
    for (QModelIndex row = shown_->index(0, 0); row.isValid() && seen < kMeasuredRows; ++seen) {
        int depth = rootIsDecorated() && column == 0 ? 1 : 0;
        if (column == 0)
            for (QModelIndex up = row.parent(); up.isValid(); up = up.parent()) ++depth;
        const bool spans = isFirstColumnSpanned(row.row(), row.parent());
        const QString text = spans ? QString() : row.siblingAtColumn(column).data().toString();
        width = std::max(width, textWidth(text) + depth * indentation());
        row = indexBelow(row);
    }
    return std::min(width, kWidest) + kPadding + leading_.value(column);
}

void TableView::setDispensable(const QList<int>& columns) {
    dispensable_ = columns;
}

void TableView::fitSoon() {
    unfit_ = true;
    QMetaObject::invokeMethod(
        this,
        [this] {
            if (unfit_) fitColumns();
        },
        Qt::QueuedConnection);
}

void TableView::fitColumns() {
    unfit_ = !isVisible();
    if (unfit_) return;
    if (const QFont font = uiFont(kCellPixels); font != measuredIn_) {  // while a picture is made
        measuredIn_ = font;
        measured_.clear();
    }
    int needed = 0;
    for (int column = 0; column < shown_->columnCount(); ++column)
        if (dispensable_.contains(column) || !isColumnHidden(column)) needed += widthOf(column);
    for (const int column : dispensable_) {
        setColumnHidden(column, needed > viewport()->width());
        if (isColumnHidden(column)) needed -= widthOf(column);
    }
    std::vector<int> columns, widths;
    for (int column = 0; column < shown_->columnCount(); ++column) {
        if (isColumnHidden(column)) continue;
        columns.push_back(column);
        widths.push_back(widthOf(column));
    }
    if (columns.empty()) return;
    // Where the room is short the widest columns give way; figures are never among them.
    const int room = viewport()->width();
    int cap = *std::max_element(widths.begin(), widths.end());
    const auto capped = [&](std::size_t i) {
        const int swatch = leading_.value(columns[i]);
        return std::min(widths[i] - swatch, cap) + swatch;
    };
    const auto total = [&] {
        int sum = 0;
        for (std::size_t i = 0; i < columns.size(); ++i) sum += capped(i);
        return sum;
    };
    while (total() > room && cap > kTableNarrowest) cap -= 4;
    const int spare = room - total();  // negative: a column of text gives way further
    const int yielding = std::max(0, wide_);
    for (std::size_t i = 0; i < columns.size(); ++i) {
        int width = capped(i);
        if (spare < 0 && columns[i] == yielding)
            width = std::max(width + spare, std::min(width, kTableNarrowest));
        if (spare > 0 && columns[i] == wide_) width += spare;
        if (spare > 0 && wide_ < 0) width += spare / static_cast<int>(columns.size());
        setColumnWidth(columns[i], width);
    }
}

void TableView::resizeEvent(QResizeEvent* event) {
    QTreeView::resizeEvent(event);
    fitColumns();
}

void TableView::showEvent(QShowEvent* event) {
    QTreeView::showEvent(event);
    if (unfit_) fitColumns();
}

QString TableView::copied() const {
    QModelIndexList rows;
    if (selectionModel()->hasSelection()) {
        for (QModelIndex row = shown_->index(0, 0); row.isValid(); row = indexBelow(row))
            if (selectionModel()->isSelected(row)) rows << row;
    } else {
        for (QModelIndex row = shown_->index(0, 0); row.isValid(); row = indexBelow(row))
            rows << row;
    }
    if (copiedColumn_ < 0) return rowsAsTsv(*shown_, rows);
    QStringList values;
    for (const QModelIndex& row : std::as_const(rows)) {
        const QString value = row.siblingAtColumn(copiedColumn_).data().toString();
        if (!value.isEmpty()) values << value;
    }
    return values.join(QLatin1Char('\n'));
}

core::Status TableView::exportCsv(const QString& file) const {
    return core::writeFileAtomically(file.toStdString(),
                                     tableAsCsv(*shown_).toUtf8().toStdString());
}

void TableView::askAndExport() {
    const QString file = QFileDialog::getSaveFileName(
        this, tr("Export the table"), QStringLiteral("table.csv"), tr("Tables (*.csv)"));
    if (file.isEmpty()) return;
    if (const core::Status done = exportCsv(file); !done)
        QMessageBox::warning(this, QStringLiteral("Highwater"),
                             QString::fromStdString(done.error().what + "\n" + done.error().hint));
}

// The window has a use of its own for the key that saves.
bool TableView::event(QEvent* event) {
    if (event->type() == QEvent::ShortcutOverride &&
        static_cast<QKeyEvent*>(event)->matches(QKeySequence::Save)) {
        event->accept();
        return true;
    }
    return QTreeView::event(event);
}

void TableView::keyPressEvent(QKeyEvent* event) {
    if (event->matches(QKeySequence::Copy)) {
        QGuiApplication::clipboard()->setText(copied());
    } else if (event->matches(QKeySequence::Save)) {
        askAndExport();
    } else if (event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter) {
        QTreeView::keyPressEvent(event);
        if (currentIndex().isValid()) emit followed(shown_->mapToSource(currentIndex()));
    } else if (event->key() == Qt::Key_Slash && filter_) {
        filter_->setFocus();
        filter_->selectAll();
    } else {
        QTreeView::keyPressEvent(event);
    }
}

// A header is reached with the mouse alone.
void TableView::addSorting(QMenu& menu) {
    const int sorted = header()->sortIndicatorSection();
    for (int visual = 0; visual < header()->count(); ++visual) {
        const int column = header()->logicalIndex(visual);
        if (isColumnHidden(column)) continue;
        QAction* sort =
            menu.addAction(shown_->headerData(column, Qt::Horizontal).toString(), this, [=, this] {
                const bool again = header()->sortIndicatorSection() == column;
                const bool descending = header()->sortIndicatorOrder() == Qt::DescendingOrder;
                sortByColumn(column,
                             again && descending ? Qt::AscendingOrder : Qt::DescendingOrder);
            });
        sort->setCheckable(true);
        sort->setChecked(column == sorted);
    }
    menu.addSeparator();
    menu.addAction(tr("As they come"), this, [this] { sortByColumn(-1, Qt::AscendingOrder); });
}

void TableView::contextMenuEvent(QContextMenuEvent* event) {
    QMenu menu(this);
    const bool byKey = event->reason() == QContextMenuEvent::Keyboard;
    const QString cell = (byKey ? currentIndex() : indexAt(event->pos())).data().toString();
    if (!cell.isEmpty())
        connect(
            menu.addAction(
                tr("Copy “%1”").arg(fontMetrics().elidedText(cell, Qt::ElideMiddle, kCopiedShown))),
            &QAction::triggered, this, [cell] { QGuiApplication::clipboard()->setText(cell); });
    connect(menu.addAction(tr("Copy rows\tCtrl+C")), &QAction::triggered, this,
            [this] { QGuiApplication::clipboard()->setText(copied()); });
    connect(menu.addAction(tr("Export as CSV…\tCtrl+S")), &QAction::triggered, this,
            &TableView::askAndExport);
    menu.addSeparator();
    addSorting(*menu.addMenu(tr("Sort by")));
    if (rootIsDecorated()) {
        menu.addSeparator();
        connect(menu.addAction(tr("Open all")), &QAction::triggered, this, &QTreeView::expandAll);
        connect(menu.addAction(tr("Close all")), &QAction::triggered, this,
                &QTreeView::collapseAll);
    }
    if (!actions().isEmpty()) menu.addSeparator();
    menu.addActions(actions());
    menu.exec(event->globalPos());
}

}  // namespace hw::viewer
