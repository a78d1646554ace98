// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/models/view_history.h"

#include <utility>

namespace hw::viewer {

ViewHistory::ViewHistory(std::function<ViewState()> read,
                         std::function<void(const ViewState&)> apply, QObject* parent)
    : QObject(parent), read_(std::move(read)), apply_(std::move(apply)) {
    rest_.setSingleShot(true);
    rest_.setInterval(kRestMs);
    connect(&rest_, &QTimer::timeout, this, &ViewHistory::take);
}

void ViewHistory::clear() {
    states_.clear();
    at_ = 0;
    note();
}

void ViewHistory::take() {
    rest_.stop();
    ViewState now = read_();
    if (!states_.empty() && states_[at_] == now) return;
    states_.resize(states_.empty() ? 0 : at_ + 1);
    if (states_.size() == kKept) states_.erase(states_.begin());
    states_.push_back(std::move(now));
    at_ = states_.size() - 1;
}

bool ViewHistory::undo() {
    if (rest_.isActive()) take();
    if (at_ == 0) return false;
    --at_;
    show();
    return true;
}

bool ViewHistory::redo() {
    if (rest_.isActive()) take();
    if (at_ + 1 >= states_.size()) return false;
    ++at_;
    show();
    return true;
}

// What the views make of it is the state from then on: a plan may be longer by now, for one.
void ViewHistory::show() {
    const ViewState wanted = states_[at_];
    apply_(wanted);
    rest_.stop();
    states_[at_] = read_();
}

}  // namespace hw::viewer
