// SPDX-License-Identifier: GPL-3.0-or-later
// A slider whose handle stands exactly above the budget on the axis below it.
#pragma once

#include <QSlider>

namespace hw::viewer {

class BudgetSlider : public QSlider {
    Q_OBJECT
public:
    static constexpr int kSteps = 1000;  // thousandths of the recorded peak
    static constexpr int kHandle = 16;   // pixels, as the style sheet has it

    explicit BudgetSlider(QWidget* parent = nullptr);
    void setRatio(double ratio);
    double ratio() const { return static_cast<double>(value()) / kSteps; }
    void setRatioRange(double lowest, double highest);

protected:
    void mousePressEvent(QMouseEvent* event) override;  // jumps to where it is clicked
};

}  // namespace hw::viewer
