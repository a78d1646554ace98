// SPDX-License-Identifier: GPL-3.0-or-later
// What plots draw into before it is shown. QCustomPlot's own buffers are transparent, so that each
// frame fills, clears and blends every pixel several times; these know what is behind them.
#pragma once

#include <qcustomplot.h>

#include <QImage>
#include <functional>

namespace hw::viewer {

/// All that lies below the overlay, on the panel's colour: showing it is a copy.
class OpaqueBuffer : public QCPAbstractPaintBuffer {
public:
    OpaqueBuffer(const QSize& size, double devicePixelRatio);
    QCPPainter* startPainting() override { return new QCPPainter(&image_); }
    void draw(QCPPainter* painter) const override;
    /// The colour is the panel's, whatever is asked for.
    void clear(const QColor& colour) override;

protected:
    void reallocateBuffer() override;

private:
    QImage image_;
};

/// What lies over it, touched only while there is something.
class OverlayBuffer : public QCPAbstractPaintBuffer {
public:
    /// `shows`: whether anything will be drawn.
    OverlayBuffer(const QSize& size, double devicePixelRatio, std::function<bool()> shows);
    QCPPainter* startPainting() override;
    void draw(QCPPainter* painter) const override;
    void clear(const QColor& colour) override;

protected:
    void reallocateBuffer() override;

private:
    std::function<bool()> shows_;
    QImage image_;
    bool clean_ = true;
};

}  // namespace hw::viewer
