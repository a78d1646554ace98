// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/panels/layers_panel.h"

#include <QHeaderView>
#include <QPainter>
#include <QStyledItemDelegate>
#include <QVBoxLayout>

#include "viewer/plots/theme.h"

namespace hw::viewer {
namespace {

// A bar along the bottom of the cell: the layer's share of the peak.
class ShareDelegate : public QStyledItemDelegate {
public:
    using QStyledItemDelegate::QStyledItemDelegate;

    void paint(QPainter* painter, const QStyleOptionViewItem& option,
               const QModelIndex& index) const override {
        QStyledItemDelegate::paint(painter, option, index);
        const QRectF room = QRectF(option.rect).adjusted(8, option.rect.height() - 5.0, -8, -3);
        painter->fillRect(room, theme().line);
        const double share = index.data(LayerModel::kShareRole).toDouble();
        painter->fillRect(QRectF(room.left(), room.top(), room.width() * share, room.height()),
                          theme().accent);
    }
};

}  // namespace

LayersPanel::LayersPanel(Workspace& workspace) : Panel(workspace, tr("Layers")) {
    model_ = new LayerModel(this);
    table_ = new QTableView;
    table_->setModel(model_);
    table_->setItemDelegateForColumn(LayerModel::AtPeak, new ShareDelegate(table_));
    table_->setSelectionBehavior(QAbstractItemView::SelectRows);
    table_->setSelectionMode(QAbstractItemView::SingleSelection);
    table_->setShowGrid(false);
    table_->setWordWrap(false);
    table_->setTextElideMode(Qt::ElideLeft);  // the end of a path tells layers apart
    table_->verticalHeader()->hide();
    table_->verticalHeader()->setDefaultSectionSize(30);
    table_->horizontalHeader()->setSectionResizeMode(QHeaderView::Interactive);
    table_->horizontalHeader()->setSectionResizeMode(LayerModel::Layer, QHeaderView::Stretch);
    table_->setColumnWidth(LayerModel::AtPeak, 96);
    table_->setColumnWidth(LayerModel::Time, 88);
    table_->horizontalHeader()->setHighlightSections(false);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->addWidget(table_);
    setFocusProxy(table_);
    setMinimumWidth(240);
    connect(&workspace, &Workspace::documentChanged, this,
            [this] { model_->setDocument(this->workspace().document()); });
    connect(&workspace, &Workspace::selectionChanged, this, [this] {
        const Workspace& shared = this->workspace();
        if (shared.selectedOp() == core::kNone) return table_->clearSelection();
        table_->selectRow(model_->rowOf(shared.document()->graph.ops[shared.selectedOp()].layer));
    });
    connect(table_, &QTableView::clicked, this, [this](const QModelIndex& index) {
        this->workspace().selectOp(model_->firstOp(index.row()));
    });
    model_->setDocument(workspace.document());
}

}  // namespace hw::viewer
