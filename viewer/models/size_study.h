// SPDX-License-Identifier: GPL-3.0-or-later
// Memory and time by input size: what was recorded, what Mimose's estimator says of it, and what
// the plan that each size gets comes to.
#pragma once

#include <QString>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "core/graph/training_graph.h"
#include "planners/mimose/mimose.h"

namespace hw::viewer {

/// Recorded steps of one session, at most kMostSteps of them, evenly chosen.
struct SizeSamples {
    static constexpr std::size_t kMostSteps = 48;
    struct Step {
        std::int64_t step;
        core::TrainingGraph graph;
        planners::StepProfile profile;
        core::Nanoseconds time;  // baseline's
    };
    std::vector<Step> steps;  // by input size
    std::int64_t recorded = 0;
};
using SizeSamplesPointer = std::shared_ptr<const SizeSamples>;

/// Steps whose layers differ from those of the last one are left out. Errors: as loadGraph.
core::Result<SizeSamplesPointer> loadSizes(const std::string& path,
                                           const std::function<bool()>& cancelled = {});

struct SizeRow {
    std::int64_t step = 0;
    double bytes = 0;  // of the step's inputs
    core::Bytes recordedPeak, estimatedPeak, plannedPeak;
    core::Nanoseconds recordedTime, plannedTime;
    int droppedLayers = 0;
    bool planned = false;  // false: no choice of layers keeps the budget
};

struct SizeStudy {
    std::vector<SizeRow> rows;                          // by input size
    std::vector<std::pair<double, core::Bytes>> curve;  // the estimator's, over the sizes
    core::Bytes budget;
    int layers = 0;
    std::int64_t plansMade = 0;  // the other sizes share one of them
    QString why;                 // there are no rows
};

/// The estimator's fit and Mimose's plan at the budget for every step, under the judge.
SizeStudy studySizes(const SizeSamples& samples, core::Bytes budget,
                     const std::function<bool()>& cancelled = {});

}  // namespace hw::viewer
