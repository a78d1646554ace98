// SPDX-License-Identifier: GPL-3.0-or-later
// How large a batch fits: records of one program at some sizes, and what each planner reaches
// within a budget.
#pragma once

#include <QString>
#include <QStringList>
#include <functional>
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
    core::Family family;
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
core::Result<BatchStudy> studyBatch(const core::Family& family, core::Bytes budget,
                                    const QStringList& planners, double seconds,
                                    const std::function<bool()>& cancelled = {});

/// Budgets beside that one at which a curve over the budget is drawn.
std::vector<core::Bytes> budgetsAround(core::Bytes budget);

/// The program at a size, as a session in `folder`, and the plan for it where `row` has one there.
struct BatchFiles {
    std::string session;
    std::optional<std::string> plan;
};
/// Errors: as core::writePredicted().
core::Result<BatchFiles> writeBatch(const BatchFamily& family, std::int64_t size,
                                    const planners::LargestSize& row, const std::string& folder);

}  // namespace hw::viewer
