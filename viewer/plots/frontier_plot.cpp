// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/plots/frontier_plot.h"

#include <QMouseEvent>
#include <QToolTip>
#include <algorithm>
#include <cmath>
#include <map>

#include "viewer/plots/axis_ticker.h"
#include "viewer/plots/theme.h"

namespace hw::viewer {
namespace {
constexpr int kLeft = 76, kRight = 52, kTop = 14,
              kBottom = 46;            // fixed: the slider lines up with them
constexpr double kReach = 10;          // pixels around a point that can be clicked
constexpr double kLowestPercent = 10;  // height of the axis when nothing costs more
}  // namespace

FrontierPlot::FrontierPlot(Workspace& workspace, QWidget* parent)
    : Plot(parent), workspace_(workspace) {
    axisRect()->setAutoMargins(QCP::msNone);
    axisRect()->setMargins(QMargins(kLeft, kTop, kRight, kBottom));
    xAxis->setTicker(QSharedPointer<UnitTicker>::create(QStringLiteral("%"), 6));
    yAxis->setTicker(QSharedPointer<UnitTicker>::create(QStringLiteral("%"), 5, true));
    xAxis->setLabel(tr("budget, share of the recorded peak"));
    yAxis->setLabel(tr("extra step time"));
    new FrontierMarks(this, QStringLiteral("background"), true);
    new FrontierMarks(this, QStringLiteral("legend"), false);
    setMouseTracking(true);
    setMinimumSize(300, 180);
    reload();
}

int FrontierPlot::axisLeft() const {
    return kLeft;
}
int FrontierPlot::axisRight() const {
    return width() - kRight;
}

// A little of what is impossible stays in sight, so that its edge can be seen.
double FrontierPlot::lowestRatio() const {
    if (!workspace_.document()) return 0;
    const double floor = ratio(workspace_.document()->floor, workspace_.document()->peak());
    return std::clamp(std::floor((floor - 0.04) * 20) / 20, 0.0, 0.95);
}

void FrontierPlot::applyTheme() {
    Plot::applyTheme();
    xAxis->grid()->setVisible(false);
    reload();
}

void FrontierPlot::reload() {
    Plot::applyTheme();
    xAxis->grid()->setVisible(false);
    clearGraphs();
    curves_.clear();
    double highest = kLowestPercent;
    const QStringList planners = workspace_.planners();
    for (int i = 0; i < planners.size() && workspace_.document(); ++i) {
        Curve curve{planners[i], theme().planner(planners[i], i), workspace_.frontier(planners[i])};
        if (curve.points.empty()) continue;
        QCPGraph* graph = addGraph();
        graph->setPen(QPen(curve.colour, planners[i] == QLatin1String("highwater") ? 2.6 : 1.8));
        graph->setScatterStyle(
            QCPScatterStyle(QCPScatterStyle::ssDisc, curve.colour, curve.colour, 6));
        for (const PlanPointer& plan : curve.points) {
            const double percent = (plan->overhead - 1) * 100;
            graph->addData(ratio(plan->budget, workspace_.document()->peak()) * 100, percent);
            highest = std::max(highest, percent);
        }
        curves_.push_back(std::move(curve));
    }
    addBound();
    xAxis->setRange(lowestRatio() * 100, highestRatio() * 100);
    yAxis->setRange(-highest * 0.04, highest * 1.2);
    replot(rpQueuedReplot);
}

// The best proven bound at each budget, whoever proved it.
void FrontierPlot::addBound() {
    std::map<double, double> bound;
    for (const Curve& curve : curves_)
        for (const PlanPointer& plan : curve.points) {
            if (!plan->lowerBound || curve.planner == QLatin1String("none")) continue;
            const double percent =
                (ratio(*plan->lowerBound, workspace_.document()->judged.time) - 1) * 100;
            double& best =
                bound.try_emplace(ratio(plan->budget, workspace_.document()->peak()) * 100, 0)
                    .first->second;
            best = std::max(best, percent);
        }
    if (bound.size() < 2) return;
    QCPGraph* graph = addGraph();
    graph->setPen(QPen(theme().muted, 1.3, Qt::DashLine));
    for (const auto& [ratio, percent] : bound) graph->addData(ratio, percent);
}

QPointF FrontierPlot::pixelOf(const PlanEntry& plan) const {
    return {xAxis->coordToPixel(ratio(plan.budget, workspace_.document()->peak()) * 100),
            yAxis->coordToPixel((plan.overhead - 1) * 100)};
}

PlanPointer FrontierPlot::planAt(const QPointF& pixel) const {
    PlanPointer nearest;
    double best = kReach;
    for (const Curve& curve : curves_)
        for (const PlanPointer& plan : curve.points) {
            const QPointF offset = pixelOf(*plan) - pixel;
            const double distance = std::hypot(offset.x(), offset.y());
            if (distance < best) best = distance, nearest = plan;
        }
    return nearest;
}

void FrontierPlot::mousePressEvent(QMouseEvent* event) {
    Plot::mousePressEvent(event);
    if (!workspace_.document() || event->button() != Qt::LeftButton) return;
    if (const PlanPointer plan = planAt(event->position()))
        emit planClicked(plan);
    else if (axisRect()->rect().contains(event->pos()))
        emit budgetClicked(std::clamp(xAxis->pixelToCoord(event->position().x()) / 100, 0.0, 1.0));
}

void FrontierPlot::mouseMoveEvent(QMouseEvent* event) {
    Plot::mouseMoveEvent(event);
    if (!workspace_.document()) return;
    const PlanPointer plan = planAt(event->position());
    setCursor(plan ? Qt::PointingHandCursor : Qt::ArrowCursor);
    if (!plan) return QToolTip::hideText();
    const Document& document = *workspace_.document();
    QToolTip::showText(event->globalPosition().toPoint(),
                       tr("%1 at %2 (%3): %4 step time, peak %5")
                           .arg(plan->planner, document.size.text(plan->budget),
                                percentText(ratio(plan->budget, document.peak())),
                                overheadText(plan->overhead), document.size.text(plan->peak)),
                       this);
}

FrontierMarks::FrontierMarks(FrontierPlot* plot, const QString& layer, bool background)
    : QCPLayerable(plot, layer), frontier_(*plot), background_(background) {}

void FrontierMarks::applyDefaultAntialiasingHint(QCPPainter* painter) const {
    painter->setAntialiasing(true);
}

void FrontierMarks::draw(QCPPainter* painter) {
    if (!frontier_.workspace_.document()) return;
    if (background_) return drawInfeasible(painter);
    drawBudget(painter);
    drawFloorLabel(painter);
    drawActive(painter, drawLabels(painter));
}

void FrontierMarks::drawInfeasible(QCPPainter* painter) {
    const Document& document = *frontier_.workspace_.document();
    const QRectF area = frontier_.axisRect()->rect();
    const double edge = std::min(
        frontier_.xAxis->coordToPixel(ratio(document.floor, document.peak()) * 100), area.right());
    if (edge <= area.left()) return;
    QColor shade = theme().alert;
    shade.setAlphaF(0.12F);
    painter->fillRect(QRectF(area.left(), area.top(), edge - area.left(), area.height()), shade);
    painter->setPen(QPen(theme().alert, 1));
    painter->drawLine(QPointF(edge, area.top()), QPointF(edge, area.bottom()));
}

// Over the budget's line, which may cross it.
void FrontierMarks::drawFloorLabel(QCPPainter* painter) {
    const Document& document = *frontier_.workspace_.document();
    const QRectF area = frontier_.axisRect()->rect();
    const double edge = frontier_.xAxis->coordToPixel(ratio(document.floor, document.peak()) * 100);
    if (edge <= area.left() || edge >= area.right()) return;
    painter->setFont(uiFont(kAxisPixels));
    const QString text =
        FrontierPlot::tr("infeasible below %1").arg(document.size.text(document.floor));
    const QRectF box(edge + 6, frontier_.yAxis->coordToPixel(0) - 19,
                     QFontMetricsF(painter->font()).horizontalAdvance(text) + 4, 16);
    painter->fillRect(box, theme().panel);
    painter->setPen(theme().alert);
    painter->drawText(box, Qt::AlignLeft | Qt::AlignVCenter, text);
}

void FrontierMarks::drawBudget(QCPPainter* painter) {
    const QRectF area = frontier_.axisRect()->rect();
    const double x = frontier_.xAxis->coordToPixel(frontier_.workspace_.budgetRatio() * 100);
    if (x >= area.left() && x <= area.right() + 1) {
        painter->setPen(QPen(theme().text, 1.4));
        painter->drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()));
    }
}

