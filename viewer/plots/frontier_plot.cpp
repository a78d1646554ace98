// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/plots/frontier_plot.h"

#include <QMouseEvent>
#include <QToolTip>
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "planners/registry.h"
#include "viewer/plots/axis_ticker.h"
#include "viewer/plots/low_plot.h"
#include "viewer/plots/planner_style.h"
#include "viewer/plots/theme.h"

namespace hw::viewer {
namespace {
constexpr int kFrontierLeft = 76, kFrontierRight = 52;  // fixed: the slider lines up with them
constexpr QMargins kAround(kFrontierLeft, 14, kFrontierRight, 46),
    kAroundLow(kFrontierLeft, 6, kFrontierRight, 22);
constexpr double kFrontierReach = 10;  // pixels around a point that can be clicked
constexpr double kLowestPercent = 10;  // height of the axis when nothing costs more
constexpr double kAlong = 4;           // pixels beside a text along an edge
constexpr double kTouch = 20;          // pixels that two texts may have in common

// What fits along an edge of so many pixels; nothing where it would be no word.
QString floorText(const Document& document, double room) {
    const QFontMetricsF metrics(uiFont(kAxisPixels));
    for (const QString& text :
         {FrontierPlot::tr("infeasible below %1").arg(document.size.text(document.floor)),
          FrontierPlot::tr("infeasible")})
        if (metrics.horizontalAdvance(text) + kAlong <= room) return text;
    return {};
}

// Along the edge of what is impossible, read from below: within what is shaded where there is room,
// otherwise right of it; in any case beside the budget's line.
QRectF floorLabelBox(const QString& text, double edge, double budget, const QRectF& area) {
    const QFontMetricsF metrics(uiFont(kAxisPixels));
    const double breadth = metrics.height() + 2;
    const QSizeF size(breadth, metrics.horizontalAdvance(text) + kAlong);
    const QRectF shaded(QPointF(edge - breadth - 2, area.center().y() - size.height() / 2), size);
    if (shaded.left() >= area.left()) return shaded;
    const QRectF beside = shaded.translated(breadth + 4, 0);
    const bool crossed = budget > beside.left() - 3 && budget < beside.right() + 3;
    return crossed ? beside.translated(budget + 4 - beside.left(), 0) : beside;
}
}  // namespace

FrontierPlot::FrontierPlot(Workspace& workspace, QWidget* parent)
    : Plot(parent), workspace_(workspace) {
    axisRect()->setAutoMargins(QCP::msNone);
    axisRect()->setMargins(kAround);
    xAxis->setTicker(QSharedPointer<UnitTicker>::create(QStringLiteral("%"), 6));
    yAxis->setTicker(QSharedPointer<UnitTicker>::create(QStringLiteral("%"), 5, true));
    setFittingLabel(xAxis, {tr("budget, share of the recorded peak"), tr("budget, share of peak"),
                            tr("budget")});
    setFittingLabel(yAxis, {tr("extra step time"), tr("extra time")});
    new FrontierMarks(this, QStringLiteral("background"), true);
    new FrontierMarks(this, QStringLiteral("legend"), false);
    setMouseTracking(true);
    setMinimumSize(200, 80);
    reload();
}

void FrontierPlot::resizeEvent(QResizeEvent* event) {
    axisRect()->setMargins(isLow(*this) ? kAroundLow : kAround);
    Plot::resizeEvent(event);
}

int FrontierPlot::axisLeft() const {
    return kFrontierLeft;
}
int FrontierPlot::axisRight() const {
    return width() - kFrontierRight;
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
    QStringList planners = workspace_.document() ? workspace_.selectedPlanners() : QStringList();
    if (const QString ours = toQString(planners::ownPlanner().name); planners.removeOne(ours))
        planners << ours;  // on top
    for (const QString& planner : planners)
        if (Curve curve{planner, workspace_.plans().frontier(planner)}; !curve.points.empty())
            curves_.push_back(std::move(curve));
    addBound();
    for (const Curve& curve : curves_) {
        const PlannerStyle style = plannerStyle(curve.planner);
        QCPGraph* graph = addGraph();
        graph->setPen(style.pen);
        graph->setScatterStyle(style.marker);
        for (const PlanPointer& plan : curve.points) {
            const double percent = (plan->overhead - 1) * 100;
            graph->addData(ratio(plan->budget, workspace_.document()->peak()) * 100, percent);
            highest = std::max(highest, percent);
        }
    }
    xAxis->setRange(lowestRatio() * 100, highestRatio() * 100);
    yAxis->setRange(-highest * 0.04, highest * 1.2);
    replot(rpQueuedReplot);
}

QStringList FrontierPlot::drawn() const {
    QStringList names;
    for (const Curve& curve : curves_) names << curve.planner;
    return names;
}

// The best proven bound at each budget, of any planner; what is below it is impossible.
void FrontierPlot::addBound() {
    bound_.clear();
    for (const Curve& curve : curves_)
        for (const PlanPointer& plan : curve.points) {
            if (!plan->lowerBound || plan->baseline()) continue;
            if (const auto bound = workspace_.plans().provenBound(plan->budget))
                bound_[ratio(plan->budget, workspace_.document()->peak()) * 100] =
                    std::max(0.0, ratio(*bound, workspace_.document()->judged.time) - 1) * 100;
        }
    if (!boundDrawn()) return;
    QCPGraph* graph = addGraph();
    graph->setPen(QPen(theme().muted, 1.3, Qt::CustomDashLine));
    QPen pen = graph->pen();
    pen.setDashPattern({8, 4});
    graph->setPen(pen);
    QColor shade = theme().muted;
    shade.setAlphaF(0.13F);
    graph->setBrush(shade);
    for (const auto& [ratio, percent] : bound_) graph->addData(ratio, percent);
}

QPointF FrontierPlot::pixelOf(const PlanEntry& plan) const {
    return {xAxis->coordToPixel(ratio(plan.budget, workspace_.document()->peak()) * 100),
            yAxis->coordToPixel((plan.overhead - 1) * 100)};
}

PlanPointer FrontierPlot::planAt(const QPointF& pixel) const {
    PlanPointer nearest;
    double best = kFrontierReach;
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
    frontier_.labels_ = drawLabels(painter);
    drawActive(painter, frontier_.labels_);
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

QRectF FrontierMarks::floorLabelAt(const QString& text) const {
    const Document& document = *frontier_.workspace_.document();
    return floorLabelBox(
        text, frontier_.xAxis->coordToPixel(ratio(document.floor, document.peak()) * 100),
        frontier_.xAxis->coordToPixel(frontier_.workspace_.budgetRatio() * 100),
        frontier_.axisRect()->rect());
}

void FrontierMarks::drawFloorLabel(QCPPainter* painter) {
    const Document& document = *frontier_.workspace_.document();
    const QRectF area = frontier_.axisRect()->rect();
    const double edge = frontier_.xAxis->coordToPixel(ratio(document.floor, document.peak()) * 100);
    if (edge <= area.left() || edge >= area.right()) return;
    painter->setFont(uiFont(kAxisPixels));
    const QString text = floorText(document, area.height());
    if (text.isEmpty()) return;
    const QRectF box = floorLabelAt(text);
    if (box.left() > edge) painter->fillRect(box, theme().panel);
    painter->setPen(theme().alert);
    painter->save();
    painter->translate(box.bottomLeft());
    painter->rotate(-90);
    const QRectF turned(0, 0, box.height(), box.width());
    painter->drawText(turned, Qt::AlignCenter, text);
    painter->restore();
}

void FrontierMarks::drawBudget(QCPPainter* painter) {
    const QRectF area = frontier_.axisRect()->rect();
    const double x = frontier_.xAxis->coordToPixel(frontier_.workspace_.budgetRatio() * 100);
    if (x >= area.left() && x <= area.right() + 1) {
        painter->setPen(QPen(theme().text, 1.4));
        painter->drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()));
    }
}

