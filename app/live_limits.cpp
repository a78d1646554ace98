// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/live_limits.h"

#include <algorithm>

#include "app/live_mismatch.h"
#include "core/base/parse_bytes.h"
#include "planners/dtr/dtr.h"
#include "planners/mimose/mimose.h"
#include "planners/registry.h"

namespace hw::app {
namespace {

using namespace hw::core;

/// Plans by size are Mimose's; who asks for another planner gets no plans but of that one.
profiler::PlannerCommands plannersOf(const std::string& planner, Bytes budget) {
    const std::string bytes = std::to_string(budget.count());
    profiler::PlannerCommands commands;
    commands.often = {"/proc/self/exe", "plan-step", "--budget", bytes, "--planner", planner};
    if (planner == planners::ownPlanner().name || planner == planners::Mimose::info().name)
        commands.soon = {"/proc/self/exe", "plan-sizes", "--budget", bytes};
    return commands;
}

}  // namespace

void addLimits(CLI::App& command, LimitWords& words) {
    command.add_option("--budget", words.budget,
                       "Keep live bytes within this (\"20GB\"), without a session or a plan: DTR "
                       "evicts and makes again while the program trains");
    command.add_flag("--on-oom", words.onOom,
                     "Drop nothing until an allocation fails; then evict as DTR does, and try it "
                     "again before the program hears of it");
    command.add_option("--verify", words.verify,
                       "How much of what is recomputed is compared with what was dropped: full, "
                       "sampled or off (default: as much as takes 1 % of a step). A difference "
                       "ends the program");
    command.add_option("--planner", words.planner,
                       "With --budget: whose plan takes over from DTR once it is there (default: "
                       "highwater), or which of DTR's heuristics is to stay (\"dtr:lru\")");
}

Result<profiler::LiveLimits> limitsOf(const LimitWords& words, bool planned) {
    profiler::LiveLimits limits;
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
    return limits;
}

}  // namespace hw::app
