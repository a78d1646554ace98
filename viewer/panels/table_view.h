// SPDX-License-Identifier: GPL-3.0-or-later
// The table of every view: sorted by its headers, filtered, copied with Ctrl+C, exported as CSV.
#pragma once

#include <QLineEdit>
#include <QSortFilterProxyModel>
#include <QTreeView>

#include "core/base/result.h"

namespace hw::viewer {

/// Shows a table or a tree whose model answers kRawRole (viewer/models/table_text.h).
class TableView : public QTreeView {
    Q_OBJECT
public:
    /// `wide`: the column that takes the room which the others leave; -1: all share it.
    explicit TableView(QAbstractItemModel* model, int wide = -1, QWidget* parent = nullptr);

    /// A box that keeps the rows, their parents and their parts which contain its text; made on the
    /// first call, for the header of a panel.
    QLineEdit* filterBox();
    QSortFilterProxyModel& shown() const { return *shown_; }
    QModelIndex sourceOf(const QModelIndex& index) const { return shown_->mapToSource(index); }

    /// Marks a row of the model and scrolls to it; an invalid one marks nothing. No click is sent.
    void mark(const QModelIndex& source);
    void setRowHeight(int pixels);
    int rowHeightHint() const { return rowHeight_; }
    /// Pixels that a swatch before the text of a column takes.
    void setLeading(int column, int pixels);
    /// Columns that are left out, the first one first, where not all have room.
    void setDispensable(const QList<int>& columns);
    /// Every column as wide as its text, the rest shared out; of a table that is not to be seen,
    /// when it is. Measuring text takes milliseconds: once after many changes is enough.
    void fitColumns();

    /// Ctrl+C takes this column of the marked rows alone, without a header; -1: all columns.
    void setCopiedColumn(int column) { copiedColumn_ = column; }
    /// The marked rows, or all where none is marked, as the clipboard gets them.
    QString copied() const;
    /// BadInput: the file cannot be written.
    core::Status exportCsv(const QString& file) const;

signals:
    /// A row was clicked, or the keyboard went to it; of the model, not of what is shown.
    void picked(const QModelIndex& source);
    /// Enter was pressed on a row of the model.
    void followed(const QModelIndex& source);

protected:
    bool event(QEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void contextMenuEvent(QContextMenuEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void showEvent(QShowEvent* event) override;
    void currentChanged(const QModelIndex& current, const QModelIndex& previous) override;

private:
    void fitSoon();  // once before the next events, unless somebody does before that
    void askAndExport();
    void addSorting(QMenu& menu);
    int widthOf(int column) const;
    int textWidth(const QString& text) const;

    QSortFilterProxyModel* shown_;
    QLineEdit* filter_ = nullptr;
    int wide_, rowHeight_ = 28;
    int copiedColumn_ = -1;
    bool quiet_ = false, unfit_ = true;
    QHash<int, int> leading_;
    mutable QHash<QString, int> measured_;  // texts, pixels
    QFont measuredIn_;
    QList<int> dispensable_;
};

}  // namespace hw::viewer
