// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/panels/figure_strip.h"

#include <QHBoxLayout>
#include <algorithm>

#include "viewer/plots/theme.h"

namespace hw::viewer {
namespace {
constexpr int kSmallest = 12;  // pixels, as cells of tables have
constexpr int kMargin = 14, kBetween = 22;
}  // namespace

FigureStrip::FigureStrip(const QStringList& names) {
    auto* row = new QHBoxLayout(this);
    row->setContentsMargins(kMargin, 0, kMargin, 0);
    row->setSpacing(kBetween);
    for (const QString& name : names) {
        auto* cell = new QVBoxLayout;
        cell->setSpacing(0);
        auto* label = new QLabel(name);
        label->setObjectName(QStringLiteral("figureLabel"));
        auto* figure = new QLabel;
        figure->setObjectName(QStringLiteral("figure"));
        figure->setMinimumWidth(40);
        figure->setMinimumHeight(QFontMetrics(uiFont(kFigurePixels, true)).height() + 2);
        cell->addWidget(label);
        cell->addWidget(figure);
        row->addLayout(cell);
        names_.push_back(label);
        figures_.push_back(figure);
    }
    row->addStretch(1);
}

void FigureStrip::setFigures(const QStringList& figures) {
    for (std::size_t i = 0; i < figures_.size(); ++i)
        figures_[i]->setText(figures[static_cast<qsizetype>(i)]);
    fit();
}

void FigureStrip::fit() {
    int size = kFigurePixels;
    const auto needed = [&] {
        const QFontMetrics metrics(uiFont(size, true));
        int width = 2 * kMargin - kBetween;
        for (std::size_t i = 0; i < figures_.size(); ++i)
            width += kBetween + std::max(names_[i]->sizeHint().width(),
                                         metrics.horizontalAdvance(figures_[i]->text()) + 2);
        return width;
    };
    while (size > kSmallest && needed() > width()) --size;
    for (QLabel* figure : figures_)
        figure->setStyleSheet(QStringLiteral("font-size: %1px").arg(size));
}

void FigureStrip::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    fit();
}

}  // namespace hw::viewer
