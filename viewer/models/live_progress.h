// SPDX-License-Identifier: GPL-3.0-or-later
// A training under a plan or a budget as `--progress` tells of it (docs/train.md), step by step.
#pragma once

#include <QByteArray>
#include <QString>
#include <optional>
#include <vector>

#include "core/base/units.h"

class QJsonObject;

namespace hw::viewer {

/// Where a step left the plan.
struct LiveDivergence {
    qint64 step = 0, op = 0;
    QString expected, found;
};

/// The end of a run. No exit status: the program goes on.
struct LiveEnd {
    std::optional<int> exitStatus;
    std::optional<double> overhead;  // measured
    core::Bytes verified;            // recomputed, and the same as what was dropped
};

/// A step that has ended.
struct LiveStep {
    qint64 step = 0;
    std::size_t mode = 0;  // of LiveProgress::modes()
    core::Bytes peak;
    qint64 evictions = 0, recomputedOps = 0;
    core::Nanoseconds time, recomputing, runtime;  // the latter two are parts of the first
};

/// What decided in a step ("plan", "dtr", "mimose", "none", or what is not known here).
struct LiveMode {
    QString name;
    int steps = 0;
};
/// "DTR" of "dtr".
QString liveModeText(const QString& name);

/// Of several ranks, the one that told first.
class LiveProgress {
public:
    enum class Told { Nothing, Step, End };
    /// Takes a line in; what is no event of that rank says nothing.
    Told take(const QByteArray& line);

    int steps() const { return static_cast<int>(history_.size()); }
    const std::vector<LiveStep>& history() const { return history_; }
    /// In the order in which they came.
    const std::vector<LiveMode>& modes() const { return modes_; }
    /// Of the last step; empty before the first.
    QString mode() const { return history_.empty() ? QString() : modeOf(history_.back()); }
    const QString& modeOf(const LiveStep& step) const { return modes_[step.mode].name; }
    core::Bytes highestOfAll() const { return highestOfAll_; }  // whatever decided
    qint64 evictions() const { return evictions_; }
    qint64 recomputedOps() const { return recomputedOps_; }
    /// Measured, as the report has it: steps with against steps without, which, where there are
    /// none, are those of DTR less what it took. None: as yet nothing to compare.
    std::optional<double> overhead() const;
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
    void keep(const QJsonObject& event);
    std::size_t modeNamed(const QString& name);

    std::optional<qint64> rank_;
    std::vector<LiveStep> history_;
    std::vector<LiveMode> modes_;
    int planned_ = 0, diverged_ = 0;
    qint64 evictions_ = 0, recomputedOps_ = 0;
    bool underPlan_ = false;
    core::Bytes lastPeak_, highestPeak_, highestOfAll_;
    std::optional<LiveDivergence> divergence_;
    std::vector<core::Bytes> curve_;
    std::optional<LiveEnd> end_;
};

}  // namespace hw::viewer
