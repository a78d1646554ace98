// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/plots/planner_style.h"

#include <QPainter>
#include <QPixmap>
#include <array>

#include "planners/registry.h"
#include "viewer/plots/theme.h"

namespace hw::viewer {
namespace {

using planners::PlannerFamily;

constexpr int kSwatchWidth = 38, kSwatchHeight = 12;
constexpr double kPlannerWidth = 1.8, kOurs = 2.8;

// After the palette of Okabe and Ito, in tones for either background.
QColor paletteColour(std::size_t index) {
    static const std::array<const char*, 8> dark{"#8a95a3", "#e69f00", "#56b4e9", "#f0e442",
                                                 "#e0703a", "#cc79a7", "#9b8cff", "#c9d1db"};
    static const std::array<const char*, 8> bright{"#5d6875", "#b87700", "#0072b2", "#8a7d00",
                                                   "#c2410c", "#a8397f", "#5b3fd6", "#1c232b"};
    return QColor(theme().light ? bright[index % bright.size()] : dark[index % dark.size()]);
}

}  // namespace

PlannerStyle plannerStyle(const QString& planner) {
    // A plan's file may name a planner of another program.
    static const planners::PlannerInfo unknown;
    const planners::PlannerInfo* known = planners::findPlanner(planner.toStdString());
    const planners::PlannerInfo& info = known != nullptr ? *known : unknown;
    const bool ours = info.family == PlannerFamily::Own;
    const QColor colour =
        ours ? theme().accent : paletteColour(static_cast<std::size_t>(info.colour));
    QPen pen(colour, ours ? kOurs : kPlannerWidth);
    auto shape = ours ? QCPScatterStyle::ssDisc : QCPScatterStyle::ssDiamond;
    double size = ours ? 7 : 8;
    if (info.family == PlannerFamily::Chen) {
        pen.setDashPattern({5, 2.5});
        shape = QCPScatterStyle::ssSquare;
        size = 6;
    } else if (info.family == PlannerFamily::Dtr) {
        pen.setDashPattern({0.1, 2.2});
        pen.setCapStyle(Qt::RoundCap);
        pen.setWidthF(2.2);
        shape = QCPScatterStyle::ssDisc;
        size = 6;
    }
    return {pen, QCPScatterStyle(shape, QPen(colour), QBrush(colour), size)};
}

void drawPlannerSwatch(QPainter* painter, const QRectF& box, const QString& planner) {
    const PlannerStyle style = plannerStyle(planner);
    painter->save();
    painter->setRenderHint(QPainter::Antialiasing);
    painter->setPen(style.pen);
    const double left = box.center().x() - kSwatchWidth / 2.0 + 1, y = box.center().y();
    painter->drawLine(QPointF(left, y), QPointF(left + kSwatchWidth - 2, y));
    painter->setPen(Qt::NoPen);
    painter->setBrush(style.colour());
    painter->translate(box.center());
    constexpr double kHalf = 3;
    switch (style.marker.shape()) {
        case QCPScatterStyle::ssSquare:
            painter->drawRect(QRectF(-kHalf, -kHalf, 2 * kHalf, 2 * kHalf));
            break;
        case QCPScatterStyle::ssDiamond:
            painter->rotate(45);
            painter->drawRect(QRectF(-kHalf, -kHalf, 2 * kHalf, 2 * kHalf));
            break;
        default:
            painter->drawEllipse(QPointF(), kHalf + 0.5, kHalf + 0.5);
    }
    painter->restore();
}

QIcon plannerIcon(const QString& planner) {
    constexpr int kScale = 2;
    QPixmap picture(kSwatchWidth * kScale, kSwatchHeight * kScale);
    picture.setDevicePixelRatio(kScale);
    picture.fill(Qt::transparent);
    QPainter painter(&picture);
    drawPlannerSwatch(&painter, QRectF(0, 0, kSwatchWidth, kSwatchHeight), planner);
    painter.end();
    return QIcon(picture);
}

}  // namespace hw::viewer
