// SPDX-License-Identifier: MIT
#include "planners/plan_with.h"

#include <cmath>
#include <set>

#include "planners/registry.h"
#include "planners/smallest_budget.h"
#include "tests/unit/graph_builder.h"

namespace hw::planners {
namespace {

using namespace hw::core;

// Planners that use all the time that they are given.
bool searches(const std::string& planner) {
    return planner == "highwater" || planner == "monet" || planner == "checkmate";
}

Outcome planFor(const std::string& planner, const TrainingGraph& graph, double share) {
    PlanRequest request;
    if (searches(planner)) request.workLimit = 10;
    const Bytes peak = evaluate(graph, baselineSchedule(graph)).peak;
    request.budget = Bytes(static_cast<std::int64_t>(static_cast<double>(peak.count()) * share));
    auto outcome = planWith(planner, graph, request);
    EXPECT_TRUE(outcome) << planner << ": " << (outcome ? "" : outcome.error().what);
    return outcome ? *outcome : Outcome{};
}

TEST(Registry, KnowsItsPlannersAndNamesThemWhenAsked) {
    for (const PlannerInfo& info : plannerList()) EXPECT_TRUE(makePlanner(info.name)) << info.name;
    const auto unknown = makePlanner("magic");
    ASSERT_FALSE(unknown);
    EXPECT_EQ(unknown.error().code, ErrorCode::Usage);
    EXPECT_NE(unknown.error().hint.find("dtr:eqclass"), std::string::npos);
}

TEST(Registry, KnowsTheOptionsOfEveryPlanner) {
    using Options = std::map<std::string, std::string>;
    for (const PlannerInfo& info : plannerList()) {
        EXPECT_TRUE(checkOptions(info.name, {})) << info.name;
        for (const std::string& option : info.options) {
            const std::size_t equals = option.find('='), bar = option.find('|');
            ASSERT_TRUE(equals != std::string::npos && bar != std::string::npos) << option;
            const std::string name = option.substr(0, equals);
            EXPECT_TRUE(checkOptions(info.name,
                                     Options{{name, option.substr(equals + 1, bar - equals - 1)}}));
            EXPECT_TRUE(checkOptions(info.name, Options{{name, option.substr(bar + 1)}}));
            EXPECT_FALSE(checkOptions(info.name, Options{{name, "sideways"}}));
            EXPECT_FALSE(checkOptions(info.name, Options{{name, ""}}));
            EXPECT_FALSE(checkOptions(info.name, Options{{name + "x", "on"}}));
        }
    }
    const Status wrong = checkOptions("echo", Options{{"encoding", "off"}});
    ASSERT_FALSE(wrong);
    EXPECT_EQ(wrong.error().code, ErrorCode::Usage);
    EXPECT_NE(wrong.error().hint.find("encodings=on|off"), std::string::npos);
    EXPECT_FALSE(checkOptions("none", Options{{"all", "1"}}));
    EXPECT_FALSE(checkOptions("magic", {}));
}

TEST(Registry, TellsPlannersApart) {
    std::set<std::string> names;
    std::set<std::pair<PlannerFamily, int>> looks;
    for (const PlannerInfo& info : plannerList()) {
        EXPECT_TRUE(names.insert(info.name).second) << info.name;
        EXPECT_TRUE(looks.emplace(info.family, info.colour).second) << info.name;
        EXPECT_FALSE(info.description.empty()) << info.name;
        EXPECT_EQ(findPlanner(info.name), &info);
    }
    EXPECT_EQ(findPlanner("magic"), nullptr);
}

TEST(Registry, SaysWhatPlannersCanDo) {
    const auto having = [](bool PlannerInfo::*trait) {
        std::set<std::string> names;
        for (const PlannerInfo& info : plannerList())
            if (info.*trait) names.insert(info.name);
        return names;
    };
    EXPECT_EQ(having(&PlannerInfo::baseline), std::set<std::string>{kBaselinePlanner});
    EXPECT_TRUE(having(&PlannerInfo::takesMenu).contains("monet"));
    EXPECT_FALSE(having(&PlannerInfo::takesMenu).contains("highwater"));
    EXPECT_TRUE(having(&PlannerInfo::plansSizes).contains("mimose"));
    EXPECT_TRUE(having(&PlannerInfo::warmStarts).contains("highwater"));
    EXPECT_TRUE(having(&PlannerInfo::provesInfeasible).contains("highwater"));
    EXPECT_FALSE(having(&PlannerInfo::provesInfeasible).contains("dtr:eqclass"));
    for (const char* name : {"none", "chen-sqrt", "chen-recursive", "echo"})
        EXPECT_TRUE(having(&PlannerInfo::budgetFree).contains(name)) << name;
    for (const char* name : {"none", "chen-greedy", "echo", "dtr:eqclass", "highwater"})
        EXPECT_TRUE(having(&PlannerInfo::preselected).contains(name)) << name;
    for (const char* name : {"echo", "checkmate", "monet", "mimose", "highwater"})
        EXPECT_FALSE(having(&PlannerInfo::quick).contains(name)) << name;
    for (const PlannerInfo& info : plannerList()) {
        const bool dtr = info.family == PlannerFamily::Dtr;
        if (dtr || info.family == PlannerFamily::Chen) {
            EXPECT_TRUE(info.quick) << info.name;
        }
        EXPECT_EQ(info.takesOption("dealloc"), dtr) << info.name;
    }
    EXPECT_EQ(plannersWith(&PlannerInfo::baseline), kBaselinePlanner);
    EXPECT_NE(plannersWith(&PlannerInfo::preselected).find("none, chen-greedy, "),
              std::string::npos);
    EXPECT_TRUE(quickPlanner().quick);
    EXPECT_TRUE(ownPlanner().takesOption("search"));
    EXPECT_FALSE(ownPlanner().takesOption("sea"));
}

TEST(Registry, BudgetFreePlannersHaveOnePlanWhateverTheBudget) {
    const TrainingGraph graph = test::chain(40, 1000);
    for (const PlannerInfo& info : plannerList()) {
        if (!info.budgetFree) continue;
        const auto planAt = [&](std::int64_t budget) {
            PlanRequest request;
            request.budget = Bytes(budget);
            Plan plan;
            plan.schedule = info.make()->plan(graph, request, {}).schedule;
            EXPECT_FALSE(plan.schedule.empty()) << info.name;
            return writePlan(plan);
        };
        EXPECT_EQ(planAt(1), planAt(1'000'000)) << info.name;
    }
}

TEST(None, IsTheBaselineOrNothing) {
    const TrainingGraph graph = test::chain(8, 100);
    const Outcome all = planFor("none", graph, 1.0);
    EXPECT_EQ(all.status, PlanStatus::Ok);
    EXPECT_DOUBLE_EQ(all.overhead, 1.0);
    EXPECT_EQ(all.recomputedOps, 0);
    EXPECT_EQ(planFor("none", graph, 0.99).status, PlanStatus::Infeasible);
}

TEST(ChenGreedy, KeepsAboutTheSquareRootOfAChain) {
    const TrainingGraph graph = test::chain(100, 1000);
    const Outcome outcome = planFor("chen-greedy", graph, 0.3);
    ASSERT_EQ(outcome.status, PlanStatus::Ok) << outcome.reason;
    EXPECT_LE(outcome.recomputedOps, 100) << "more than one extra forward";
    EXPECT_LT(outcome.overhead, 1.5);
    // 2 sqrt(n) layers and a few in flight, never the hundred of the baseline.
    PlanRequest request;
    const auto least = smallestBudget("chen-greedy", graph, request);
    ASSERT_TRUE(least);
    EXPECT_LT(least->count(), 30 * 1000);
}

TEST(DtrEqClass, TradesTimeForMemoryOnAChain) {
    const TrainingGraph graph = test::chain(100, 1000);
    double last = 1.0;
    for (const double share : {0.8, 0.6, 0.4}) {
        const Outcome outcome = planFor("dtr:eqclass", graph, share);
        ASSERT_EQ(outcome.status, PlanStatus::Ok) << outcome.reason;
        EXPECT_LE(outcome.peak, outcome.budget);
        EXPECT_GE(outcome.overhead, last);
        EXPECT_EQ(outcome.figures.at("clock") - 1, outcome.time.count());
        EXPECT_EQ(outcome.figures.at("peak"), outcome.peak.count());
        last = outcome.overhead;
    }
    EXPECT_GT(last, 1.0);
}

TEST(Planners, RebuildInPlaceChainsByTheirWriters) {
    const TrainingGraph graph = test::chain(60, 1000, true);
    for (const char* planner : {"chen-greedy", "dtr:eqclass", "highwater"}) {
        const Outcome outcome = planFor(planner, graph, 0.6);
        ASSERT_EQ(outcome.status, PlanStatus::Ok) << planner << ": " << outcome.reason;
        EXPECT_GT(outcome.recomputedOps, 0);
    }
}

// Whatever a planner answers on any graph, the judge must agree: planWith() fails on an invalid
// schedule.
TEST(Planners, AreValidOnRandomGraphs) {
    unsigned planned = 0;
    for (unsigned seed = 0; seed < test::share(300); ++seed) {
        const TrainingGraph graph = test::randomGraph(seed, 20 + static_cast<int>(seed % 100));
        for (const PlannerInfo& info : plannerList()) {
            if (searches(info.name) && seed >= test::share(30)) continue;
            for (const double share : {1.0, 0.8, 0.6, 0.4}) {
                const Outcome outcome = planFor(info.name, graph, share);
                if (outcome.status != PlanStatus::Ok) continue;
                ++planned;
                EXPECT_LE(outcome.peak, outcome.budget);
                EXPECT_GE(outcome.peak, graph.floorBytes())
                    << info.name << " seed " << seed << ": the floor is no bound";
                EXPECT_EQ(evaluate(graph, outcome.plan->schedule).peak,
                          outcome.plan->predictedPeak);
            }
        }
    }
    EXPECT_GT(planned, test::share(600));
}

// What a program holds on to, as it does with the last step's gradients, is not a plan's to free.
TEST(Planners, LeaveARecordedProgramsConstantsAlone) {
    test::GraphBuilder builder;
    const auto weight = builder.constant(64), gradient = builder.constant(1000);
    std::vector<TensorIndex> kept{builder.one("first", {weight, gradient}, 100, 5)};
    for (int i = 0; i < 8; ++i) kept.push_back(builder.one("f", {kept.back()}, 100, 5));
    builder.release(gradient);
    for (int i = 8; i > 0; --i) builder.one("b", {kept[i], kept[i - 1]}, 10, 5);
    TrainingGraph graph = builder.build();
    graph.recorded = true;
    const StorageIndex held = graph.storageOf(gradient);
    for (const PlannerInfo& info : plannerList()) {
        SCOPED_TRACE(info.name);
        const Outcome live = planFor(info.name, graph, 0.9);
        if (live.status != PlanStatus::Ok) continue;
        OpIndex last = kNone;
        for (const Action& action : live.plan->schedule) {
            if (action.kind == ActionKind::Compute) last = action.target;
            if (action.kind == ActionKind::Free && action.target == held) {
                EXPECT_GE(last, 8);
            }
        }
    }
    EXPECT_EQ(planFor("highwater", graph, 0.9).status, PlanStatus::Ok);
}

// A tensor that was made empty and is read as it is has been filled by code that calls no op, and a
// collective goes on with its tensors after it has returned.
TEST(Planners, NeverRepeatWhatWorksOnBytesThatNoOpMade) {
    test::GraphBuilder builder;
    const auto data = builder.constant(64);
    const auto filled = builder.one("aten::empty", {}, 1000, 1);
    const auto sent = builder.one("f", {data}, 1000, 1);
    builder.one("c10d::allreduce_", {sent}, 8, 1);
    std::vector<TensorIndex> kept{builder.one("first", {filled, sent}, 100, 5)};
    for (int i = 0; i < 8; ++i) kept.push_back(builder.one("f", {kept.back()}, 100, 5));
    for (int i = 8; i > 0; --i) builder.one("b", {kept[i], kept[i - 1], filled, sent}, 10, 5);
    TrainingGraph graph = builder.build();
    EXPECT_FALSE(graph.ops[3].once) << "only programs are known to be so";
    graph.recorded = true;
    ASSERT_EQ(graph.finish(), "");
    for (std::size_t op = 0; op < graph.ops.size(); ++op)
        EXPECT_EQ(graph.ops[op].once, op < 4 || graph.ops[op].name == "b") << op;
    for (const PlannerInfo& info : plannerList()) {
        SCOPED_TRACE(info.name);
        const Outcome outcome = planFor(info.name, graph, 0.9);
        if (outcome.status != PlanStatus::Ok) continue;
        for (const Action& action : outcome.plan->schedule)
            if (action.kind == ActionKind::Recompute) {
                EXPECT_EQ(graph.ops[action.target].name, "f");
            }
    }
    const Outcome ours = planFor("highwater", graph, 0.9);
    EXPECT_EQ(ours.status, PlanStatus::Ok) << ours.reason;
    Schedule again = baselineSchedule(graph);
    again.insert(again.end(), Action::recompute(3, {0}));
    EXPECT_NE(evaluate(graph, again).why.find("must not be run again"), std::string::npos);
}

TEST(Planners, AreDeterministic) {
    const TrainingGraph graph = test::randomGraph(7, 200);
    for (const PlannerInfo& info : plannerList()) {
        const Outcome first = planFor(info.name, graph, 0.9),
                      second = planFor(info.name, graph, 0.9);
        ASSERT_EQ(first.status, second.status);
        if (first.plan) {
            EXPECT_EQ(writePlan(*first.plan), writePlan(*second.plan));
        }
    }
}

TEST(Planners, StopWhenCancelled) {
    const TrainingGraph graph = test::chain(200, 1000);
    Progress progress;
    progress.cancelled = [] { return true; };
    PlanRequest request;
    request.budget = Bytes(50000);
    for (const char* planner : {"chen-greedy", "dtr:eqclass", "highwater"}) {
        const auto outcome = planWith(planner, graph, request, progress);
        ASSERT_TRUE(outcome);
        EXPECT_EQ(outcome->status, PlanStatus::Cancelled) << planner;
    }
}

}  // namespace
}  // namespace hw::planners