void FrontierMarks::drawActive(QCPPainter* painter, std::vector<QRectF>& taken) {
    const QRectF area = frontier_.axisRect()->rect();
    const PlanPointer& active = frontier_.workspace_.active().plan();
    if (!active || !active->ok()) return;
    const QPointF at = frontier_.pixelOf(*active);
    if (!area.adjusted(-6, -6, 6, 6).contains(at)) return;
    painter->setPen(QPen(theme().planLine(), 2));
    painter->setBrush(theme().panel);
    painter->drawEllipse(at, 5.5, 5.5);
    painter->setFont(uiFont(kAxisPixels, true));
    const QFontMetricsF metrics(painter->font());
    const QString text = overheadText(active->overhead);
    const QSizeF size(metrics.horizontalAdvance(text) + 6, metrics.height());
    const double left = -10 - size.width(), above = -8 - size.height();
    QRectF best;
    double least = std::numeric_limits<double>::infinity();
    for (const QPointF& shift :
         {QPointF(10, above), QPointF(10, 8), QPointF(left, above), QPointF(left, 8),
          QPointF(10, -size.height() / 2), QPointF(left, -size.height() / 2),
          QPointF(10, 2 * above), QPointF(left, 2 * above)}) {
        const QRectF box(at + shift, size);
        if (const double sum = hiddenBy(box, taken); sum < least) least = sum, best = box;
    }
    // Compare has the figure, too: names come first where the room is short.
    const bool free = std::all_of(taken.begin(), taken.end(), [&](const QRectF& other) {
        const QRectF both = other.intersected(best);
        return both.width() * both.height() < kTouch;
    });
    if (!free) return;
    drawName(painter, best, text, theme().text);
    taken.push_back(best);
}