void FrontierMarks::drawActive(QCPPainter* painter, const std::vector<QRectF>& taken) {
    const QRectF area = frontier_.axisRect()->rect();
    const PlanPointer& active = frontier_.workspace_.activePlan();
    if (!active || !active->ok()) return;
    const QPointF at = frontier_.pixelOf(*active);
    if (!area.adjusted(-6, -6, 6, 6).contains(at)) return;
    painter->setPen(QPen(theme().planLine(), 2));
    painter->setBrush(theme().panel);
    painter->drawEllipse(at, 5.5, 5.5);
    painter->setFont(uiFont(kAxisPixels, true));
    const QString text = overheadText(active->overhead);
    const double width = QFontMetricsF(painter->font()).horizontalAdvance(text) + 2;
    const double right = at.x() + 10, left = at.x() - 10 - width, above = at.y() - 22,
                 below = at.y() + 6;
    QRectF box;
    for (const QPointF& corner : {QPointF(right, above), QPointF(right, below),
                                  QPointF(left, above), QPointF(left, below)}) {
        box = QRectF(corner, QSizeF(width, 16));
        if (area.contains(box) &&
            std::none_of(taken.begin(), taken.end(),
                         [&](const QRectF& other) { return other.intersects(box); }))
            break;
    }
    painter->setPen(theme().text);
    painter->drawText(box, Qt::AlignLeft | Qt::AlignVCenter, text);
}

