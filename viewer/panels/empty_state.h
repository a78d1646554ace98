// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QLabel>
#include <QWidget>

namespace hw::viewer {

/// What the window shows before there is a session: how to get one.
class EmptyState : public QWidget {
    Q_OBJECT
public:
    explicit EmptyState(QWidget* parent = nullptr);
    /// Says why the last file could not be opened; empty clears it.
    void setProblem(const QString& what, const QString& hint);

signals:
    void openRequested();
    void sampleRequested();
    void recordRequested();

private:
    QLabel* problem_;
};

}  // namespace hw::viewer