// How much a text there would hide, and very much where it would be cut off.
double FrontierMarks::hiddenBy(const QRectF& box, const std::vector<QRectF>& taken) const {
    constexpr double kOutside = 1e6, kOfOther = 12, kPoint = 90, kLine = 30;
    double sum = QRectF(frontier_.axisRect()->rect()).contains(box) ? 0 : kOutside;
    for (const QRectF& other : taken) {
        const QRectF both = other.intersected(box);
        sum += kOfOther * both.width() * both.height();
    }
    const auto crosses = [&](const QLineF& line) {
        const std::array<QLineF, 2> diagonals{QLineF(box.topLeft(), box.bottomRight()),
                                              QLineF(box.bottomLeft(), box.topRight())};
        return std::any_of(diagonals.begin(), diagonals.end(), [&](const QLineF& each) {
            return line.intersects(each, nullptr) == QLineF::BoundedIntersection;
        });
    };
    for (const FrontierPlot::Curve& curve : frontier_.curves_)
        for (std::size_t i = 0; i < curve.points.size(); ++i) {
            const QPointF at = frontier_.pixelOf(*curve.points[i]);
            if (box.adjusted(-4, -4, 4, 4).contains(at)) sum += kPoint;
            if (i > 0 && crosses(QLineF(frontier_.pixelOf(*curve.points[i - 1]), at))) sum += kLine;
        }
    const double budget = frontier_.xAxis->coordToPixel(frontier_.workspace_.budgetRatio() * 100);
    return sum + (budget > box.left() && budget < box.right() ? kLine : 0);
}

// On paper of its own: no curve runs through a name.
void FrontierMarks::drawName(QCPPainter* painter, const QRectF& box, const QString& text,
                             const QColor& ink) const {
    painter->setPen(Qt::NoPen);
    painter->setBrush(theme().panel);
    painter->drawRoundedRect(box, 2, 2);
    painter->setPen(ink);
    painter->drawText(box, Qt::AlignCenter, text);
}

