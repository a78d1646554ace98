// SPDX-License-Identifier: GPL-3.0-or-later
// Memory over the whole recording, one step after another; what was not recorded is hatched.
#pragma once

#include "viewer/models/document.h"
#include "viewer/plots/plot.h"

namespace hw::viewer {

/// A click opens a step, as the arrow keys do the one before and the one after.
class StepsPlot : public Plot {
    Q_OBJECT
public:
    explicit StepsPlot(QWidget* parent = nullptr);

    void setDocument(const DocumentPointer& document);
    void applyTheme() override;
    /// How many steps are drawn; for tests.
    int stepsDrawn() const { return drawn_; }
    /// The recorded step at a place of the widget; -1 between steps.
    std::int64_t stepAt(const QPoint& position) const;

signals:
    void stepClicked(qint64 step);

protected:
    void mousePressEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    void rebuild();
    void addGap(double from, double to);

    DocumentPointer document_;
    QCPGraph *highest_, *current_;
    std::vector<QCPItemRect*> gaps_;
    QCPItemText* peak_;
    QPoint pressed_;
    int drawn_ = 0;
};

}  // namespace hw::viewer
