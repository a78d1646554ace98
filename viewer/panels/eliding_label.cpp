// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/panels/eliding_label.h"

#include <QHelpEvent>
#include <QPainter>
#include <QToolTip>

#include "viewer/plots/theme.h"

namespace hw::viewer {

ElidingLabel::ElidingLabel(QWidget* parent) : QLabel(parent) {
    setTextFormat(Qt::PlainText);
}

void ElidingLabel::setAlert(bool alert) {
    alert_ = alert;
    update();
}

QSize ElidingLabel::minimumSizeHint() const {
    return {1, QLabel::minimumSizeHint().height()};
}

void ElidingLabel::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.setFont(font());
    painter.setPen(alert_ ? theme().alert : palette().color(foregroundRole()));
    const QRect room = contentsRect();
    painter.drawText(room, static_cast<int>(alignment() | Qt::TextSingleLine),
                     fontMetrics().elidedText(text(), Qt::ElideRight, room.width()));
}

bool ElidingLabel::event(QEvent* event) {
    const bool cut = fontMetrics().horizontalAdvance(text()) > contentsRect().width();
    if (event->type() != QEvent::ToolTip || !toolTip().isEmpty() || !cut)
        return QLabel::event(event);
    QToolTip::showText(static_cast<QHelpEvent*>(event)->globalPos(), text(), this);
    return true;
}

}  // namespace hw::viewer
