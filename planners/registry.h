// SPDX-License-Identifier: MIT
// All planners. Each states its entry beside itself; the list names each once.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "planners/planner.h"

namespace hw::planners {

/// In the order in which they are shown.
const std::vector<PlannerInfo>& plannerList();
/// Null when no planner has that name.
const PlannerInfo* findPlanner(std::string_view name);
/// Usage error naming the known planners when there is none of that name.
core::Result<std::unique_ptr<Planner>> makePlanner(std::string_view name);
/// Usage error naming the planner's options and their values when one of `options` is not among
/// them. Options are checked where people give them; planners ignore those of others.
core::Status checkOptions(std::string_view planner,
                          const std::map<std::string, std::string>& options);

/// For a plan at once: it answers within a second nearly everywhere.
const PlannerInfo& quickPlanner();
/// Highwater's own, and what plans where no planner is named: the best plans, and with
/// `search=first` a first one at once.
const PlannerInfo& ownPlanner();
/// Names of the planners with a trait, for messages: "a, b".
std::string plannersWith(bool PlannerInfo::*trait);

}  // namespace hw::planners
