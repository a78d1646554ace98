// SPDX-License-Identifier: GPL-3.0-or-later
// Phase, layer and op lanes under the timeline, on the same time axis, and streams of the device.
#pragma once

#include "viewer/models/document.h"
#include "viewer/plots/plot.h"

namespace hw::viewer {

/// Draws the lanes into an axis rect of its own, lane i of n between values n-i-1 and n-i.
class LaneStrip : public QCPAbstractPlottable {
public:
    LaneStrip(QCPAxis* time, QCPAxis* lane);

    void setDocument(DocumentPointer document);
    /// Names from top to bottom; without a document those that every one has.
    static QStringList lanesOf(const Document* document);
    void setSelectedOp(core::OpIndex op) { selected_ = op; }

    double selectTest(const QPointF&, bool, QVariant*) const override { return -1; }
    QCPRange getKeyRange(bool& found, QCP::SignDomain) const override;
    QCPRange getValueRange(bool& found, QCP::SignDomain, const QCPRange&) const override;

protected:
    void draw(QCPPainter* painter) override;
    void drawLegendIcon(QCPPainter*, const QRectF&) const override {}

private:
    QRectF laneRect(int lane) const;  // pixels of the visible part of a lane
    template <class Colour, class Label>
    void drawLane(QCPPainter* painter, int lane, const std::vector<LaneSpan>& spans, Colour colour,
                  Label label);
    void drawHatched(QCPPainter* painter, int lane, const QString& text);
    void drawSelection(QCPPainter* painter);

    DocumentPointer document_;
    int count_ = 0;
    core::OpIndex selected_ = core::kNone;
};

}  // namespace hw::viewer
