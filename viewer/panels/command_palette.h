// SPDX-License-Identifier: GPL-3.0-or-later
// Everything that the window can do, found by typing a part of its name.
#pragma once

#include <QAction>
#include <QListWidget>

#include "viewer/panels/finder.h"

namespace hw::viewer {

class CommandPalette : public Finder {
    Q_OBJECT
public:
    /// Offers those of the actions that are enabled, and does the chosen one after it has closed.
    CommandPalette(const QList<QAction*>& actions, QWidget* parent);

protected:
    void narrow(const QString& typed) override;
    void perform() override;

private:
    QListWidget* list_;
    QList<QAction*> offered_;
};

}  // namespace hw::viewer
