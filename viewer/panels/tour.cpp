// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/panels/tour.h"

#include <QDockWidget>
#include <QEvent>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QVBoxLayout>
#include <algorithm>
#include <iterator>
#include <utility>

namespace hw::viewer {
namespace {
constexpr int kTourWidth = 340, kInset = 24;
}

Tour::Tour(QWidget* window, std::vector<Stop> stops) : QFrame(window), stops_(std::move(stops)) {
    std::erase_if(stops_, [](const Stop& stop) { return stop.view->isHidden(); });
    setObjectName(QStringLiteral("tour"));
    setAttribute(Qt::WA_StyledBackground);
    setFixedWidth(kTourWidth);
    title_ = new QLabel;
    title_->setObjectName(QStringLiteral("tourTitle"));
    text_ = new QLabel;
    text_->setWordWrap(true);
    text_->setTextFormat(Qt::RichText);
    count_ = new QLabel;
    count_->setObjectName(QStringLiteral("muted"));
    next_ = new QPushButton;
    next_->setObjectName(QStringLiteral("tourNext"));
    auto* skip = new QPushButton(tr("Skip"));
    skip->setObjectName(QStringLiteral("tourSkip"));
    auto* row = new QHBoxLayout;
    row->addWidget(count_);
    row->addStretch(1);
    row->addWidget(skip);
    row->addWidget(next_);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(16, 14, 16, 14);
    column->setSpacing(8);
    column->addWidget(title_);
    column->addWidget(text_);
    column->addLayout(row);
    connect(next_, &QPushButton::clicked, this, &Tour::next);
    connect(skip, &QPushButton::clicked, this, &Tour::end);
    window->installEventFilter(this);
    if (!stops_.empty()) show(0);
}

void Tour::show(std::size_t stop) {
    at_ = stop;
    const Stop& now = stops_[at_];
    title_->setText(now.title);
    text_->setText(now.text);
    count_->setText(tr("%1 of %2").arg(at_ + 1).arg(stops_.size()));
    next_->setText(at_ + 1 == stops_.size() ? tr("Done") : tr("Next"));
    now.view->raise();
    QFrame::show();
    place();
    next_->setFocus();
}

// Beside the view, so that what it speaks of is seen; a view that leaves no room has it in its
// corner.
void Tour::place() {
    if (stops_.empty()) return;
    layout()->activate();
    resize(kTourWidth, layout()->hasHeightForWidth() ? layout()->totalHeightForWidth(kTourWidth)
                                                     : sizeHint().height());
    const QWidget& view = *stops_[at_].view;
    const QRect around(view.mapTo(parentWidget(), QPoint()), view.size());
    const QRect window = parentWidget()->rect();
    const int middle = around.center().x() - width() / 2;
    const int across = std::clamp(middle, 0, std::max(0, window.width() - width()));
    const QPoint inside(std::max(0, around.right() - width() - kInset), around.top() + 3 * kInset);
    const QPoint places[] = {{around.right() + kInset / 2, around.top() + 2 * kInset},
                             {across, around.bottom() + kInset / 2},
                             {across, around.top() - height() - kInset / 2},
                             {around.left() - width() - kInset / 2, around.top() + 2 * kInset}};
    const auto* fits = std::find_if(std::begin(places), std::end(places), [&](const QPoint& at) {
        return window.contains(QRect(at, size()));
    });
    move(fits == std::end(places) ? inside : *fits);
    raise();
}

void Tour::next() {
    if (at_ + 1 < stops_.size()) return show(at_ + 1);
    end();
}

void Tour::end() {
    hide();
    emit ended();
    deleteLater();
}

void Tour::keyPressEvent(QKeyEvent* event) {
    if (event->key() == Qt::Key_Escape)
        end();
    else
        QFrame::keyPressEvent(event);
}

bool Tour::eventFilter(QObject* watched, QEvent* event) {
    if (watched == parentWidget() && event->type() == QEvent::Resize)
        QMetaObject::invokeMethod(this, &Tour::place, Qt::QueuedConnection);
    return QFrame::eventFilter(watched, event);
}

}  // namespace hw::viewer
