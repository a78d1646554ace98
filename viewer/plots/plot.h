// SPDX-License-Identifier: GPL-3.0-or-later
// What all plots share: the theme on every axis, and pictures as vectors.
#pragma once

#include <qcustomplot.h>

namespace hw::viewer {

/// Pixels beside plots that lie below the timeline, as it has them.
inline constexpr int kLeftMargin = 72, kRightMargin = 118;

class Plot : public QCustomPlot {
    Q_OBJECT
public:
    explicit Plot(QWidget* parent = nullptr);

    /// While set, plots draw themselves as vectors on whatever they are rendered to, instead of
    /// through their buffers.
    static void setVectorPainting(bool on);

    virtual void applyTheme();

protected:
    /// Whether the layer "overlay" has anything to draw.
    virtual bool overlayShown() const { return true; }
    /// Whether the keys that zoom and move the timeline do so here while this has the keys.
    virtual bool zoomsByKeys() const { return interactions().testFlag(QCP::iRangeZoom); }
    bool event(QEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    /// The first of these that is no longer than the axis, at every size.
    void setFittingLabel(QCPAxis* axis, const QStringList& longestFirst);
    static void styleAxis(QCPAxis* axis);

private:
    void fitTicks();
    void fitLabel(QCPAxis* axis) const;
    QHash<QCPAxis*, QStringList> labels_;
};

/// Rounded text box, drawn by several items. Returns its rectangle.
QRectF drawBadge(QCPPainter* painter, const QPointF& topLeft, const QString& text,
                 const QColor& ink, const QColor& paper);

}  // namespace hw::viewer
