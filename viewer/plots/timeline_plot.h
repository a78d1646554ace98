// SPDX-License-Identifier: GPL-3.0-or-later
// Memory over the step: the recorded curve stacked by band, the plan's curve over it.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "viewer/models/document.h"
#include "viewer/models/selection.h"
#include "viewer/plots/lane_strip.h"
#include "viewer/plots/plot.h"
#include "viewer/plots/readout.h"

namespace hw::viewer {

class TimelinePlot;

/// Budget, peaks and their labels; they may reach into the margins.
class TimelineMarks : public QCPLayerable {
public:
    explicit TimelineMarks(TimelinePlot* plot);

protected:
    void applyDefaultAntialiasingHint(QCPPainter* painter) const override;
    void draw(QCPPainter* painter) override;

private:
    QRectF drawPeak(QCPPainter* painter, const StepCurve& curve, const QString& text,
                    const QColor& ink, const QRectF& avoid);
    void drawBudget(QCPPainter* painter);
    void drawLevel(QCPPainter* painter, double y, const QString& text, bool bold,
                   const QColor& ink);
    void drawCapacity(QCPPainter* painter);
    void drawGaps(QCPPainter* painter);
    void drawMarks(QCPPainter* painter);
    void drawNothing(QCPPainter* painter, const QString& why);
    void drawLife(QCPPainter* painter);
    void drawRange(QCPPainter* painter);
    TimelinePlot& timeline_;
};

class TimelinePlot : public Plot {
    Q_OBJECT
public:
    static constexpr int kPeakLabel = 23;     // pixels of a peak's label, in height
    static constexpr int kLabelMargin = 118;  // pixels on the right: the budget's label

    static constexpr int kNarrow = 520;         // pixels below which labels stand over the curve
    static constexpr double kNarrowest = 1e-3;  // milliseconds that can be looked at

    explicit TimelinePlot(QWidget* parent = nullptr);

    void setDocument(const DocumentPointer& document);
    void setPlan(const PlanPointer& plan);
    /// What a training under a plan holds, on that plan's axis; null: no line.
    void setLive(std::shared_ptr<const StepCurve> curve);
    /// Another session's step, on the same axes from its own start; null: no line.
    void setOther(const DocumentPointer& other);
    void setBudget(std::optional<core::Bytes> budget);
    /// Marks the op; the life of a tensor; the bytes that a layer holds.
    void setSelection(const Selection& selection);
    void setRange(std::optional<TimeRange> range);
    void applyTheme() override;

    void zoom(double factor);  // about the middle of what is seen; above 1 shows less
    void pan(double share);    // of the visible width
    void resetZoom();
    bool showsWhole() const;
    void showTime(const QCPRange& milliseconds);
    /// Those that the recorded step has, from the bottom of the stack.
    std::vector<Band> bands() const;

    const Readout& readout() const { return *readout_; }
    QCPRange visibleTime() const;
    /// The highest drawn total (in the axis' unit) of what is seen; for tests of the level of
    /// detail.
    double highestDrawn() const;
    bool showsLive() const { return live_ != nullptr; }
    const DocumentPointer& other() const { return other_; }
    /// The highest of the other's line as it is drawn, in the axis' unit; 0 without one.
    double highestOther() const;
    /// The highest of the live line as it is drawn, in the axis' unit; 0 without one.
    double highestLive() const;
    /// Bytes that the selected layer and its parts hold, by moment; empty without one.
    const std::vector<core::Bytes>& held() const { return held_; }

signals:
    void visibleTimeChanged();
    void opClicked(hw::core::OpIndex op);
    /// Shift and drag, once it ends; none: a click with Shift.
    void rangePicked(std::optional<hw::viewer::TimeRange> range);

protected:
    bool overlayShown() const override { return readout_ && readout_->content(); }
    bool zoomsByKeys() const override { return false; }  // the window's own keys do
    void mouseMoveEvent(QMouseEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void leaveEvent(QEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;

private:
    friend class TimelineMarks;
    void buildAxes();
    void nameLanes();
    void buildGraphs();
    void rebuild();  // data of the visible range, at the present width
    void rescale();
    double headroom() const;  // highest value of the axis, in peaks
    void showOp(core::OpIndex op);
    void linesChanged(bool showedWhole);
    void rebuildLine(QCPGraph& line, const StepCurve* curve, int columns);
    void measureHeld();
    void rebuildHeld(core::Nanoseconds from, core::Nanoseconds to, int columns);
    std::optional<TimeRange> dragged(const QPointF& to) const;
    void pickAt(const QPointF& pixel);
    double endMilliseconds() const;
    void clampRange(const QCPRange& wanted);
    void showReadout(std::optional<double> milliseconds);
    const StepCurve& curve() const;  // of what is seen, as exact as it is drawn

    DocumentPointer document_;
    StepCurve window_;  // of a series: what is seen of it
    PlanPointer plan_;
    std::shared_ptr<const StepCurve> live_;
    DocumentPointer other_;
    std::optional<core::Bytes> budget_;
    Selection selection_;
    std::optional<TimeRange> range_;
    std::vector<core::Bytes> held_;
    QCPGraph* heldGraph_ = nullptr;
    QCPAxisRect* area_;
    QCPAxisRect* laneArea_;
    LaneStrip* lanes_ = nullptr;
    TimelineMarks* marks_ = nullptr;
    Readout* readout_ = nullptr;
    std::vector<std::pair<Band, QCPGraph*>> stack_;
    QCPGraph* planGraph_ = nullptr;
    QCPGraph* liveGraph_ = nullptr;
    QCPGraph* otherGraph_ = nullptr;
    QPoint pressed_;
    bool measuring_ = false;  // a stretch of time is being dragged
    bool clamping_ = false;
};

}  // namespace hw::viewer
