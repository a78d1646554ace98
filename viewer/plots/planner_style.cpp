// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/plots/planner_style.h"

#include <QPainter>
#include <QPixmap>
#include <array>
#include <map>

#include "viewer/plots/theme.h"

namespace hw::viewer {
namespace {

constexpr int kSwatchWidth = 38, kSwatchHeight = 12;
constexpr double kWidth = 1.8, kOurs = 2.8;

enum class Family { Solid, Dashed, Dotted };

struct Look {
    Family family;
    std::size_t colour;  // of the palette
};

// After the palette of Okabe and Ito, in tones for either background.
QColor paletteColour(std::size_t index) {
    static const std::array<const char*, 8> dark{"#8a95a3", "#e69f00", "#56b4e9", "#f0e442",
                                                 "#e0703a", "#cc79a7", "#9b8cff", "#c9d1db"};
    static const std::array<const char*, 8> bright{"#5d6875", "#b87700", "#0072b2", "#8a7d00",
                                                   "#c2410c", "#a8397f", "#5b3fd6", "#1c232b"};
    return QColor(theme().light ? bright[index % bright.size()] : dark[index % dark.size()]);
}

Look lookOf(const QString& planner) {
    static const std::map<QString, Look> looks{
        {QStringLiteral("none"), {Family::Solid, 0}},
        {QStringLiteral("echo"), {Family::Solid, 3}},
        {QStringLiteral("mimose"), {Family::Solid, 5}},
        {QStringLiteral("checkmate"), {Family::Solid, 2}},
        {QStringLiteral("monet"), {Family::Solid, 6}},
        {QStringLiteral("chen-sqrt"), {Family::Dashed, 2}},
        {QStringLiteral("chen-greedy"), {Family::Dashed, 6}},
        {QStringLiteral("chen-cheap"), {Family::Dashed, 1}},
        {QStringLiteral("chen-recursive"), {Family::Dashed, 5}},
        {QStringLiteral("dtr:full"), {Family::Dotted, 2}},
        {QStringLiteral("dtr:eqclass"), {Family::Dotted, 4}},
        {QStringLiteral("dtr:local"), {Family::Dotted, 3}},
        {QStringLiteral("dtr:lru"), {Family::Dotted, 6}},
        {QStringLiteral("dtr:largest"), {Family::Dotted, 5}},
        {QStringLiteral("dtr:msps"), {Family::Dotted, 1}},
        {QStringLiteral("dtr:random"), {Family::Dotted, 0}},
    };
    if (const auto found = looks.find(planner); found != looks.end()) return found->second;
    const Family family = planner.startsWith(QLatin1String("chen-"))  ? Family::Dashed
                          : planner.startsWith(QLatin1String("dtr:")) ? Family::Dotted
                                                                      : Family::Solid;
    return {family, 7};
}

}  // namespace

PlannerStyle plannerStyle(const QString& planner) {
    const bool ours = planner == QLatin1String("highwater");
    const Look look = lookOf(planner);
    const QColor colour = ours ? theme().accent : paletteColour(look.colour);
    QPen pen(colour, ours ? kOurs : kWidth);
    auto shape = ours ? QCPScatterStyle::ssDisc : QCPScatterStyle::ssDiamond;
    double size = ours ? 7 : 8;
    if (look.family == Family::Dashed) {
        pen.setDashPattern({5, 2.5});
        shape = QCPScatterStyle::ssSquare;
        size = 6;
    } else if (look.family == Family::Dotted) {
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
