// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/panels/finder.h"

#include <QKeyEvent>
#include <QVBoxLayout>
#include <algorithm>

namespace hw::viewer {
namespace {

constexpr int kBelowTop = 90, kPage = 10;

}  // namespace

Finder::Finder(QAbstractItemView* list, const QSize& size, QWidget* parent)
    : QDialog(parent), list_(list) {
    setAttribute(Qt::WA_DeleteOnClose);
    field_ = new QLineEdit;
    field_->installEventFilter(this);
    list_->setFocusPolicy(Qt::NoFocus);
    auto* column = new QVBoxLayout(this);
    column->addWidget(field_);
    column->addWidget(list_, 1);
    resize(parent ? size.boundedTo(parent->size()) : size);
    if (parent) move(parent->mapToGlobal(QPoint((parent->width() - width()) / 2, kBelowTop)));
    connect(field_, &QLineEdit::textChanged, this, &Finder::narrow);
    connect(field_, &QLineEdit::returnPressed, this, &Finder::perform);
    connect(list_, &QAbstractItemView::clicked, this, &Finder::perform);
}

void Finder::toFirstRow() {
    list_->setCurrentIndex(list_->model()->index(0, 0));
}

bool Finder::eventFilter(QObject* watched, QEvent* event) {
    if (event->type() != QEvent::KeyPress) return QDialog::eventFilter(watched, event);
    const int key = static_cast<QKeyEvent*>(event)->key();
    const int by = key == Qt::Key_Down       ? 1
                   : key == Qt::Key_Up       ? -1
                   : key == Qt::Key_PageDown ? kPage
                   : key == Qt::Key_PageUp   ? -kPage
                                             : 0;
    if (by == 0) return QDialog::eventFilter(watched, event);
    const int last = std::max(0, list_->model()->rowCount() - 1);
    const int row = std::clamp(list_->currentIndex().row() + by, 0, last);
    list_->setCurrentIndex(list_->model()->index(row, 0));
    return true;
}

}  // namespace hw::viewer
