// SPDX-License-Identifier: MIT
// What a run says.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/units.h"
#include "executor/replay/memory_tracker.h"
#include "executor/replay/recorded_end.h"
#include "executor/replay/verification.h"

namespace hw::executor {

/// Several steps in a row (run --steps N).
struct Training {
    int steps = 0;
    std::vector<double> losses, unplannedLosses;  // one a step; empty when no op makes a loss
    std::int64_t lossesDifferent = 0;             // by their bytes
    // What the last step leaves: tensors, whole storages that lived before the step, too, and the
    // generators as one.
    std::int64_t finalCompared = 0, finalDifferent = 0;
    std::int64_t parameters = 0, optimizerStates = 0;  // storages, of those compared
    std::int64_t parametersMoved = 0;                  // that the steps have changed
    std::string firstDifference;                       // for people; empty when there is none
    std::string note;
};

/// What measuring implementations found.
struct MenuSummary {
    std::int64_t offered = 0, kept = 0;
    std::int64_t different = 0;   // left out: other results
    std::int64_t dominated = 0;   // left out: neither faster nor smaller
    std::int64_t impossible = 0;  // left out: ruled out by others of the step
};

/// An op that the plan runs in another way than the captured order, predicted beside measured.
struct OpFigures {
    core::OpIndex op = core::kNone;
    int recomputed = 0;                               // times
    core::Nanoseconds predictedAgain, measuredAgain;  // of all its recomputations
    std::string implementation;                       // empty: the captured one
    core::Nanoseconds predicted, measured;            // of its first computation
};

struct Report {
    std::string planner;        // core::kBaselinePlanner without a plan
    std::string device;         // "cpu" or "cuda"
    core::Bytes predictedPeak;  // the judge's
    core::Bytes measuredPeak;   // highest live bytes that the allocator saw under the plan
    core::Bytes baselinePeak;   // the same of the unplanned run
    core::Bytes arena, arenaLowerBound;
    core::Nanoseconds time, baselineTime;  // medians in an arena, comparison left out
    core::Nanoseconds interpreterPerOp;    // of the unplanned run, what is spent outside kernels
    Figures figures;
    std::vector<OpFigures> ops;       // medians, as `time`
    Agreement recorded;               // with what the training itself left, as far as that is known
    std::vector<Fallback> fallbacks;  // allocations that the arena could not serve
    core::Bytes residentSetPeak;      // of the process, libtorch and the verification included
    int threads = 0;
    std::vector<std::string> notes;
    std::int64_t chosen = 0;  // ops that run under another implementation than captured
    bool captured = true;     // compared with the captured implementations, not the chosen ones
    std::optional<MenuSummary> menu;
    std::optional<Training> training;

    /// No result of the planned run, or of the steps in a row, differs from the unplanned one.
    bool same() const;
};

/// One JSON object with the keys of the `run` command.
std::string toJson(const Report& report);
/// The same for people.
std::string toText(const Report& report);
/// A note as a line of that text.
std::string noteLine(const std::string& note);
/// Peak of the resident set of this process; 0 where the system does not say.
core::Bytes residentSetPeak();

}  // namespace hw::executor
