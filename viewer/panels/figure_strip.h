// SPDX-License-Identifier: GPL-3.0-or-later
// Large figures, each under its name: a row, or more where the room is short.
#pragma once

#include <QGridLayout>
#include <QLabel>
#include <QWidget>
#include <vector>

namespace hw::viewer {

class FigureStrip : public QWidget {
    Q_OBJECT
public:
    explicit FigureStrip(const QStringList& names);

    /// One for each name. They get smaller where the room is short, and then more rows, but are
    /// never cut off.
    void setFigures(const QStringList& figures);
    QString figure(std::size_t which) const { return figures_[which]->text(); }
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override;
    /// Pixels that all figures need in as many rows as it takes.
    int heightWithin(int width) const;

protected:
    void resizeEvent(QResizeEvent* event) override;

private:
    struct Form {
        int columns, pixels;  // of the figures' text
    };
    Form formWithin(int width) const;
    int widthOf(const Form& form) const;
    void fit();

    QGridLayout* grid_;
    std::vector<QWidget*> cells_;
    std::vector<QLabel*> names_, figures_;
    int columns_ = 0, asked_ = 0;  // as they are now; the height that was asked for
};

}  // namespace hw::viewer
