// SPDX-License-Identifier: GPL-3.0-or-later
// Marks on a plane: dragged and zoomed both ways within bounds, named under the cursor, clicked.
#pragma once

#include "viewer/plots/plot.h"

namespace hw::viewer {

class PlanePlot : public Plot {
    Q_OBJECT
public:
    void resetZoom();
    void applyTheme() override;

    /// What is at a pixel; empty where nothing is.
    virtual QString describe(const QPointF& pixel) const = 0;
    virtual QString title() const = 0;

protected:
    /// `top`: pixels above the plane; `closest`: the least share of the whole that is shown.
    PlanePlot(int top, double closest, QWidget* parent);

    virtual QCPRange whole(const QCPAxis* axis) const = 0;
    virtual void clicked(const QPointF& pixel) = 0;  // on the plane, without dragging

    void mouseMoveEvent(QMouseEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void mouseDoubleClickEvent(QMouseEvent* event) override;

private:
    void clamp(QCPAxis* axis, const QCPRange& wanted);

    double closest_;
    QPoint pressed_;
    bool clamping_ = false;
};

/// The name before the first " · " strong, the rest muted and cut where the room ends. Returns the
/// width of both.
double drawPlotTitle(QCPPainter* painter, const QRectF& line, const QString& title);

}  // namespace hw::viewer
