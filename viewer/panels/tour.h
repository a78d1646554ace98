// SPDX-License-Identifier: GPL-3.0-or-later
// A few words on each view, one after another, beside the view itself.
#pragma once

#include <QFrame>
#include <QLabel>
#include <QPushButton>
#include <vector>

namespace hw::viewer {

class Tour : public QFrame {
    Q_OBJECT
public:
    struct Stop {
        QWidget* view;  // hidden ones are passed over
        QString title, text;
    };

    /// Lies over the window and deletes itself when it ends.
    Tour(QWidget* window, std::vector<Stop> stops);
    /// Which stop is shown, from 0.
    std::size_t at() const { return at_; }
    void next();

signals:
    void ended();

protected:
    void keyPressEvent(QKeyEvent* event) override;
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    void show(std::size_t stop);
    void place();
    void end();

    std::vector<Stop> stops_;
    std::size_t at_ = 0;
    QLabel* title_;
    QLabel* text_;
    QLabel* count_;
    QPushButton* next_;
};

}  // namespace hw::viewer
