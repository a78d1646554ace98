// SPDX-License-Identifier: GPL-3.0-or-later
// A line that ends in "…" where its room is short, and tells the whole of it under the pointer.
#pragma once

#include <QLabel>

namespace hw::viewer {

class ElidingLabel : public QLabel {
    Q_OBJECT
public:
    explicit ElidingLabel(QWidget* parent = nullptr);

    /// In the colour of what is wrong.
    void setAlert(bool alert);
    QSize minimumSizeHint() const override;

protected:
    void paintEvent(QPaintEvent* event) override;
    bool event(QEvent* event) override;

private:
    bool alert_ = false;
};

}  // namespace hw::viewer