// Beside one of its planner's points, the cheapest budget first, where no other label is and no
// curve; where everything is taken, where the least is covered.
std::vector<QRectF> FrontierMarks::drawLabels(QCPPainter* painter) {
    const QRectF area = frontier_.axisRect()->rect();
    painter->setFont(uiFont(kAxisPixels, true));
    const QFontMetricsF metrics(painter->font());
    std::vector<QRectF> taken;
    if (const QString floor = floorText(*frontier_.workspace_.document(), area.height());
        !floor.isEmpty())
        taken.push_back(floorLabelAt(floor));
    if (const PlanPointer& active = frontier_.workspace_.active().plan(); active && active->ok())
        taken.emplace_back(frontier_.pixelOf(*active) - QPointF(8, 8), QSizeF(16, 16));
    // From the top curve down: ours gets the place that it wants.
    for (auto curve = frontier_.curves_.rbegin(); curve != frontier_.curves_.rend(); ++curve) {
        const QSizeF size(metrics.horizontalAdvance(curve->planner) + 6, metrics.height());
        QRectF best;
        double least = std::numeric_limits<double>::infinity();
        const QPointF end = frontier_.pixelOf(*curve->points.back());
        if (end.x() > area.right() - 12 && size.width() <= kFrontierRight - 8)
            best = QRectF(QPointF(area.right() + 8, end.y() - size.height() / 2), size);
        for (auto plan = curve->points.rbegin(); best.isNull() || least > 0; ++plan) {
            if (plan == curve->points.rend() || (!best.isNull() && std::isinf(least))) break;
            const QPointF at = frontier_.pixelOf(**plan);
            for (const QPointF& shift :
                 {QPointF(-size.width() / 2, -size.height() - 6), QPointF(8, -size.height() - 2),
                  QPointF(8, 2), QPointF(-size.width() - 8, 2), QPointF(-size.width() / 2, 6),
                  QPointF(-size.width() - 8, -size.height() - 2),
                  QPointF(-size.width() / 2, -2 * size.height() - 6),
                  QPointF(8, -2 * size.height() - 2)}) {
                const QRectF box(at + shift, size);
                if (const double sum = hiddenBy(box, taken); sum < least) least = sum, best = box;
            }
        }
        taken.push_back(best);
        drawName(painter, best, curve->planner, plannerStyle(curve->planner).colour());
    }
    drawBoundLabel(painter, taken);
    return taken;
}

// Under the bound, as far to the left as there is room between it and the axis.
void FrontierMarks::drawBoundLabel(QCPPainter* painter, std::vector<QRectF>& taken) {
    if (!frontier_.boundDrawn()) return;
    const QRectF area = frontier_.axisRect()->rect();
    painter->setFont(uiFont(kAxisPixels));
    const QFontMetricsF metrics(painter->font());
    const QString text = FrontierPlot::tr("proven lower bound");
    const QSizeF size(metrics.horizontalAdvance(text) + 4, metrics.height());
    const double floor = frontier_.yAxis->coordToPixel(0) - 2;
    for (auto at = frontier_.bound_.begin(); at != frontier_.bound_.end(); ++at) {
        const double left = frontier_.xAxis->coordToPixel(at->first) + 6;
        double top = 0;  // under the bound all along the text
        for (auto next = at; next != frontier_.bound_.end(); ++next) {
            top = std::max(top, frontier_.yAxis->coordToPixel(next->second) + 4);
            if (frontier_.xAxis->coordToPixel(next->first) > left + size.width()) break;
        }
        const QRectF box(QPointF(left, top), size);
        if (!area.contains(box) || box.bottom() > floor ||
            std::any_of(taken.begin(), taken.end(),
                        [&](const QRectF& other) { return other.intersects(box); }))
            continue;
        painter->setPen(theme().muted);
        painter->drawText(box, Qt::AlignLeft | Qt::AlignVCenter, text);
        taken.push_back(box);
        return;
    }
}

}  // namespace hw::viewer
