// SPDX-License-Identifier: GPL-3.0-or-later
// What fitting costs: extra step time of every planner over the budget.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "viewer/models/workspace.h"
#include "viewer/plots/plot.h"

namespace hw::viewer {

class FrontierPlot;

/// The shaded impossible region, the budget's line, the labels on the curves.
class FrontierMarks : public QCPLayerable {
public:
    FrontierMarks(FrontierPlot* plot, const QString& layer, bool background);

protected:
    void applyDefaultAntialiasingHint(QCPPainter* painter) const override;
    void draw(QCPPainter* painter) override;

private:
    void drawInfeasible(QCPPainter* painter);
    void drawBudget(QCPPainter* painter);
    QRectF floorLabelAt(const QString& text) const;
    void drawFloorLabel(QCPPainter* painter);
    std::vector<QRectF> drawLabels(QCPPainter* painter);
    void drawBoundLabel(QCPPainter* painter, std::vector<QRectF>& taken);
    void drawActive(QCPPainter* painter, std::vector<QRectF>& taken);
    double hiddenBy(const QRectF& box, const std::vector<QRectF>& taken) const;
    void drawName(QCPPainter* painter, const QRectF& box, const QString& text,
                  const QColor& ink) const;
    FrontierPlot& frontier_;
    bool background_;
};

class FrontierPlot : public Plot {
    Q_OBJECT
public:
    explicit FrontierPlot(Workspace& workspace, QWidget* parent = nullptr);

    void reload();
    void applyTheme() override;
    /// Budgets at the ends of the axis, as ratios of the recorded peak.
    double lowestRatio() const;
    double highestRatio() const { return 1.0; }
    /// Pixels of the axis' ends, for the slider above it.
    int axisLeft() const;
    int axisRight() const;
    /// Planners with a curve, the one on top last.
    QStringList drawn() const;
    bool boundDrawn() const { return bound_.size() > 1; }
    /// The plan whose point is within reach of the pixel; null where there is none.
    PlanPointer planAt(const QPointF& pixel) const;
    /// Where texts are, as they were drawn last: of the floor, of planners, of the drawn plan.
    const std::vector<QRectF>& labels() const { return labels_; }

signals:
    void planClicked(const hw::viewer::PlanPointer& plan);
    void budgetClicked(double ratio);

protected:
    void resizeEvent(QResizeEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;

private:
    friend class FrontierMarks;
    struct Curve {
        QString planner;
        std::vector<PlanPointer> points;  // by descending budget
    };
    QPointF pixelOf(const PlanEntry& plan) const;
    void addBound();

    Workspace& workspace_;
    std::vector<Curve> curves_;
    std::vector<QRectF> labels_;
    std::map<double, double> bound_;  // proven: percent of extra time over percent of the peak
};

}  // namespace hw::viewer
