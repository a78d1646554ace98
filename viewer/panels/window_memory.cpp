// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/panels/window_memory.h"

#include <QDockWidget>
#include <QFileInfo>

namespace hw::viewer {
namespace {

constexpr int kLayout = 1;  // of the form in which layouts are kept
const QString kState = QStringLiteral("window/state"), kDocks = QStringLiteral("window/docks"),
              kGeometry = QStringLiteral("window/geometry"), kLight = QStringLiteral("look/light"),
              kScale = QStringLiteral("look/fontScale"), kRecent = QStringLiteral("files/recent"),
              kWelcomed = QStringLiteral("look/welcomed");

QStringList dockNames(const QMainWindow& window) {
    QStringList names;
    for (const QDockWidget* dock : window.findChildren<QDockWidget*>()) names << dock->objectName();
    names.sort();
    return names;
}

}  // namespace

bool WindowMemory::restore(QMainWindow& window) const {
    const QStringList docks = dockNames(window);
    if (settings_->value(kDocks, docks).toStringList() != docks) return false;
    return window.restoreGeometry(settings_->value(kGeometry).toByteArray()) &&
           window.restoreState(settings_->value(kState).toByteArray(), kLayout);
}

void WindowMemory::keep(const QMainWindow& window) {
    settings_->setValue(kGeometry, window.saveGeometry());
    settings_->setValue(kState, window.saveState(kLayout));
    settings_->setValue(kDocks, dockNames(window));
}

void WindowMemory::forgetLayout() {
    settings_->remove(kGeometry);
    settings_->remove(kState);
}

bool WindowMemory::light() const {
    return settings_->value(kLight, false).toBool();
}
double WindowMemory::fontScale() const {
    return settings_->value(kScale, 1.0).toDouble();
}
void WindowMemory::keepLook(bool light, double fontScale) {
    settings_->setValue(kLight, light);
    settings_->setValue(kScale, fontScale);
}

bool WindowMemory::welcomed() const {
    return settings_->value(kWelcomed, false).toBool();
}
void WindowMemory::setWelcomed() {
    settings_->setValue(kWelcomed, true);
}

QStringList WindowMemory::recentFiles() const {
    QStringList files = settings_->value(kRecent).toStringList();
    files.removeIf([](const QString& file) { return !QFileInfo::exists(file); });
    return files;
}

void WindowMemory::remember(const QString& file) {
    const QString path = QFileInfo(file).absoluteFilePath();
    QStringList files = recentFiles();
    files.removeAll(path);
    files.prepend(path);
    settings_->setValue(kRecent, QStringList(files.mid(0, kRecentFiles)));
}

}  // namespace hw::viewer
