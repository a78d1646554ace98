// SPDX-License-Identifier: GPL-3.0-or-later
// How a planner's curve looks, the same in every view. Families differ by the line and the marker,
// planners within a family by colours that the colour-blind can tell apart: no two planners differ
// by colour alone unless they belong together.
#pragma once

#include <qcustomplot.h>
#include <QColor>
#include <QIcon>
#include <QPen>

namespace hw::viewer {

struct PlannerStyle {
    QPen pen;
    QCPScatterStyle marker;

    QColor colour() const { return pen.color(); }
};

/// Chen et al. dashed with squares, DTR dotted with discs, others solid with diamonds, ours solid,
/// thick and in the accent colour.
PlannerStyle plannerStyle(const QString& planner);

/// A short piece of the curve with its marker, in the middle of `box`.
void drawPlannerSwatch(QPainter* painter, const QRectF& box, const QString& planner);
QIcon plannerIcon(const QString& planner);

}  // namespace hw::viewer
