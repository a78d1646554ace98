// SPDX-License-Identifier: GPL-3.0-or-later
// A field to type into and, below it, what that finds: arrows and Enter choose among it.
#pragma once

#include <QAbstractItemView>
#include <QDialog>
#include <QLineEdit>

namespace hw::viewer {

class Finder : public QDialog {
    Q_OBJECT
public:
    QLineEdit& field() const { return *field_; }

protected:
    /// Takes the list over. The field keeps the keys; the arrow keys move in the list.
    Finder(QAbstractItemView* list, const QSize& size, QWidget* parent);
    /// Puts the first row under the keys.
    void toFirstRow();
    bool eventFilter(QObject* watched, QEvent* event) override;
    /// Shows what is found by this text.
    virtual void narrow(const QString& typed) = 0;
    /// Does what the current row is for, and closes.
    virtual void perform() = 0;

private:
    QLineEdit* field_;
    QAbstractItemView* list_;
};

}  // namespace hw::viewer
