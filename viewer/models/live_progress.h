// SPDX-License-Identifier: GPL-3.0-or-later
// A training under a plan as `--progress` tells of it (docs/train.md), step by step.
#pragma once

#include <QByteArray>
#include <QString>
#include <optional>
#include <vector>

#include "core/base/units.h"

namespace hw::viewer {

/// Where a step left the plan.
struct LiveDivergence {
    qint64 step = 0, op = 0;
    QString expected, found;
};

/// The end of a run. No exit status: the program goes on.
struct LiveEnd {
    std::optional<int> exitStatus;
};

/// Of several ranks, the one that told first.
class LiveProgress {
public:
    enum class Told { Nothing, Step, End };
    /// Takes a line in; what is no event of that rank says nothing.
    Told take(const QByteArray& line);

    int steps() const { return steps_; }
    int planned() const { return planned_; }    // steps carried out under the plan
    int diverged() const { return diverged_; }  // steps that left it
    const std::optional<LiveDivergence>& divergence() const { return divergence_; }  // the last
    bool underPlan() const { return underPlan_; }             // the last step
    core::Bytes lastPeak() const { return lastPeak_; }        // of the last planned step
    core::Bytes highestPeak() const { return highestPeak_; }  // of all planned steps
    /// The highest live bytes from the end of the op before to the end of each captured op, in the
    /// newest planned step that has them; empty without one.
    const std::vector<core::Bytes>& curve() const { return curve_; }
    const std::optional<LiveEnd>& end() const { return end_; }

private:
    std::optional<qint64> rank_;
    int steps_ = 0, planned_ = 0, diverged_ = 0;
    bool underPlan_ = false;
    core::Bytes lastPeak_, highestPeak_;
    std::optional<LiveDivergence> divergence_;
    std::vector<core::Bytes> curve_;
    std::optional<LiveEnd> end_;
};

}  // namespace hw::viewer
