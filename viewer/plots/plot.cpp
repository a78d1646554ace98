// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/plots/plot.h"

#include <QKeyEvent>
#include <optional>

#include "viewer/plots/axis_ticker.h"
#include "viewer/plots/low_plot.h"
#include "viewer/plots/paint_buffers.h"
#include "viewer/plots/theme.h"

namespace hw::viewer {
namespace {

bool vectorPainting = false;

struct KeyZoom {
    double share = 1, move = 0;  // of what is seen
};

std::optional<KeyZoom> zoomOf(const QKeyEvent& key) {
    constexpr double kCloser = 1.5, kMove = 0.25, kAll = 1e9;  // no plot shows more than there is
    if ((key.modifiers() & ~(Qt::ShiftModifier | Qt::KeypadModifier)) != 0) return std::nullopt;
    switch (key.key()) {
        case Qt::Key_W:
        case Qt::Key_Plus:
        case Qt::Key_Equal:
            return KeyZoom{1 / kCloser};
        case Qt::Key_S:
        case Qt::Key_Minus:
            return KeyZoom{kCloser};
        case Qt::Key_A:
            return KeyZoom{1, -kMove};
        case Qt::Key_D:
            return KeyZoom{1, kMove};
        case Qt::Key_0:
            return KeyZoom{kAll};
        default:
            return std::nullopt;
    }
}

}  // namespace

Plot::Plot(QWidget* parent) : QCustomPlot(parent) {
    setNotAntialiasedElements(QCP::aeNone);
    setAntialiasedElements(QCP::aePlottables | QCP::aeItems);
    setPlottingHint(QCP::phFastPolylines);  // a wide line of thousands of steps is slow as one
    setFocusPolicy(Qt::StrongFocus);
    connect(this, &QCustomPlot::afterLayout, this, &Plot::fitTicks);
    // In the order of the layers: all up to the overlay share one.
    mPaintBuffers = {QSharedPointer<OpaqueBuffer>::create(size(), bufferDevicePixelRatio()),
                     QSharedPointer<OverlayBuffer>::create(size(), bufferDevicePixelRatio(),
                                                           [this] { return overlayShown(); })};
}

// Labels of a short axis would run into one another.
void Plot::fitTicks() {
    for (QCPAxisRect* rect : axisRects())
        for (QCPAxis* axis : rect->axes()) {
            const auto ticker = axis->ticker().dynamicCast<UnitTicker>();
            const bool upright = axis->orientation() == Qt::Vertical;
            if (ticker && (upright ? ticker->fitRows(rect->height()) : ticker->fit(rect->width())))
                rect->update(QCPLayoutElement::upPreparation);  // makes the ticks anew
        }
}

void Plot::setFittingLabel(QCPAxis* axis, const QStringList& longestFirst) {
    labels_[axis] = longestFirst;
    fitLabel(axis);
}

void Plot::fitLabel(QCPAxis* axis) const {
    const bool upright = axis->orientation() == Qt::Vertical;
    const int across = isLow(*this) ? 0 : axis->axisRect()->width();
    const int room = upright ? axis->axisRect()->height() : across;
    const QFontMetrics metrics(uiFont(kAxisPixels));
    QString fitting;
    for (const QString& text : labels_.value(axis))
        if (fitting.isEmpty() && metrics.horizontalAdvance(text) <= room) fitting = text;
    if (fitting == axis->label()) return;
    axis->setLabel(fitting);
    axis->parentPlot()->replot(rpQueuedReplot);
}

// Before the axes know their new size they are given it.
void Plot::resizeEvent(QResizeEvent* event) {
    QCustomPlot::resizeEvent(event);
    for (auto axis = labels_.keyBegin(); axis != labels_.keyEnd(); ++axis) fitLabel(*axis);
}

// The window has a use of its own for these keys.
bool Plot::event(QEvent* event) {
    if (event->type() == QEvent::ShortcutOverride && zoomsByKeys() &&
        zoomOf(*static_cast<QKeyEvent*>(event))) {
        event->accept();
        return true;
    }
    return QCustomPlot::event(event);
}

void Plot::keyPressEvent(QKeyEvent* event) {
    const std::optional<KeyZoom> zoom = zoomOf(*event);
    if (!zoom || !zoomsByKeys()) return QCustomPlot::keyPressEvent(event);
    const QCPRange seen = xAxis->range();
    const double half = seen.size() * zoom->share / 2;
    const double middle = seen.center() + seen.size() * zoom->move;
    xAxis->setRange(middle - half, middle + half);
    replot(rpQueuedReplot);
}

void Plot::setVectorPainting(bool on) {
    vectorPainting = on;
}

void Plot::paintEvent(QPaintEvent* event) {
    QCPPainter painter;
    if (!painter.begin(this)) return;
    if (!vectorPainting) {
        painter.setClipRect(event->rect());
        if (mPaintBuffers.first()->size() != size()) painter.fillRect(rect(), theme().panel);
        for (const auto& buffer : std::as_const(mPaintBuffers)) buffer->draw(&painter);
        if (hasFocus()) {  // with keys one has to see where they go
            painter.setPen(theme().accent);
            painter.setBrush(Qt::NoBrush);
            painter.drawRect(rect().adjusted(0, 0, -1, -1));
        }
        return;
    }
    painter.setMode(QCPPainter::pmVectorized);
    painter.setMode(QCPPainter::pmNoCaching);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.fillRect(rect(), theme().panel);
    toPainter(&painter, width(), height());
}

void Plot::styleAxis(QCPAxis* axis) {
    const Theme& colours = theme();
    axis->setBasePen(QPen(colours.line));
    axis->setTickPen(Qt::NoPen);
    axis->setSubTickPen(Qt::NoPen);
    axis->setTickLabelColor(colours.muted);
    axis->setLabelColor(colours.muted);
    axis->setTickLabelFont(uiFont(kAxisPixels));
    axis->setLabelFont(uiFont(kAxisPixels));
    axis->setTickLengthIn(0);
    axis->setTickLengthOut(0);
    axis->setSubTickLength(0);
    axis->setTickLabelPadding(6);
    axis->setLabelPadding(4);
    axis->grid()->setPen(QPen(colours.grid, 1));
    axis->grid()->setZeroLinePen(QPen(colours.line, 1));
    axis->grid()->setSubGridVisible(false);
}

void Plot::applyTheme() {
    setBackground(QBrush(theme().panel));
    for (QCPAxisRect* rect : axisRects())
        for (QCPAxis* axis : rect->axes()) styleAxis(axis);
}

QRectF drawBadge(QCPPainter* painter, const QPointF& topLeft, const QString& text,
                 const QColor& ink, const QColor& paper) {
    painter->setFont(uiFont(kAxisPixels, true));
    const QFontMetricsF metrics(painter->font());
    const QRectF box(topLeft, QSizeF(metrics.horizontalAdvance(text) + 16, metrics.height() + 7));
    painter->setPen(Qt::NoPen);
    painter->setBrush(paper);
    painter->drawRoundedRect(box, 3, 3);
    painter->setPen(ink);
    painter->drawText(box, Qt::AlignCenter, text);
    return box;
}

}  // namespace hw::viewer
