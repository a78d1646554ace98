// SPDX-License-Identifier: GPL-3.0-or-later
// What the window keeps from one start to the next: its layout, its look, the last files.
#pragma once

#include <QMainWindow>
#include <QSettings>
#include <QStringList>
#include <memory>
#include <optional>

namespace hw::viewer {

/// Of a window that opens for the first time: what its views need, or what the screen has.
QSize firstSize(const QSize& available);

class WindowMemory {
public:
    static constexpr int kRecentFiles = 8;

    explicit WindowMemory(std::unique_ptr<QSettings> settings) : settings_(std::move(settings)) {}

    /// Size and place of the window.
    void restoreGeometry(QMainWindow& window) const;
    /// The docks, for restoreState() once they are shown: Qt forgets the sizes of hidden ones.
    /// Empty where none were kept, or those of a window with other views.
    QByteArray docks(const QMainWindow& window) const;
    void keep(const QMainWindow& window, const QByteArray& state);
    static constexpr int kLayout = 2;  // of the form in which docks are kept
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
    /// As a share of the peak; none: that file is not among the recent ones.
    std::optional<double> budgetRatio(const QString& file) const;
    void keepBudgetRatio(const QString& file, double ratio);

private:
    std::unique_ptr<QSettings> settings_;
};

}  // namespace hw::viewer
