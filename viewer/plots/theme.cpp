// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/plots/theme.h"

#include <QFontDatabase>
#include <algorithm>
#include <array>

#include "viewer/plots/font_scale.h"

namespace hw::viewer {
namespace {

Theme make(bool light) {
    Theme t;
    t.light = light;
    const auto pick = [light](const char* dark, const char* bright) {
        return QColor(light ? bright : dark);
    };
    t.window = pick("#14171c", "#f4f6f8");
    t.panel = pick("#181c22", "#ffffff");
    t.raised = pick("#1b2027", "#eef1f4");
    t.line = pick("#2a313b", "#d5dbe2");
    t.grid = pick("#232a33", "#e6eaef");
    t.text = pick("#d8dee6", "#1c232b");
    t.muted = pick("#8a95a3", "#5d6875");
    t.accent = pick("#2fb58a", "#12805c");
    t.alert = pick("#ff6b5e", "#c5382c");
    return t;
}

Theme& current() {
    static Theme active = make(false);
    return active;
}

double textScale = 1;

int scaled(int pixels) {
    return qRound(pixels * textScale);
}

}  // namespace

const Theme& theme() {
    return current();
}
void setTheme(bool light) {
    current() = make(light);
}

double fontScale() {
    return textScale;
}
void setFontScale(double scale) {
    textScale = std::clamp(scale, kSmallestText, kLargestText);
}

QColor blend(const QColor& a, const QColor& b, double share) {
    return QColor::fromRgbF(static_cast<float>(a.redF() * (1 - share) + b.redF() * share),
                            static_cast<float>(a.greenF() * (1 - share) + b.greenF() * share),
                            static_cast<float>(a.blueF() * (1 - share) + b.blueF() * share));
}

QColor Theme::planLine() const {
    return light ? QColor("#14171c") : QColor("#ffffff");
}

QColor Theme::otherLine() const {
    return light ? QColor("#6b1fb3") : QColor("#d9b8ff");
}

QColor Theme::liveLine() const {
    return light ? QColor("#e6007e") : QColor("#ff4fb0");
}

// Any two differ for those who see no red or no green, too, and those that lie on one another in
// grey; tests/gui/picture_test.cpp measures it.
QColor Theme::category(core::Category category) const {
    switch (category) {
        case core::Category::Parameter:
            return QColor("#2e5d8b");
        case core::Category::GatheredParameter:
            return QColor("#6890d8");
        case core::Category::Input:
            return QColor("#8fd3f4");
        case core::Category::Gradient:
            return QColor("#b35a2e");
        case core::Category::OptimizerState:
            return QColor("#d796c6");
        case core::Category::Activation:
            return QColor("#2aa37c");
        case core::Category::Temporary:
            return QColor("#e8c547");
        case core::Category::Workspace:
            return QColor("#7b4fc9");
        case core::Category::Unknown:
            break;
    }
    return QColor("#66707c");
}

// Of lines the same holds as of categories; those that follow each other lie on one another.
QColor Theme::band(const Bands& bands, Band band) const {
    if (!bands.byLine() || band == kUnknownBand) return category(static_cast<core::Category>(band));
    constexpr std::array<const char*, kLineBands> kLines{
        "#5b8def", "#8b2f4e", "#edc948", "#44aa99", "#a6761d", "#f6c9a8", "#c7a3dd", "#117733"};
    return QColor(band == kOtherLines ? "#b9c2cc" : kLines.at(band));
}

QColor Theme::phase(core::Phase phase) const {
    const QColor base = phase == core::Phase::Forward     ? QColor("#4c9be8")
                        : phase == core::Phase::Backward  ? QColor("#e0703a")
                        : phase == core::Phase::Optimizer ? QColor("#d38ac0")
                                                          : muted;
    return blend(panel, base, light ? 0.34 : 0.45);
}

QColor Theme::family(OpFamily family) const {
    QColor base = muted;
    switch (family) {
        case OpFamily::Matrix:
            base = QColor("#4c9be8");
            break;
        case OpFamily::Normalization:
            base = QColor("#b48ede");
            break;
        case OpFamily::Elementwise:
            base = QColor("#5bbfb0");
            break;
        case OpFamily::Reduction:
            base = QColor("#c9a25a");
            break;
        case OpFamily::Movement:
            base = QColor("#7c8796");
            break;
        case OpFamily::Other:
            base = QColor("#97a1ae");
            break;
    }
    return blend(panel, base, 0.78);
}

QColor Theme::lifetime(core::ActionKind by) const {
    switch (core::traitsOf(by).colour) {
        case core::ColourRole::Kept:
            break;
        case core::ColourRole::Rematerialized:
            return light ? QColor("#d9601a") : QColor("#f08a4b");
        case core::ColourRole::StandIn:
            return light ? QColor("#b08fd8") : QColor("#b48ede");
        case core::ColourRole::Away:
            return light ? QColor("#8a94a3") : QColor("#7b8594");
    }
    return light ? QColor("#5b97cf") : QColor("#4f86bd");
}

QFont uiFont(int pixels, bool bold) {
    // Asked for with every label, and the database answers slowly.
    static const QFont family = [] {
        QFont font = QFontDatabase::systemFont(QFontDatabase::GeneralFont);
        if (const QString inter = QStringLiteral("Inter"); QFontDatabase::hasFamily(inter))
            font.setFamily(inter);
        return font;
    }();
    QFont font = family;
    font.setPixelSize(scaled(pixels));
    font.setBold(bold);
    return font;
}

}  // namespace hw::viewer
