// SPDX-License-Identifier: MIT
// The bounds, the integer program and the planner `highwater` against exhaustive search.
//
// Two searches (exhaustive_search.h): over all tables of a StageJudge, which is where our planners
// look, and over all schedules that the judge accepts. The second is the stronger test of a bound.
// A schedule that is no table may be cheaper: it can recompute in another order within a stage,
// drop and rebuild a storage twice in one, rebuild an old version, or free a constant that only
// recomputations would read. The bound must hold for those too, and the rows of cut_relaxation.h
// do: they speak of what is resident at the instants at which ops run for the first time, in
// captured order in any schedule, and of what is re-run between two of them, in whatever order.
// Checkmate's program speaks of the order within a stage as well; its optimum is that of the
// tables.
#include <gtest/gtest.h>

#include <random>

#include "planners/plan_with.h"
#include "planners/program/checkmate_program.h"
#include "planners/program/cut_relaxation.h"
#include "planners/program/knapsack_bound.h"
#include "tests/graphs/networks.h"
#include "tests/unit/exhaustive_search.h"

namespace hw::planners {
namespace {

using namespace hw::core;

constexpr int kMostBits = 12;  // of the tables that are searched
constexpr unsigned kGraphs = 150;

// Budgets between the floor and the baseline's peak that are worth planning for.
std::vector<Bytes> budgets(const TrainingGraph& graph) {
    const Bytes low = graph.floorBytes(), high = evaluate(graph, baselineSchedule(graph)).peak;
    std::vector<Bytes> list;
    for (int quarter = 0; quarter < 4; ++quarter)
        if (low < high) list.push_back(low + Bytes((high - low).count() * quarter / 4));
    return list;
}

// Calls visit(graph, model, seed) for graphs whose tables can all be searched; returns how many.
template <class Visit>
int forEachSmallGraph(Visit visit) {
    int count = 0;
    for (unsigned seed = 0; seed < kGraphs && !testing::Test::HasFatalFailure(); ++seed) {
        const TrainingGraph graph = test::smallGraph(seed);
        const StageModel model(graph);
        if (test::BestTables::bits(model) > kMostBits || graph.storages.size() > 32) continue;
        visit(graph, model, seed);
        ++count;
    }
    return count;
}

std::vector<std::vector<StageIndex>> cutChoices(const StageModel& model, unsigned seed) {
    std::vector<std::vector<StageIndex>> choices(1);
    for (StageIndex k = 0; k <= model.end; ++k) {
        choices.push_back({k});
        choices.front().push_back(k);
        const auto other = static_cast<StageIndex>((seed + 3 * k) % (model.end + 1));
        if (other != k) choices.push_back({std::min(k, other), std::max(k, other)});
    }
    return choices;
}

TEST(ExhaustiveSearch, FindsTheOptimumOfAChain) {
    // a -> b -> c -> loss; the backward ops read them again. Dropping b costs its op, 10.
    test::GraphBuilder b;
    const auto x = b.constant(1);
    const auto first = b.one("a", {x}, 10, 3);
    const auto second = b.one("b", {first}, 10, 10);
    const auto third = b.one("c", {second}, 10, 7);
    const auto grad = b.one("d", {third, second}, 10, 1);
    b.final(b.one("e", {grad, first}, 1, 1));
    b.final(x);
    const TrainingGraph graph = b.build();
    const StageModel model(graph);
    const test::BestTables tables(model);
    // All three activations and the gradient: 41. Without `a` over d and with it made again: 31.
    EXPECT_EQ(tables.time(Bytes(41)), Nanoseconds(22));
    EXPECT_EQ(tables.time(Bytes(40)), Nanoseconds(25));
    EXPECT_EQ(tables.time(Bytes(30)), std::nullopt);
    for (const std::int64_t budget : {41, 40, 31}) {
        const test::BestSchedule best(graph, Bytes(budget), 100'000);
        EXPECT_EQ(best.time(), tables.time(Bytes(budget))) << budget;
    }
}

TEST(CutRelaxation, NeverExceedsTheOptimumOverAllSchedules) {
    if (!haveSolver()) GTEST_SKIP() << "built without HiGHS; enable with: scripts/setup";
    int compared = 0, tight = 0, otherForms = 0, knapsacks = 0;
    forEachSmallGraph([&](const TrainingGraph& graph, const StageModel& model, unsigned seed) {
        const test::BestTables tables(model);
        for (const Bytes budget : budgets(graph)) {
            const test::BestSchedule best(graph, budget, 100'000);
            if (best.exhausted()) continue;
            if (best.time()) {
                const Evaluation judged = evaluate(graph, best.schedule());
                ASSERT_TRUE(judged.valid) << judged.why;
                ASSERT_LE(judged.peak, budget);
                ASSERT_EQ(judged.time, *best.time());
                const auto table = tables.time(budget);
                ASSERT_FALSE(table && *table < *best.time()) << "the search missed a table";
                if (table != best.time()) ++otherForms;
            } else {
                ASSERT_FALSE(tables.time(budget)) << "the search missed a table";
            }
            Nanoseconds highest;
            for (const auto& cuts : cutChoices(model, seed))
                for (const bool integer : {true, false}) {
                    CutOptions options;
                    options.integer = integer;
                    const auto solution = solveCuts(model, budget, cuts, options);
                    ASSERT_TRUE(solution) << "seed " << seed;
                    if (!best.time()) continue;
                    EXPECT_NE(solution->status, SolveStatus::Infeasible)
                        << "seed " << seed << ", " << budget.count();
                    EXPECT_LE(solution->bound, *best.time())
                        << "seed " << seed << ", " << budget.count() << ", " << cuts.size();
                    highest = std::max(highest, solution->bound);
                    ++compared;
                    const PartsBound knapsack = boundByKnapsack(model, budget, cuts.front());
                    EXPECT_FALSE(knapsack.impossible) << "seed " << seed << ", " << budget.count();
                    EXPECT_LE(knapsack.bound, *best.time())
                        << "seed " << seed << ", " << budget.count();
                    if (knapsack.bound > graph.totalTime()) ++knapsacks;
                    const PartsBound parts = boundByParts(model, budget, cuts, options);
                    EXPECT_FALSE(parts.impossible) << "seed " << seed << ", " << budget.count();
                    EXPECT_LE(parts.bound, *best.time())
                        << "seed " << seed << ", " << budget.count() << ", " << cuts.size();
                }
            if (best.time() && (*best.time() - highest).count() <= 1) ++tight;
        }
    });
    EXPECT_GT(compared, 2000);
    EXPECT_GT(knapsacks, 100) << "nothing has to be made again";
    EXPECT_GT(tight, 60) << "a bound that is never tight proves little";
    EXPECT_GT(otherForms, 10) << "the search finds nothing but tables";
}

TEST(Checkmate, SolvesForTheBestTable) {
    if (!haveSolver()) GTEST_SKIP() << "built without HiGHS; enable with: scripts/setup";
    int dearer = 0;
    forEachSmallGraph([&](const TrainingGraph& graph, const StageModel& model, unsigned seed) {
        const test::BestTables tables(model);
        for (const Bytes budget : budgets(graph)) {
            const auto best = tables.time(budget);
            const auto solution = solveCheckmate(model, budget, fullSize(model), {});
            ASSERT_TRUE(solution) << "seed " << seed;
            ASSERT_EQ(solution->status == SolveStatus::Infeasible, !best)
                << "seed " << seed << ", " << budget.count();
            if (!best) continue;
            ASSERT_EQ(solution->status, SolveStatus::Optimal);
            // The bound is rounded down by a millionth of the baseline, here to the next integer.
            EXPECT_LE(solution->bound, *best) << "seed " << seed << ", " << budget.count();
            EXPECT_GE(solution->bound + Nanoseconds(1), *best) << "seed " << seed;
            if (*best > graph.totalTime()) ++dearer;
            PlanRequest request;
            request.budget = budget;
            const auto outcome = planWith("checkmate", graph, request);
            ASSERT_TRUE(outcome);
            ASSERT_EQ(outcome->status, PlanStatus::Ok) << "seed " << seed << outcome->reason;
            EXPECT_EQ(outcome->time, *best) << "seed " << seed << ", " << budget.count();
            ASSERT_TRUE(outcome->lowerBound);
            EXPECT_LE(*outcome->lowerBound, outcome->time);
        }
    });
    EXPECT_GT(dearer, 30);
}

TEST(Checkmate, CoarseProgramsMeanTablesThatFit) {
    if (!haveSolver()) GTEST_SKIP() << "built without HiGHS; enable with: scripts/setup";
    int solved = 0;
    for (unsigned seed = 0; seed < 60; ++seed) {
        const TrainingGraph graph = test::randomGraph(seed, 12 + static_cast<int>(seed % 10));
        const StageModel model(graph);
        for (const Bytes budget : budgets(graph)) {
            const CheckmateSize size = coarseSize(model, 4, Bytes(budget.count() / 20));
            const auto solution = solveCheckmate(model, budget, size, {});
            ASSERT_TRUE(solution);
            if (solution->retained.empty()) continue;
            StageJudge judge(model, budget);
            importRetained(judge, size, roundRetained(solution->retained, 0.5));
            EXPECT_EQ(judge.overflow(), Bytes(0)) << "seed " << seed << ", " << budget.count();
            EXPECT_LE(solution->bound, judge.time());
            EXPECT_GE(solution->bound + Nanoseconds(1), judge.time()) << "seed " << seed;
            ++solved;
        }
    }
    EXPECT_GT(solved, 60);
}

TEST(Highwater, FindsTheBestTableOfNearlyEverySmallGraph) {
    int possible = 0, found = 0;
    forEachSmallGraph([&](const TrainingGraph& graph, const StageModel& model, unsigned seed) {
        const test::BestTables tables(model);
        for (const Bytes budget : budgets(graph)) {
            PlanRequest request;
            request.budget = budget;
            request.workLimit = 10;
            const auto outcome = planWith("highwater", graph, request);
            ASSERT_TRUE(outcome);
            const auto best = tables.time(budget);
            if (best) ++possible;
            if (outcome->status != PlanStatus::Ok) continue;
            EXPECT_LE(outcome->peak, budget);
            if (outcome->lowerBound) {
                EXPECT_LE(*outcome->lowerBound, outcome->time) << "seed " << seed;
            }
            // Another planner's, which is no table, may be cheaper, or there where no table fits.
            if (best && outcome->time <= *best) ++found;
        }
    });
    EXPECT_GT(possible, 60);
    EXPECT_GE(found * 100, possible * 95) << found << " of " << possible;
}

// Everything is released after its last use, constants too; only the last result is left.
TrainingGraph releasedGraph(unsigned seed) {
    std::mt19937 random(seed);
    test::GraphBuilder b;
    std::vector<TensorIndex> made;
    std::vector<std::pair<std::vector<std::size_t>, std::size_t>> ops;  // inputs, first output
    for (int i = 0; i < 3; ++i) made.push_back(b.constant(1 + random() % 20));
    std::size_t count = made.size();
    std::vector<std::size_t> lastUse(count, 0);
    for (std::size_t op = 0; op < 10; ++op) {
        std::vector<std::size_t> inputs;
        for (unsigned n = random() % 3 + 1; n > 0; --n) {
            inputs.push_back(count - 1 - random() % std::min<std::size_t>(count, 8));
            lastUse[inputs.back()] = op;
        }
        ops.emplace_back(inputs, count);
        count += 1 + random() % 2;
        lastUse.resize(count, op);
    }
    for (std::size_t op = 0; op < ops.size(); ++op) {
        std::vector<TensorIndex> inputs;
        for (const std::size_t input : ops[op].first) inputs.push_back(made[input]);
        const std::size_t next = op + 1 < ops.size() ? ops[op + 1].second : count;
        std::vector<std::int64_t> sizes;
        for (std::size_t n = ops[op].second; n < next; ++n) sizes.push_back(1 + random() % 20);
        for (const TensorIndex tensor : b.op("make", inputs, sizes, 1 + random() % 99))
            made.push_back(tensor);
        for (std::size_t n = 0; n < made.size(); ++n)
            if (lastUse[n] == op && n + 1 < count) b.release(made[n]);
    }
    b.final(made.back());
    return b.build();
}

TEST(Highwater, IsNoDearerThanWhatOthersFindOnSmallGraphs) {
    int compared = 0;
    for (unsigned seed = 0; seed < 40; ++seed) {
        const TrainingGraph graph = releasedGraph(seed);
        std::vector<Bytes> list = budgets(graph);
        list.push_back(evaluate(graph, baselineSchedule(graph)).peak);
        for (const Bytes budget : list) {
            PlanRequest request;
            request.budget = budget;
            request.workLimit = 5;
            const auto ours = planWith("highwater", graph, request, {});
            ASSERT_TRUE(ours) << ours.error().what;
            for (const char* name : {"none", "chen-greedy", "mimose", "dtr:eqclass", "dtr:msps"}) {
                const auto other = planWith(name, graph, request, {});
                ASSERT_TRUE(other) << other.error().what;
                if (other->status != PlanStatus::Ok) continue;
                ++compared;
                ASSERT_EQ(ours->status, PlanStatus::Ok) << name << ", seed " << seed;
                EXPECT_LE(ours->time, other->time) << name << ", seed " << seed;
            }
        }
    }
    EXPECT_GT(compared, 150);
}

TEST(Highwater, IsDeterministicUnderAWorkLimit) {
    for (const unsigned seed : {3U, 11U, 24U}) {
        const TrainingGraph graph = test::randomGraph(seed, 40);
        for (const Bytes budget : budgets(graph)) {
            PlanRequest request;
            request.budget = budget;
            request.workLimit = 20;
            request.seed = seed;
            const auto first = planWith("highwater", graph, request),
                       second = planWith("highwater", graph, request);
            ASSERT_TRUE(first && second);
            ASSERT_EQ(first->status, second->status);
            EXPECT_EQ(first->lowerBound, second->lowerBound);
            if (first->plan) {
                EXPECT_EQ(writePlan(*first->plan), writePlan(*second->plan));
            }
        }
    }
}

TEST(Checkmate, SaysWhyThereIsNoPlan) {
    const TrainingGraph graph = test::chain(20, 1000);
    PlanRequest request;
    request.budget = Bytes(2000);
    const auto outcome = planWith("checkmate", graph, request);
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->status, PlanStatus::Infeasible);
    EXPECT_NE(outcome->reason.find("takes"), std::string::npos) << outcome->reason;
}

TEST(Highwater, TheFirstPlanKeepsTheBudgetAndClaimsNoBound) {
    int planned = 0;
    for (unsigned seed = 0; seed < 40; ++seed) {
        const TrainingGraph graph = test::smallGraph(seed);
        for (const Bytes budget : budgets(graph)) {
            PlanRequest request;
            request.budget = budget;
            request.options["search"] = "first";
            const auto first = planWith("highwater", graph, request);
            ASSERT_TRUE(first);
            if (first->status != PlanStatus::Ok) continue;
            ++planned;
            EXPECT_LE(first->peak, budget) << seed;
            EXPECT_FALSE(first->lowerBound) << seed;
        }
    }
    EXPECT_GT(planned, 40);
}

// At small budgets a walk with the future known can thrash where segments do not.
TEST(Highwater, TheFirstPlanKeepsUpWithSegments) {
    bench::LstmNetwork network;
    network.steps = 30, network.layers = 2, network.units = 64, network.classes = 50;
    const TrainingGraph graph = generate(network);
    const Bytes peak = evaluate(graph, baselineSchedule(graph)).peak;
    for (const int percent : {40, 30, 20}) {
        PlanRequest request;
        request.budget = Bytes(peak.count() * percent / 100);
        request.timeLimitSeconds = 1000;  // the same result on any machine
        const auto segments = planWith("chen-greedy", graph, request);
        request.options["search"] = "first";
        const auto first = planWith("highwater", graph, request);
        ASSERT_TRUE(segments && first);
        ASSERT_EQ(segments->status, PlanStatus::Ok) << percent;
        ASSERT_EQ(first->status, PlanStatus::Ok) << percent;
        EXPECT_LE(first->overhead, 1.2 * segments->overhead) << percent;
    }
}

}  // namespace
}  // namespace hw::planners
