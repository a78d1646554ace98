// SPDX-License-Identifier: GPL-3.0-or-later
// A row of large figures, each under its name.
#pragma once

#include <QLabel>
#include <QWidget>
#include <vector>

namespace hw::viewer {

class FigureStrip : public QWidget {
    Q_OBJECT
public:
    explicit FigureStrip(const QStringList& names);

    /// One for each name. They get smaller where the room is short, never cut off.
    void setFigures(const QStringList& figures);
    QString figure(std::size_t which) const { return figures_[which]->text(); }

protected:
    void resizeEvent(QResizeEvent* event) override;

private:
    void fit();

    std::vector<QLabel*> names_, figures_;
};

}  // namespace hw::viewer
