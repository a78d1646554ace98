// SPDX-License-Identifier: GPL-3.0-or-later
// The memory trace of a plan: a row a storage, a bar a stretch of time in which it is in memory.
#pragma once

#include <vector>

#include "viewer/models/document.h"
#include "viewer/models/trace_marks.h"
#include "viewer/plots/plane_plot.h"

namespace hw::viewer {

class TracePlot;

/// The bars, and over them the phases, the steps that recompute, the peak and the title.
class TraceLayer : public QCPLayerable {
public:
    enum class Part { Bars, Marks };
    TraceLayer(TracePlot* plot, Part part);

protected:
    void applyDefaultAntialiasingHint(QCPPainter* painter) const override;
    void draw(QCPPainter* painter) override;

private:
    void drawBars(QCPPainter* painter);
    void drawTitle(QCPPainter* painter);
    void drawPhases(QCPPainter* painter);
    void drawRecomputedSteps(QCPPainter* painter);
    void drawPeak(QCPPainter* painter);
    void drawSelection(QCPPainter* painter);
    TracePlot& plot_;
    Part part_;
};

class TracePlot : public PlanePlot {
    Q_OBJECT
public:
    explicit TracePlot(QWidget* parent = nullptr);

    /// Without a plan the recorded step is shown.
    void show(const DocumentPointer& document, const PlanPointer& plan);
    void setAxes(TraceAxes axes);
    TraceAxes axes() const { return axes_; }
    void setSelectedOp(core::OpIndex op);
    void zoom(double factor);  // of the time, about the middle of what is seen

    const PlanTrace& trace() const { return trace_; }
    /// What is at a pixel: storage, op, layer, bytes, how often computed; empty outside of the
    /// rows.
    QString describe(const QPointF& pixel) const override;
    /// The middle of the bar's pixels, for tests and for tooltips.
    QPointF pixelOf(const TraceBar& bar) const;
    QString title() const override;

signals:
    void opClicked(hw::core::OpIndex op);

protected:
    QCPRange whole(const QCPAxis* axis) const override;
    void clicked(const QPointF& pixel) override;

private:
    friend class TraceLayer;
    TraceView view() const;
    double acrossOf(std::int32_t step) const;  // in the unit of the axis
    double rowUnit() const;                    // rows or bytes in one unit of the axis
    void labelAxes();
    std::int32_t stepAt(double x) const;  // of a pixel
    std::int32_t rowAt(double y) const;   // kNone outside

    DocumentPointer document_;
    PlanPointer plan_;
    PlanTrace trace_;
    TraceAxes axes_;
    core::OpIndex selected_ = core::kNone;
};

}  // namespace hw::viewer
