// SPDX-License-Identifier: GPL-3.0-or-later
// The budget as a figure that can be typed over: "14.9 MB", "4GiB", "15623456", "62.5 %".
#pragma once

#include <QLineEdit>

#include "core/base/result.h"
#include "viewer/models/format.h"

namespace hw::viewer {

/// Bytes of what is typed; a percentage is of the peak. Usage: neither a size nor a share of it.
core::Result<core::Bytes> budgetOf(const QString& typed, core::Bytes peak);

class BudgetField : public QLineEdit {
    Q_OBJECT
public:
    explicit BudgetField(QWidget* parent = nullptr);

    /// Shows a budget and its share of `peak`, unless something is being typed.
    void show(core::Bytes budget, core::Bytes peak, const SizeUnit& unit);
    /// Shows none, and takes none.
    void forget() { show({}, {}, {}); }
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override { return sizeHint(); }

signals:
    void entered(hw::core::Bytes budget);

protected:
    void focusInEvent(QFocusEvent* event) override;
    void focusOutEvent(QFocusEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    void take();

    core::Bytes peak_;
    QString shown_;
};

}  // namespace hw::viewer
