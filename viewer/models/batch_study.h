// SPDX-License-Identifier: GPL-3.0-or-later
// How large a batch fits: records of one program at some sizes, and what each planner reaches
// within a budget.
#pragma once

#include <QPointF>
#include <QString>
#include <QStringList>
#include <QVector>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/family/family.h"
#include "planners/largest_size.h"

namespace hw::viewer {

/// Records that belong together.
struct BatchFamily {
    std::vector<std::string> files;
    core::StepFamilies families;
    core::Bytes largestPeak;  // unplanned, of the largest record
};
using BatchFamilyPointer = std::shared_ptr<const BatchFamily>;

/// Errors: as core::loadFamily().
core::Result<BatchFamilyPointer> loadBatch(const std::vector<std::string>& files);

/// What planners reach within one budget.
struct BatchStudy {
    core::Bytes budget;
    std::vector<planners::LargestSize> rows;  // in the order of the planners
};

/// Each planner has `seconds` for its largest size; the sizes on the way there are a few more.
/// Errors: as planners::largestSizes().
core::Result<BatchStudy> studyBatch(const core::StepFamilies& families, core::Bytes budget,
                                    const QStringList& planners, double seconds,
                                    const std::function<bool()>& cancelled = {});

/// Budgets beside that one at which a curve over the budget is drawn.
std::vector<core::Bytes> budgetsAround(core::Bytes budget);

/// What is known of a family so far.
struct BatchResults {
    BatchFamilyPointer family;
    core::Bytes budget;                         // that is looked at
    std::map<core::Bytes, BatchStudy> studies;  // by budget

    const BatchStudy* atBudget() const;  // null: not yet
};

/// Seconds of a planner at the budget that is looked at, and at others.
inline constexpr double kBatchSeconds = 3, kBatchBesideSeconds = 1;

/// Everything at once, within the unplanned peak of the largest record, for pictures. Errors: as
/// loadBatch() and studyBatch().
core::Result<BatchResults> studyBatches(const std::vector<std::string>& files,
                                        const QStringList& planners);

struct BatchCurve {
    QString planner;
    QVector<QPointF> points;  // by ascending x
    int marked = -1;          // the point to look at; -1: none
};
/// The largest size over the budget in units of `unitBytes`; in the planners' order, ours on top.
std::vector<BatchCurve> sizeOverBudget(const BatchResults& results, const QStringList& planners,
                                       double unitBytes);
/// Items a second over the size, within the budget; the most is marked.
std::vector<BatchCurve> speedOverSize(const BatchResults& results, const QStringList& planners);

/// The program at a size, as a session in `folder`, and the plan for it where `row` has one there.
struct BatchFiles {
    std::string session;
    std::optional<std::string> plan;
};
/// Errors: as core::writePredicted().
core::Result<BatchFiles> writeBatch(const BatchFamily& family, std::int64_t size,
                                    const planners::LargestSize& row, const std::string& folder);

}  // namespace hw::viewer
