// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/plots/axis_ticker.h"

#include <algorithm>
#include <cmath>

#include "viewer/plots/theme.h"

namespace hw::viewer {

UnitTicker::UnitTicker(QString unit, int ticks, bool signedLabels)
    : unit_(std::move(unit)), wanted_(ticks), signed_(signedLabels) {
    setTickCount(ticks);
}

bool UnitTicker::fit(int pixels) {
    constexpr int kApart = 16;
    const QFontMetrics metrics(uiFont(kAxisPixels));
    const int one = metrics.horizontalAdvance(QStringLiteral("0000 ") + unit_) + kApart;
    return fitCount(pixels / one);
}

bool UnitTicker::fitRows(int pixels) {
    return fitCount(pixels / (QFontMetrics(uiFont(kAxisPixels)).height() + 4));
}

bool UnitTicker::fitCount(int count) {
    count = std::clamp(count, 2, std::max(2, wanted_));
    if (count == tickCount()) return false;
    setTickCount(count);
    return true;
}

QVector<QString> UnitTicker::createLabelVector(const QVector<double>& ticks, const QLocale&, QChar,
                                               int) {
    double step = ticks.size() > 1 ? ticks[1] - ticks[0] : 1, scale = 1;
    QString unit = unit_;
    if (unit == QLatin1String("ms") && step >= 1000)  // "10 s" reads better than "10000 ms"
        unit = step >= 120'000 ? QStringLiteral("min") : QStringLiteral("s");
    if (unit != unit_) scale = step >= 120'000 ? 60'000 : 1000, step /= scale;
    // Enough digits that a step of 0.25 reads 0.25, not 0.2.
    int digits = std::max(0, static_cast<int>(-std::floor(std::log10(step) + 1e-9)));
    while (digits < 9 &&
           std::fabs(std::round(step * std::pow(10, digits)) - step * std::pow(10, digits)) > 1e-6)
        ++digits;
    QVector<QString> labels;
    for (const double tick : ticks) {
        const double value = std::fabs(tick / scale) < step * 1e-6 ? 0 : tick / scale;
        labels << (signed_ && value >= 0 ? QStringLiteral("+") : QString()) +
                      QString::number(value, 'f', digits) +
                      (unit.isEmpty() ? QString() : QLatin1Char(' ') + unit);
    }
    return labels;
}

double WholeTicker::getTickStep(const QCPRange& range) {
    const double step = UnitTicker::getTickStep(range);
    return step < 1 ? 1 : step == 2.5 ? 2 : step;
}

}  // namespace hw::viewer
