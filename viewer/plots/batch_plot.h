// SPDX-License-Identifier: GPL-3.0-or-later
// A curve for each planner: the largest batch over the budget, or items a second over the batch.
#pragma once

#include "viewer/models/batch_study.h"
#include "viewer/models/format.h"
#include "viewer/plots/plot.h"

namespace hw::viewer {

class BatchPlot : public Plot {
    Q_OBJECT
public:
    using Curve = BatchCurve;
    /// `named`: the planners' names stand beside their curves' ends.
    BatchPlot(const QString& xLabel, const QString& yLabel, bool named, QWidget* parent = nullptr);

    /// `xUnit`: of the axis, may be empty. `at`: where on it a line stands; none below 0.
    void show(std::vector<Curve> curves, const QString& xUnit, double at, const QString& atText);
    const std::vector<Curve>& curves() const { return curves_; }
    QPointF pixelOf(const QPointF& point) const;
    void applyTheme() override;

signals:
    void pointPicked(const QString& planner, double x);
    void placePicked(double x);

protected:
    void resizeEvent(QResizeEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;

private:
    struct Hit {
        const Curve* curve = nullptr;
        QPointF point;
    };
    Hit hitAt(const QPointF& pixel) const;
    void draw();
    void drawPlace();
    void mark(const Curve& curve);
    void nameCurves();

    std::vector<Curve> curves_;
    bool named_;
    QString xUnit_, atText_;
    double at_ = -1;
};

/// Both curves side by side.
class BatchPlots : public QWidget {
    Q_OBJECT
public:
    explicit BatchPlots(QWidget* parent = nullptr);

    void show(const BatchResults& results, const QStringList& planners);
    BatchPlot& budgets() const { return *budgets_; }  // the largest batch over the budget
    BatchPlot& sizes() const { return *sizes_; }      // items a second over the batch
    void applyTheme();

signals:
    void budgetPicked(hw::core::Bytes budget);
    void sizePicked(const QString& planner, qint64 size);

private:
    BatchPlot *budgets_, *sizes_;
    SizeUnit unit_;  // of the budgets
};

}  // namespace hw::viewer
