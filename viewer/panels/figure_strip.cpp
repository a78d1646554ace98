// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/panels/figure_strip.h"

#include <algorithm>
#include <utility>

#include "viewer/plots/theme.h"

namespace hw::viewer {
namespace {

constexpr int kSmallest = 12;  // pixels, as cells of tables have
constexpr int kFigureMargin = 14, kBetweenFigures = 22, kBetweenRows = 6;

int lineHeight(int pixels) {
    return QFontMetrics(uiFont(pixels, true)).height() + 2;
}

}  // namespace

FigureStrip::FigureStrip(const QStringList& names) {
    grid_ = new QGridLayout(this);
    grid_->setContentsMargins(kFigureMargin, 0, kFigureMargin, 0);
    grid_->setHorizontalSpacing(kBetweenFigures);
    grid_->setVerticalSpacing(kBetweenRows);
    for (const QString& name : names) {
        auto* cell = new QWidget;
        auto* column = new QVBoxLayout(cell);
        column->setContentsMargins(0, 0, 0, 0);
        column->setSpacing(0);
        auto* label = new QLabel(name);
        label->setObjectName(QStringLiteral("figureLabel"));
        auto* figure = new QLabel;
        figure->setObjectName(QStringLiteral("figure"));
        column->addWidget(label);
        column->addWidget(figure);
        cells_.push_back(cell);
        names_.push_back(label);
        figures_.push_back(figure);
    }
    setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Fixed);
    fit();
}

void FigureStrip::setFigures(const QStringList& figures) {
    for (std::size_t i = 0; i < figures_.size(); ++i)
        figures_[i]->setText(figures[static_cast<qsizetype>(i)]);
    fit();
}

// Columns are as wide as the widest of their cells.
int FigureStrip::widthOf(const Form& form) const {
    const QFontMetrics metrics(uiFont(form.pixels, true));
    std::vector<int> widths(static_cast<std::size_t>(form.columns), 0);
    for (std::size_t i = 0; i < figures_.size(); ++i) {
        int& width = widths[i % widths.size()];
        width = std::max({width, names_[i]->sizeHint().width(),
                          metrics.horizontalAdvance(figures_[i]->text()) + 2});
    }
    int sum = 2 * kFigureMargin - kBetweenFigures;
    for (const int width : widths) sum += kBetweenFigures + width;
    return sum;
}

// As few rows as can be, and within them as large as can be.
FigureStrip::Form FigureStrip::formWithin(int width) const {
    const int count = static_cast<int>(figures_.size());
    for (int rows = 1; rows <= count; ++rows) {
        const int columns = (count + rows - 1) / rows;
        for (int pixels = kFigurePixels; pixels >= kSmallest; --pixels)
            if (widthOf({columns, pixels}) <= width) return {columns, pixels};
    }
    return {1, kSmallest};
}

// A row keeps its height whatever the figures are, so that what is below it does not jump.
int FigureStrip::heightWithin(int width) const {
    const Form form = formWithin(width);
    const int count = static_cast<int>(figures_.size());
    const int rows = (count + form.columns - 1) / form.columns;
    const int row =
        names_.front()->sizeHint().height() + lineHeight(rows == 1 ? kFigurePixels : form.pixels);
    return rows * row + (rows - 1) * kBetweenRows;
}

void FigureStrip::fit() {
    const Form form = formWithin(width());
    if (form.columns != std::exchange(columns_, form.columns)) {
        for (std::size_t i = 0; i < cells_.size(); ++i) {
            const int at = static_cast<int>(i);
            grid_->setColumnStretch(at, 0);
            grid_->addWidget(cells_[i], at / columns_, at % columns_);
        }
        grid_->setColumnStretch(columns_, 1);
    }
    const int pixels = uiFont(form.pixels).pixelSize();
    for (QLabel* figure : figures_)
        figure->setStyleSheet(QStringLiteral("font-size: %1px").arg(pixels));
    if (const int height = heightWithin(width()); height != std::exchange(asked_, height))
        QMetaObject::invokeMethod(  // a layout that is at work would not hear it
            this, [this] { updateGeometry(); }, Qt::QueuedConnection);
}

QSize FigureStrip::sizeHint() const {
    const Form whole{static_cast<int>(figures_.size()), kFigurePixels};
    return {widthOf(whole), heightWithin(width())};
}

QSize FigureStrip::minimumSizeHint() const {
    return {widthOf({1, kSmallest}), heightWithin(width())};
}

void FigureStrip::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    fit();
}

}  // namespace hw::viewer
