// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/plots/colours.h"

#include <algorithm>
#include <cmath>

#include "viewer/plots/theme.h"

namespace hw::viewer {

double contrast(const QColor& a, const QColor& b) {
    const auto luminance = [](const QColor& colour) {
        const auto linear = [](double c) {
            return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
        };
        return 0.2126 * linear(colour.redF()) + 0.7152 * linear(colour.greenF()) +
               0.0722 * linear(colour.blueF());
    };
    const auto [darker, lighter] = std::minmax({luminance(a), luminance(b)});
    return (lighter + 0.05) / (darker + 0.05);
}

QColor inkOn(const QColor& fill) {
    const QColor dark("#10151b"), light("#f4f6f8");
    return contrast(dark, fill) >= contrast(light, fill) ? dark : light;
}

QColor changeColour(double share) {
    const QColor same = blend(theme().raised, theme().muted, 0.35);
    if (share == 0) return same;
    const QColor most = share > 0 ? QColor("#f08a3c") : QColor("#3f8fe0");
    return blend(same, most, 0.35 + 0.65 * std::min(1.0, std::fabs(share)));
}

}  // namespace hw::viewer
