// SPDX-License-Identifier: MIT
#include "live/host/limits.h"

#include <algorithm>

#include "core/base/parse_bytes.h"
#include "planners/dtr/dtr.h"
#include "planners/mimose/mimose.h"
#include "planners/registry.h"

namespace hw::live {
namespace {

using namespace hw::core;

/// Plans by size are Mimose's; who asks for another planner gets no plans but of that one.
PlannerCommands plannersOf(const std::string& planner, Bytes budget) {
    const std::string bytes = std::to_string(budget.count());
    PlannerCommands commands;
    commands.often = {"/proc/self/exe", "plan-step", "--budget", bytes, "--planner", planner};
    commands.region = {"/proc/self/exe", "plan-region", "--budget", bytes};
    if (planner == planners::ownPlanner().name || planner == planners::Mimose::info().name)
        commands.soon = {"/proc/self/exe", "plan-sizes", "--budget", bytes};
    return commands;
}

/// How much is compared: "full", "sampled", "off" or "" (default).
Result<std::uint32_t> verifyFlags(const std::string& word) {
    if (word.empty()) return std::uint32_t{0};
    if (word == "off") return wire::kConfigVerifyOff;
    if (word == "sampled") return wire::kConfigVerifySampled;
    if (word == "full") return wire::kConfigVerifyFull;
    return Error{ErrorCode::Usage, "--verify knows no '" + word + "'",
                 "write full, sampled or off; without it as much is compared as costs 1 % of a "
                 "step"};
}

}  // namespace

Result<LiveLimits> limitsOf(const LimitWords& words, bool planned) {
    LiveLimits limits;
    std::optional<Bytes> budget;
    for (auto [text, bytes] : {std::pair(&words.cap, &limits.cap), {&words.budget, &budget}}) {
        if (text->empty()) continue;
        const auto parsed = parseBytes(*text);
        if (!parsed) return parsed.error();
        *bytes = *parsed;
    }
    const auto verify = verifyFlags(words.verify);
    if (!verify) return verify.error();
    limits.verify = *verify;
    if (!words.verify.empty() && !planned && !words.any())
        return Error{ErrorCode::Usage, "--verify has nothing to compare",
                     "give it with a session and its plan, with --budget or with --on-oom"};
    if (words.partition && !budget)
        return Error{ErrorCode::Usage, "--partition has no budget to choose within",
                     "give it with --budget"};
    if (!words.any()) return limits;
    const std::string planner = words.planner.empty() ? planners::ownPlanner().name : words.planner;
    const auto heuristic = planners::Dtr::find(planner);
    if (!heuristic && planners::findPlanner(planner) == nullptr)
        return Error{ErrorCode::Usage, "there is no planner '" + planner + "'",
                     "'highwater list planners' names them"};
    if (!budget && !heuristic && !words.planner.empty())
        return Error{
            ErrorCode::Usage, "with --on-oom only heuristics of DTR decide",
            "choose one (\"dtr:lru\"), or give a --budget that '" + planner + "' can plan for"};
    limits.heuristic =
        static_cast<std::int64_t>(heuristic.value_or(planners::DtrHeuristic::EqClass));
    limits.onOom = !budget;  // a budget does so by itself
    if (!budget) return limits;
    limits.cap = std::min(limits.cap.value_or(*budget), *budget);
    if (!heuristic) limits.planners = plannersOf(planner, *limits.cap);
    if (words.partition && heuristic)
        return Error{ErrorCode::Usage,
                     "--partition is a planner's choice, and '" + planner + "' is a heuristic",
                     "leave --planner out"};
    limits.partition = words.partition;
    return limits;
}

}  // namespace hw::live