// At the cheapest budget that a planner reaches, moved up or down until no label covers another.
std::vector<QRectF> FrontierMarks::drawLabels(QCPPainter* painter) {
    const QRectF area = frontier_.axisRect()->rect();
    painter->setFont(uiFont(kAxisPixels, true));
    const QFontMetricsF metrics(painter->font());
    std::vector<QRectF> taken;
    if (const PlanPointer& active = frontier_.workspace_.activePlan(); active && active->ok())
        taken.emplace_back(frontier_.pixelOf(*active) - QPointF(8, 8), QSizeF(16, 16));
    for (const FrontierPlot::Curve& curve : frontier_.curves_) {
        const QPointF end = frontier_.pixelOf(*curve.points.back());
        const double width = metrics.horizontalAdvance(curve.planner) + 4,
                     height = metrics.height();
        QRectF box(area.right() + 8, end.y() - height / 2, width, height);
        const bool beside = end.x() > area.right() - 12 && width <= kRight - 10 &&
                            std::none_of(taken.begin(), taken.end(), [&](const QRectF& other) {
                                return other.intersects(box);
                            });  // outside the plot, where no curve runs
        for (int attempt = 0; attempt < 8 && !beside; ++attempt) {
            const double shift = (attempt / 2 + 1) * (attempt % 2 ? 1.0 : -1.0) * height;
            box =
                QRectF(std::clamp(end.x() - width / 2, area.left() + 4, area.right() - width),
                       std::clamp(end.y() + shift - height / 2, area.top(), area.bottom() - height),
                       width, height);
            if (std::none_of(taken.begin(), taken.end(),
                             [&](const QRectF& other) { return other.intersects(box); }))
                break;
        }
        taken.push_back(box);
        painter->fillRect(box, theme().panel);  // no curve runs through a name
        painter->setPen(curve.colour);
        painter->drawText(box, Qt::AlignCenter, curve.planner);
    }
    return taken;
}

}  // namespace hw::viewer
