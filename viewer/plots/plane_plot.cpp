// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/plots/plane_plot.h"

#include <QMouseEvent>
#include <QToolTip>
#include <algorithm>

#include "viewer/plots/theme.h"

namespace hw::viewer {
namespace {
constexpr int kPlaneLeft = 86, kPlaneRight = 24, kBottom = 46;
constexpr int kClick = 3;  // pixels that a click may move
}  // namespace

PlanePlot::PlanePlot(int top, double closest, QWidget* parent) : Plot(parent), closest_(closest) {
    axisRect()->setAutoMargins(QCP::msNone);
    axisRect()->setMargins(QMargins(kPlaneLeft, top, kPlaneRight, kBottom));
    setInteractions(QCP::iRangeDrag | QCP::iRangeZoom);
    axisRect()->setRangeDrag(Qt::Horizontal | Qt::Vertical);
    axisRect()->setRangeZoom(Qt::Horizontal | Qt::Vertical);
    for (QCPAxis* axis : {xAxis, yAxis})
        connect(axis, qOverload<const QCPRange&>(&QCPAxis::rangeChanged), this,
                [this, axis](const QCPRange& wanted) { clamp(axis, wanted); });
    setMouseTracking(true);
    setMinimumSize(240, 110);
    PlanePlot::applyTheme();
}

void PlanePlot::applyTheme() {
    Plot::applyTheme();
    xAxis->grid()->setVisible(false);
    replot(rpQueuedReplot);
}

void PlanePlot::resetZoom() {
    xAxis->setRange(whole(xAxis));
    yAxis->setRange(whole(yAxis));
    replot(rpQueuedReplot);
}

void PlanePlot::clamp(QCPAxis* axis, const QCPRange& wanted) {
    if (clamping_) return;
    clamping_ = true;
    const double end = whole(axis).upper;
    const double width = std::clamp(wanted.size(), end * closest_, end);
    const double lower = std::clamp(wanted.lower, 0.0, end - width);
    axis->setRange(lower, lower + width);
    clamping_ = false;
}

void PlanePlot::mouseMoveEvent(QMouseEvent* event) {
    Plot::mouseMoveEvent(event);
    const QString text = event->buttons() ? QString() : describe(event->position());
    if (text.isEmpty())
        QToolTip::hideText();
    else
        QToolTip::showText(event->globalPosition().toPoint(), text, this);
}

void PlanePlot::mousePressEvent(QMouseEvent* event) {
    pressed_ = event->pos();
    // The right button chooses what its menu speaks of.
    if (event->button() == Qt::RightButton && axisRect()->rect().contains(event->pos()))
        return clicked(event->position());
    Plot::mousePressEvent(event);
}

void PlanePlot::mouseReleaseEvent(QMouseEvent* event) {
    Plot::mouseReleaseEvent(event);
    if (event->button() != Qt::RightButton &&
        (event->pos() - pressed_).manhattanLength() <= kClick &&
        axisRect()->rect().contains(event->pos()))
        clicked(event->position());
}

void PlanePlot::mouseDoubleClickEvent(QMouseEvent* event) {
    Plot::mouseDoubleClickEvent(event);
    resetZoom();
}

double drawPlotTitle(QCPPainter* painter, const QRectF& line, const QString& title) {
    const QString name = title.section(QStringLiteral(" · "), 0, 0);
    const QString rest = title.mid(name.size());
    painter->setFont(uiFont(kBasePixels, true));
    const double width = QFontMetricsF(painter->font()).horizontalAdvance(name) + 1;
    painter->setPen(theme().text);
    painter->drawText(line, Qt::AlignVCenter, name);
    painter->setFont(uiFont(kBasePixels));
    painter->setPen(theme().muted);
    const QFontMetricsF metrics(painter->font());
    const double room = std::max(0.0, line.width() - width);
    painter->drawText(line.adjusted(width, 0, 0, 0), Qt::AlignVCenter,
                      metrics.elidedText(rest, Qt::ElideRight, room));
    return width + std::min(room, metrics.horizontalAdvance(rest));
}

}  // namespace hw::viewer
