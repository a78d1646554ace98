// SPDX-License-Identifier: MIT
#include "planners/registry.h"

#include <algorithm>

#include "planners/chen/chen.h"
#include "planners/dtr/dtr.h"
#include "planners/echo/echo.h"
#include "planners/mimose/mimose.h"
#include "planners/monet/monet.h"
#include "planners/none.h"
#include "planners/offload/capuchin.h"
#include "planners/offload/offload_only.h"
#include "planners/program/checkmate.h"
#include "planners/search/highwater.h"

namespace hw::planners {

using namespace hw::core;

namespace {

bool allows(const std::string& option, const std::string& name, const std::string& value) {
    const std::size_t equals = option.find('=');
    const std::string values = "|" + option.substr(equals + 1) + "|";
    return option.compare(0, equals, name) == 0 && !value.empty() &&
           values.find("|" + value + "|") != std::string::npos;
}

void append(std::string& list, const std::string& word) {
    if (!list.empty()) list += ", ";
    list += word;
}

}  // namespace

const std::vector<PlannerInfo>& plannerList() {
    static const std::vector<PlannerInfo> list{
        None::info(),
        ChenSqrt::info(),
        ChenGreedy::info(),
        ChenCheap::info(),
        ChenRecursive::info(),
        Echo::info(),
        Dtr::info(DtrHeuristic::Full),
        Dtr::info(DtrHeuristic::EqClass),
        Dtr::info(DtrHeuristic::Local),
        Dtr::info(DtrHeuristic::Lru),
        Dtr::info(DtrHeuristic::Largest),
        Dtr::info(DtrHeuristic::Msps),
        Dtr::info(DtrHeuristic::Random),
        Checkmate::info(),
        Monet::info(),
        Mimose::info(),
        Capuchin::info(),
        OffloadOnly::info(),
        HighwaterPlanner::info(),
    };
    return list;
}

const PlannerInfo* findPlanner(std::string_view name) {
    for (const PlannerInfo& info : plannerList())
        if (info.name == name) return &info;
    return nullptr;
}

Result<std::unique_ptr<Planner>> makePlanner(std::string_view name) {
    if (const PlannerInfo* info = findPlanner(name)) return info->make();
    std::string known;
    for (const PlannerInfo& info : plannerList()) append(known, info.name);
    return Error{ErrorCode::Usage, "there is no planner '" + std::string(name) + "'",
                 "planners: " + known};
}

Status checkOptions(std::string_view planner, const std::map<std::string, std::string>& options) {
    const PlannerInfo* info = findPlanner(planner);
    if (info == nullptr) return makePlanner(planner).error();
    std::string known;
    for (const std::string& option : info->options) append(known, option);
    for (const auto& [name, value] : options) {
        const bool fits = std::any_of(info->options.begin(), info->options.end(),
                                      [&, &name = name, &value = value](const std::string& option) {
                                          return allows(option, name, value);
                                      });
        std::string given = name;
        given.append("=").append(value);
        if (!fits)
            return Error{ErrorCode::Usage, info->name + " has no option '" + given + "'",
                         known.empty() ? info->name + " has no options" : "its options: " + known};
    }
    return {};
}

const PlannerInfo& quickPlanner() {
    static const PlannerInfo& info = *findPlanner("dtr:eqclass");
    return info;
}

const PlannerInfo& ownPlanner() {
    static const PlannerInfo& info = *findPlanner("highwater");
    return info;
}

std::string plannersWith(bool PlannerInfo::*trait) {
    std::string names;
    for (const PlannerInfo& info : plannerList())
        if (info.*trait) append(names, info.name);
    return names;
}

}  // namespace hw::planners
