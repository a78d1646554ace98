// SPDX-License-Identifier: GPL-3.0-or-later
// Everything that the window can do, found by typing a part of its name.
#pragma once

#include <QAction>
#include <QDialog>
#include <QLineEdit>
#include <QListWidget>

namespace hw::viewer {

class CommandPalette : public QDialog {
    Q_OBJECT
public:
    /// Offers those of the actions that are enabled, and does the chosen one after it has closed.
    CommandPalette(const QList<QAction*>& actions, QWidget* parent);

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    void narrow(const QString& typed);
    void perform();

    QLineEdit* field_;
    QListWidget* list_;
    QList<QAction*> offered_;
};

}  // namespace hw::viewer
