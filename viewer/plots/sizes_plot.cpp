// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/plots/sizes_plot.h"

#include <QMouseEvent>
#include <algorithm>
#include <cmath>

#include "viewer/plots/axis_ticker.h"
#include "viewer/plots/theme.h"

namespace hw::viewer {
namespace {

constexpr double kSizesHeadroom = 1.12, kSide = 0.04;  // of the axes' lengths
constexpr double kSizesReach = 9;                      // pixels around a point that can be clicked

}  // namespace

SizesPlot::SizesPlot(QWidget* parent) : Plot(parent) {
    axisRect()->setMinimumMargins(QMargins(kLeftMargin, 12, kRightMargin, 40));
    estimated_ = addGraph();
    planned_ = addGraph();
    recorded_ = addGraph();
    budget_ = addGraph();
    recorded_->setLineStyle(QCPGraph::lsNone);
    planned_->setLineStyle(QCPGraph::lsNone);
    xAxis->setLabel(tr("bytes of a step's inputs"));
    yAxis->setLabel(tr("peak memory"));
    budgetText_ = new QCPItemText(this);
    budgetText_->setClipToAxisRect(false);
    budgetText_->setPositionAlignment(Qt::AlignLeft | Qt::AlignVCenter);
    budgetText_->position->setTypeX(QCPItemPosition::ptAxisRectRatio);
    budgetText_->setPadding(QMargins(8, 0, 0, 0));
    setMinimumHeight(60);
    applyTheme();
}

void SizesPlot::applyTheme() {
    Plot::applyTheme();
    xAxis->grid()->setVisible(false);
    const auto points = [](QCPScatterStyle::ScatterShape shape, const QColor& ink, bool filled) {
        return QCPScatterStyle(shape, QPen(ink, 1.5), filled ? QBrush(ink) : QBrush(Qt::NoBrush),
                               7);
    };
    const QColor ours = theme().accent, what = theme().muted;
    estimated_->setPen(QPen(what, 1.4, Qt::DashLine));
    recorded_->setScatterStyle(points(QCPScatterStyle::ssCircle, what, false));
    planned_->setScatterStyle(points(QCPScatterStyle::ssCircle, ours, true));
    budget_->setPen(QPen(theme().text, 1.2, Qt::DashLine));
    budgetText_->setColor(theme().text);
    budgetText_->setFont(uiFont(kAxisPixels, true));
    replot(rpQueuedReplot);
}

void SizesPlot::show(const SizeStudy& study, const SizeUnit& unit) {
    study_ = study;
    unit_ = unit;
    QVector<double> sizes, recorded, plannedSizes, planned;
    double highest = unit.value(study.budget);
    input_ = SizeUnit::fitting(
        core::Bytes(study.rows.empty() ? 0 : static_cast<std::int64_t>(study.rows.back().bytes)));
    for (const SizeRow& row : study.rows) {
        sizes << row.bytes / input_.bytes;
        recorded << unit.value(row.recordedPeak);
        highest = std::max(highest, recorded.back());
        if (!row.planned) continue;
        plannedSizes << sizes.back();
        planned << unit.value(row.plannedPeak);
        highest = std::max(highest, planned.back());
    }
    QVector<double> along, estimate;
    for (const auto& [size, peak] : study.curve) {
        along << size / input_.bytes;
        estimate << unit.value(peak);
    }
    recorded_->setData(sizes, recorded, true);
    planned_->setData(plannedSizes, planned, true);
    estimated_->setData(along, estimate, true);
    const double from = sizes.isEmpty() ? 0 : sizes.front(),
                 to = sizes.isEmpty() ? 1 : sizes.back();
    const double side = std::max(1e-9, to - from) * kSide;
    budget_->setData({from - side, to + side},
                     {unit.value(study.budget), unit.value(study.budget)});
    xAxis->setTicker(QSharedPointer<UnitTicker>::create(input_.name, 7));
    yAxis->setTicker(QSharedPointer<UnitTicker>::create(unit.name, 5));
    xAxis->setRange(from - side, to + side);
    yAxis->setRange(0, std::max(1e-9, highest * kSizesHeadroom));
    budgetText_->setText(tr("budget %1").arg(unit.text(study.budget)));
    budgetText_->position->setCoords(1, unit.value(study.budget));
    replot(rpQueuedReplot);
}

void SizesPlot::mouseReleaseEvent(QMouseEvent* event) {
    Plot::mouseReleaseEvent(event);
    for (const SizeRow& row : study_.rows) {
        const QPointF offset = QPointF(xAxis->coordToPixel(row.bytes / input_.bytes),
                                       yAxis->coordToPixel(unit_.value(row.recordedPeak))) -
                               event->position();
        if (std::hypot(offset.x(), offset.y()) <= kSizesReach) return emit stepPicked(row.step);
    }
}

}  // namespace hw::viewer
