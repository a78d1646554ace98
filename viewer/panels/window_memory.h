// SPDX-License-Identifier: GPL-3.0-or-later
// What the window keeps from one start to the next: its layout, its look, the last files.
#pragma once

#include <QMainWindow>
#include <QSettings>
#include <QStringList>
#include <memory>

namespace hw::viewer {

class WindowMemory {
public:
    static constexpr int kRecentFiles = 8;

    explicit WindowMemory(std::unique_ptr<QSettings> settings) : settings_(std::move(settings)) {}

    /// Size, place and docks; false where none were kept, or those of a window with other views.
    bool restore(QMainWindow& window) const;
    void keep(const QMainWindow& window);
    void forgetLayout();

    bool light() const;
    double fontScale() const;
    void keepLook(bool light, double fontScale);

    /// Whether the first start is over.
    bool welcomed() const;
    void setWelcomed();

    /// The last first; those that are gone are left out.
    QStringList recentFiles() const;
    void remember(const QString& file);

private:
    std::unique_ptr<QSettings> settings_;
};

}  // namespace hw::viewer
