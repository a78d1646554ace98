// SPDX-License-Identifier: GPL-3.0-or-later
// The peak of each step of a live run against its budget, coloured by what decided in the step;
// below it, where there is room, the time of each step and what of it the budget took.
#pragma once

#include <vector>

#include "viewer/models/format.h"
#include "viewer/models/live_progress.h"
#include "viewer/plots/plot.h"

namespace hw::viewer {

class AreaGraph;

/// Of a mode's steps, as the curves of its planners are elsewhere.
QColor liveModeColour(const QString& mode);
/// Of the time that recomputations and the runtime took.
QColor liveCostColour();

class LiveStepsPlot : public Plot {
    Q_OBJECT
public:
    explicit LiveStepsPlot(QWidget* parent = nullptr);

    /// Adds what is new of the same run; begins anew with fewer steps or another budget.
    void show(const LiveProgress& progress, const std::optional<core::Bytes>& budget);
    void applyTheme() override;
    bool timesShown() const { return times_->visible(); }
    int stepsDrawn() const { return static_cast<int>(steps_.size()); }
    /// The highest step and the budget where they are drawn, in the axis' unit; for tests.
    double highestDrawn() const;
    double budgetDrawn() const { return budgetLine_->point1->value(); }
    /// What a step's column says under the cursor; empty beside the steps.
    QString textAt(double step) const;

signals:
    /// Times are there, or not any more.
    void timesChanged();

protected:
    void mouseMoveEvent(QMouseEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;

private:
    void buildTimes();
    void showTimes(bool shown);
    void drawBudget(core::Bytes budget);
    void measureIn(const SizeUnit& size);
    void clear(const std::optional<core::Bytes>& budget);
    void add(const LiveStep& step, const QString& mode);
    AreaGraph* makeGraph(QCPAxis* key, QCPAxis* value);
    AreaGraph& graphOf(std::size_t mode, const QString& name);
    void keepWithin(const QCPRange& wanted);
    double end() const;

    std::vector<LiveStep> steps_;
    double begin_ = 0;  // the number of the first one
    std::vector<QString> modes_;
    std::vector<AreaGraph*> graphs_;  // of the modes
    QCPGraph* edge_;                  // of all of them
    QCPAxisRect* times_;
    AreaGraph *took_, *cost_;  // milliseconds of a step, and what of them the budget took
    core::Nanoseconds longest_;
    std::optional<core::Bytes> budget_;
    SizeUnit size_;
    QCPItemStraightLine* budgetLine_;
    QCPItemText* budgetText_;
};

}  // namespace hw::viewer
