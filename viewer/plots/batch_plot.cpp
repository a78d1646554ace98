// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/plots/batch_plot.h"

#include <QHBoxLayout>
#include <QMouseEvent>
#include <QToolTip>
#include <algorithm>
#include <cmath>

#include "viewer/plots/axis_ticker.h"
#include "viewer/plots/planner_style.h"
#include "viewer/plots/theme.h"

namespace hw::viewer {
namespace {

constexpr double kBatchReach = 10;  // pixels around a point that can be clicked
constexpr int kNameRoom = 104;      // pixels right of the axes
constexpr double kNameHeight = 14;
constexpr double kBatchHeadroom = 1.14, kBatchSide = 1.05;

QString numberText(double value) {
    return QString::number(value, 'f', value < 100 && value != std::floor(value) ? 1 : 0);
}

}  // namespace

BatchPlot::BatchPlot(const QString& xLabel, const QString& yLabel, bool named, QWidget* parent)
    : Plot(parent), named_(named) {
    axisRect()->setMinimumMargins(QMargins(60, 22, named ? kNameRoom : 16, 40));
    xAxis->setLabel(xLabel);
    yAxis->setLabel(yLabel);
    yAxis->setTicker(QSharedPointer<UnitTicker>::create(QString(), 5));
    setMouseTracking(true);
    setMinimumSize(150, 60);
    applyTheme();
}

void BatchPlot::applyTheme() {
    Plot::applyTheme();
    xAxis->grid()->setVisible(false);
    draw();
}

void BatchPlot::show(std::vector<Curve> curves, const QString& xUnit, double at,
                     const QString& atText) {
    curves_ = std::move(curves);
    xUnit_ = xUnit;
    at_ = at;
    atText_ = atText;
    draw();
}

void BatchPlot::draw() {
    clearGraphs();
    clearItems();
    double right = std::max(at_, 0.0), top = 0;
    for (const Curve& curve : curves_) {
        const PlannerStyle style = plannerStyle(curve.planner);
        QCPGraph* graph = addGraph();
        graph->setPen(style.pen);
        graph->setScatterStyle(style.marker);
        for (const QPointF& point : curve.points) {
            graph->addData(point.x(), point.y());
            right = std::max(right, point.x());
            top = std::max(top, point.y());
        }
    }
    if (xUnit_.isEmpty())  // batches
        xAxis->setTicker(QSharedPointer<WholeTicker>::create(QString(), 6));
    else
        xAxis->setTicker(QSharedPointer<UnitTicker>::create(xUnit_, 6));
    xAxis->setRange(0, std::max(1e-9, right * kBatchSide));
    yAxis->setRange(0, std::max(1e-9, top * kBatchHeadroom));
    for (const Curve& curve : curves_) mark(curve);
    if (at_ >= 0) drawPlace();
    if (named_) nameCurves();
    replot(rpQueuedReplot);
}

void BatchPlot::drawPlace() {
    auto* line = new QCPItemStraightLine(this);
    line->setPen(QPen(theme().text, 1.2, Qt::DashLine));
    line->point1->setCoords(at_, 0);
    line->point2->setCoords(at_, 1);
    auto* label = new QCPItemText(this);
    label->setClipToAxisRect(false);
    label->setText(atText_);
    label->setColor(theme().text);
    label->setFont(uiFont(kAxisPixels, true));
    label->setPositionAlignment(Qt::AlignHCenter | Qt::AlignBottom);
    label->position->setTypeY(QCPItemPosition::ptAxisRectRatio);
    label->position->setCoords(at_, 0);
}

// From the lowest one up, each as high as its curve ends or right above the one before.
void BatchPlot::nameCurves() {
    std::vector<const Curve*> ending;
    for (const Curve& curve : curves_)
        if (!curve.points.empty()) ending.push_back(&curve);
    std::sort(ending.begin(), ending.end(), [](const Curve* a, const Curve* b) {
        return a->points.back().y() < b->points.back().y();
    });
    const double height = std::max(1, axisRect()->height());
    double above = 1 + kNameHeight / height;
    for (const Curve* curve : ending) {
        const double wanted = 1 - curve->points.back().y() / yAxis->range().upper;
        above = std::min(wanted, above - kNameHeight / height);
        auto* name = new QCPItemText(this);
        name->setClipToAxisRect(false);
        name->setText(curve->planner);
        name->setColor(plannerStyle(curve->planner).colour());
        name->setFont(uiFont(kAxisPixels));
        name->setPositionAlignment(Qt::AlignLeft | Qt::AlignVCenter);
        name->setPadding(QMargins(8, 0, 0, 0));
        name->position->setType(QCPItemPosition::ptAxisRectRatio);
        name->position->setCoords(1, above);
    }
}

void BatchPlot::resizeEvent(QResizeEvent* event) {
    Plot::resizeEvent(event);
    draw();
}

// A ring around the point, and its figures where no other curve's are.
void BatchPlot::mark(const Curve& curve) {
    if (curve.marked < 0) return;
    const QPointF point = curve.points[curve.marked];
    QCPGraph* ring = addGraph();
    ring->setLineStyle(QCPGraph::lsNone);
    ring->setScatterStyle(QCPScatterStyle(QCPScatterStyle::ssCircle,
                                          QPen(plannerStyle(curve.planner).colour(), 1.6),
                                          QBrush(Qt::NoBrush), 15));
    ring->addData(point.x(), point.y());
    if (&curve != &curves_.back()) return;
    auto* label = new QCPItemText(this);
    label->setClipToAxisRect(false);
    label->setText(tr("%1 a second at %2").arg(numberText(point.y()), numberText(point.x())));
    label->setColor(plannerStyle(curve.planner).colour());
    label->setFont(uiFont(kAxisPixels, true));
    const bool rightHalf = point.x() > xAxis->range().center();
    label->setPositionAlignment((rightHalf ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignBottom);
    label->setPadding(QMargins(4, 0, 4, 10));
    label->position->setCoords(point);
}

QPointF BatchPlot::pixelOf(const QPointF& point) const {
    return {xAxis->coordToPixel(point.x()), yAxis->coordToPixel(point.y())};
}

BatchPlot::Hit BatchPlot::hitAt(const QPointF& pixel) const {
    Hit hit;
    double nearest = kBatchReach;
    for (const Curve& curve : curves_)
        for (const QPointF& point : curve.points) {
            const QPointF offset = pixelOf(point) - pixel;
            const double distance = std::hypot(offset.x(), offset.y());
            if (distance < nearest) nearest = distance, hit = {&curve, point};
        }
    return hit;
}

void BatchPlot::mousePressEvent(QMouseEvent* event) {
    Plot::mousePressEvent(event);
    if (event->button() != Qt::LeftButton) return;
    if (const Hit hit = hitAt(event->position()); hit.curve != nullptr)
        emit pointPicked(hit.curve->planner, hit.point.x());
    else if (axisRect()->rect().contains(event->pos()))
        emit placePicked(xAxis->pixelToCoord(event->position().x()));
}

void BatchPlot::mouseMoveEvent(QMouseEvent* event) {
    Plot::mouseMoveEvent(event);
    const Hit hit = hitAt(event->position());
    setCursor(hit.curve != nullptr ? Qt::PointingHandCursor : Qt::ArrowCursor);
    if (hit.curve == nullptr) return QToolTip::hideText();
    const QString x =
        numberText(hit.point.x()) + (xUnit_.isEmpty() ? QString() : QLatin1Char(' ') + xUnit_);
    QToolTip::showText(
        event->globalPosition().toPoint(),
        tr("%1: %2 %3, %4 %5")
            .arg(hit.curve->planner, xAxis->label(), x, yAxis->label(), numberText(hit.point.y())),
        this);
}

BatchPlots::BatchPlots(QWidget* parent) : QWidget(parent) {
    budgets_ = new BatchPlot(tr("budget"), tr("largest batch"), /*named=*/true);
    sizes_ = new BatchPlot(tr("batch"), tr("items a second"), /*named=*/false);
    auto* row = new QHBoxLayout(this);
    row->setContentsMargins(0, 0, 0, 0);
    row->setSpacing(0);
    row->addWidget(budgets_, 1);
    row->addWidget(sizes_, 1);
    const auto pick = [this](double x) {
        emit budgetPicked(core::Bytes(std::llround(x * unit_.bytes)));
    };
    connect(budgets_, &BatchPlot::placePicked, this, pick);
    connect(budgets_, &BatchPlot::pointPicked, this, [pick](const QString&, double x) { pick(x); });
    connect(sizes_, &BatchPlot::pointPicked, this, [this](const QString& planner, double x) {
        emit sizePicked(planner, static_cast<qint64>(x));
    });
}

void BatchPlots::show(const BatchResults& results, const QStringList& planners) {
    unit_ = SizeUnit::fitting(results.budget);
    budgets_->show(sizeOverBudget(results, planners, unit_.bytes), unit_.name,
                   unit_.value(results.budget), unit_.text(results.budget));
    sizes_->show(speedOverSize(results, planners), {}, -1, {});
}

void BatchPlots::applyTheme() {
    budgets_->applyTheme();
    sizes_->applyTheme();
}

}  // namespace hw::viewer
