// SPDX-License-Identifier: MIT
// Plans of several kinds of steps, such as those of different input sizes. All of them follow a
// step from its beginning, since only its ops say which kind it is; a plan that expects another op
// leaves, and the first of those that are left says what goes and what comes back.
#pragma once

#include <memory>
#include <vector>

#include "plan_follower.h"

namespace hw::live::runtime {

class PlanFollowers {
public:
    /// Most of them at a time: then the one whose step has been longest ago goes.
    static constexpr std::size_t kMost = 24;

    /// A plan for that kind of steps from the next one on, instead of the one that there is.
    /// `ending`: how a step ends that has kept to it.
    void add(std::int64_t kind, Boundary ending, Program program);
    void clear();
    bool empty() const { return followers_.empty(); }

    void begin();
    void forward();
    /// The step has been a planned one so far.
    bool follows() const { return !following_.empty(); }
    /// One plan is left, and none has ever been left as late in a step as here.
    bool certain() const;
    /// The forward pass has not begun.
    bool early() const { return acting().early(); }
    /// The storages have other numbers, -1 where one is forgotten.
    void rename(const std::vector<std::int64_t>& to);
    /// Which kind of step has ended, and how.
    struct Ended {
        std::int64_t kind = -1;  // none of them
        Boundary how = Boundary::Budget;
    };
    Ended ended();

    /// An op begins, see PlanFollower::begin(). What is to be done before it, if a plan says so;
    /// null: nothing.
    const ProgramOp* begin(const c10::FunctionSchema& schema, const NumberedTensors& tensors);
    /// It has ended: likewise after it.
    const ProgramOp* end(const NumberedTensors& results);
    /// The op has raised an exception.
    void failed();
    void leave();
    /// What the acting one says cannot be done.
    void leaveActing();
    /// The acting one; there is one.
    const PlanFollower& acting() const { return following_.front()->follower; }
    /// Where the last one was left, and what it expected there.
    const std::optional<Divergence>& left() const { return left_; }

private:
    struct Kind {
        Kind(std::int64_t which, Boundary how, Program program)
            : kind(which), ending(how), follower(std::move(program)) {}
        std::int64_t kind;
        Boundary ending;
        PlanFollower follower;
        const ProgramOp* op = nullptr;  // that runs, if it is the planned one
        std::int64_t wholeAt = 0;       // the last step that was
    };

    /// Those that do not follow any more. `elsewhere`: the step is another one than theirs.
    void dropLeft(bool elsewhere);

    std::vector<std::unique_ptr<Kind>> followers_;
    std::vector<Kind*> following_;  // those of the latest steps first
    std::optional<Divergence> left_;
    std::size_t deepest_ = 0;  // op in the forward pass or later at which one was left
    std::int64_t steps_ = 0;
};

}  // namespace hw::live::runtime
