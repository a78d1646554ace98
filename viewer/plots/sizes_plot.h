// SPDX-License-Identifier: GPL-3.0-or-later
// Peak memory over the input size: recorded, estimated, and under the plan that each size gets.
#pragma once

#include "viewer/models/format.h"
#include "viewer/models/size_study.h"
#include "viewer/plots/plot.h"

namespace hw::viewer {

class SizesPlot : public Plot {
    Q_OBJECT
public:
    explicit SizesPlot(QWidget* parent = nullptr);

    void show(const SizeStudy& study, const SizeUnit& unit);
    void applyTheme() override;

signals:
    void stepPicked(qint64 step);

protected:
    void mouseReleaseEvent(QMouseEvent* event) override;

private:
    SizeStudy study_;
    SizeUnit unit_, input_;
    QCPGraph *recorded_, *estimated_, *planned_, *budget_;
    QCPItemText* budgetText_;
};

}  // namespace hw::viewer
