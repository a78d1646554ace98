// SPDX-License-Identifier: MIT
#include "planners/planner.h"

#include <algorithm>

namespace hw::planners {

std::string_view planStatusName(PlanStatus status) {
    switch (status) {
        case PlanStatus::Ok:
            return "ok";
        case PlanStatus::Infeasible:
            return "infeasible";
        case PlanStatus::Thrash:
            return "thrash";
        case PlanStatus::TimeLimit:
            return "time_limit";
        case PlanStatus::Cancelled:
            return "cancelled";
    }
    return "infeasible";
}

bool PlannerInfo::takesOption(std::string_view option) const {
    return std::any_of(options.begin(), options.end(), [&](const std::string& known) {
        return std::string_view(known).substr(0, known.find('=')) == option;
    });
}

}  // namespace hw::planners
