// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/panels/budget_slider.h"

#include <QMouseEvent>
#include <QStyle>
#include <cmath>

namespace hw::viewer {

BudgetSlider::BudgetSlider(QWidget* parent) : QSlider(Qt::Horizontal, parent) {
    setSingleStep(10);
    setPageStep(100);
    setFocusPolicy(Qt::StrongFocus);
    setAccessibleName(tr("budget"));
}

void BudgetSlider::setRatio(double ratio) {
    setValue(static_cast<int>(std::lround(ratio * kSteps)));
}

void BudgetSlider::setRatioRange(double lowest, double highest) {
    setRange(static_cast<int>(std::lround(lowest * kSteps)),
             static_cast<int>(std::lround(highest * kSteps)));
}

void BudgetSlider::mousePressEvent(QMouseEvent* event) {
    if (event->button() == Qt::LeftButton)
        setValue(QStyle::sliderValueFromPosition(
            minimum(), maximum(), static_cast<int>(event->position().x()) - kHandle / 2,
            width() - kHandle));
    QSlider::mousePressEvent(event);
}

}  // namespace hw::viewer
