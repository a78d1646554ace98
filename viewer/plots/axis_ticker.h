// SPDX-License-Identifier: GPL-3.0-or-later
// Axis labels with a unit and the same digits along the whole axis.
#pragma once

#include <qcustomplot.h>

namespace hw::viewer {

class UnitTicker : public QCPAxisTicker {
public:
    /// `signedLabels`: "+10 %" instead of "10 %".
    explicit UnitTicker(QString unit, int ticks = 6, bool signedLabels = false);

    /// About as many ticks as have room for their labels within so many pixels, at most those that
    /// are wanted. Whether that changes anything.
    bool fit(int pixels);
    /// The same of an upright axis, whose labels stand one above the other.
    bool fitRows(int pixels);

protected:
    QVector<QString> createLabelVector(const QVector<double>& ticks, const QLocale& locale,
                                       QChar format, int precision) override;
    int getSubTickCount(double) override { return 0; }

private:
    bool fitCount(int count);

    QString unit_;
    int wanted_;
    bool signed_;
};

/// Of what is counted: no half steps or items.
class WholeTicker : public UnitTicker {
public:
    using UnitTicker::UnitTicker;

protected:
    double getTickStep(const QCPRange& range) override;
};

}  // namespace hw::viewer
