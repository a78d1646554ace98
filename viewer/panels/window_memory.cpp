// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/panels/window_memory.h"

#include <QDockWidget>
#include <QFileInfo>

namespace hw::viewer {
namespace {

constexpr QSize kComfortable(1680, 1000);
constexpr int kTitleBar = 32;  // of the window's frame, at the most
const QString kState = QStringLiteral("window/state"), kDocks = QStringLiteral("window/docks"),
              kGeometry = QStringLiteral("window/geometry"), kLight = QStringLiteral("look/light"),
              kScale = QStringLiteral("look/fontScale"), kRecent = QStringLiteral("files/recent"),
              kBudgets = QStringLiteral("files/budgets"),
              kWelcomed = QStringLiteral("look/welcomed");

QStringList dockNames(const QMainWindow& window) {
    QStringList names;
    for (const QDockWidget* dock : window.findChildren<QDockWidget*>()) names << dock->objectName();
    names.sort();
    return names;
}

}  // namespace

QSize firstSize(const QSize& available) {
    return kComfortable.boundedTo(available - QSize(0, kTitleBar));
}

void WindowMemory::restoreGeometry(QMainWindow& window) const {
    window.restoreGeometry(settings_->value(kGeometry).toByteArray());
}

QByteArray WindowMemory::docks(const QMainWindow& window) const {
    const QStringList names = dockNames(window);
    if (settings_->value(kDocks, names).toStringList() != names) return {};
    return settings_->value(kState).toByteArray();
}

void WindowMemory::keep(const QMainWindow& window, const QByteArray& state) {
    settings_->setValue(kGeometry, window.saveGeometry());
    settings_->setValue(kState, state);
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

std::optional<double> WindowMemory::budgetRatio(const QString& file) const {
    const QVariantMap kept = settings_->value(kBudgets).toMap();
    const auto found = kept.constFind(QFileInfo(file).absoluteFilePath());
    if (found == kept.constEnd()) return std::nullopt;
    return found->toDouble();
}

// Of the recent files alone, so that the list does not grow for ever.
void WindowMemory::keepBudgetRatio(const QString& file, double ratio) {
    const QVariantMap kept = settings_->value(kBudgets).toMap();
    QVariantMap budgets;
    for (const QString& recent : recentFiles())
        if (kept.contains(recent)) budgets[recent] = kept[recent];
    budgets[QFileInfo(file).absoluteFilePath()] = ratio;
    settings_->setValue(kBudgets, budgets);
}

}  // namespace hw::viewer
