// SPDX-License-Identifier: GPL-3.0-or-later
// Undo of what is looked at. Nothing recorded or planned changes with it.
#pragma once

#include <QObject>
#include <QTimer>
#include <functional>
#include <vector>

#include "viewer/models/workspace.h"

namespace hw::viewer {

struct ViewState {
    WorkspaceState shared;
    double begin = 0, end = 0;  // visible time in milliseconds; both 0: the whole step
    friend bool operator==(const ViewState&, const ViewState&) = default;
};

/// Remembers the states that a person came to rest at: a drag of the slider or a turn of the wheel
/// is one change.
class ViewHistory : public QObject {
    Q_OBJECT
public:
    static constexpr int kRestMs = 300;
    static constexpr std::size_t kKept = 200;

    ViewHistory(std::function<ViewState()> read, std::function<void(const ViewState&)> apply,
                QObject* parent = nullptr);

    /// Something may have changed.
    void note() { rest_.start(); }
    /// Forgets everything, because something else is looked at.
    void clear();
    /// False where there is nothing to go back, or forward, to.
    bool undo();
    bool redo();

private:
    void take();
    void show();

    std::function<ViewState()> read_;
    std::function<void(const ViewState&)> apply_;
    QTimer rest_;
    std::vector<ViewState> states_;
    std::size_t at_ = 0;  // of what is shown
};

}  // namespace hw::viewer
