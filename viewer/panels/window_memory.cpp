// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/panels/window_memory.h"

#include <QFileInfo>

namespace hw::viewer {
namespace {

constexpr int kLayout = 1;  // raised when docks come or go: an older layout is not restored
const QString kState = QStringLiteral("window/state"),
              kGeometry = QStringLiteral("window/geometry"), kLight = QStringLiteral("look/light"),
              kScale = QStringLiteral("look/fontScale"), kRecent = QStringLiteral("files/recent"),
              kWelcomed = QStringLiteral("look/welcomed");

}  // namespace

bool WindowMemory::restore(QMainWindow& window) const {
    return window.restoreGeometry(settings_->value(kGeometry).toByteArray()) &&
           window.restoreState(settings_->value(kState).toByteArray(), kLayout);
}

void WindowMemory::keep(const QMainWindow& window) {
    settings_->setValue(kGeometry, window.saveGeometry());
    settings_->setValue(kState, window.saveState(kLayout));
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
