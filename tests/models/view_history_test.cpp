// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/models/view_history.h"

#include <gtest/gtest.h>

namespace hw::viewer {
namespace {

class History : public ::testing::Test {
protected:
    void lookAt(double end) {
        now_.end = end;
        history_.note();
    }
    // undo() and redo() take what has not come to rest; the first state must be kept by itself.
    void settle() { EXPECT_FALSE(history_.redo()); }

    ViewState now_;
    ViewHistory history_{[this] { return now_; }, [this](const ViewState& state) { now_ = state; }};
};

TEST_F(History, GoesBackAndForward) {
    EXPECT_FALSE(history_.undo());
    lookAt(1);
    settle();
    lookAt(2);
    settle();
    lookAt(3);
    EXPECT_TRUE(history_.undo());
    EXPECT_EQ(now_.end, 2);
    EXPECT_TRUE(history_.undo());
    EXPECT_EQ(now_.end, 1);
    EXPECT_FALSE(history_.undo());
    EXPECT_TRUE(history_.redo());
    EXPECT_EQ(now_.end, 2);
    lookAt(7);  // what was undone is gone
    EXPECT_FALSE(history_.redo());
    EXPECT_EQ(now_.end, 7);
    EXPECT_TRUE(history_.undo());
    EXPECT_EQ(now_.end, 2);
}

TEST_F(History, ABurstIsOneChange) {
    lookAt(1);
    settle();
    for (const double end : {2, 3, 4, 5}) lookAt(end);
    EXPECT_TRUE(history_.undo());
    EXPECT_EQ(now_.end, 1);
    EXPECT_FALSE(history_.undo());
}

TEST_F(History, NothingOfAnotherDocument) {
    lookAt(1);
    settle();
    lookAt(2);
    settle();
    history_.clear();
    EXPECT_FALSE(history_.undo());
    EXPECT_EQ(now_.end, 2);
}

TEST_F(History, KeepsTheLastOnes) {
    for (std::size_t i = 0; i < ViewHistory::kKept + 20; ++i) {
        lookAt(static_cast<double>(i + 1));
        settle();
    }
    std::size_t undone = 0;
    while (history_.undo()) ++undone;
    EXPECT_EQ(undone, ViewHistory::kKept - 1);
    EXPECT_EQ(now_.end, 21);
}

}  // namespace
}  // namespace hw::viewer
