// SPDX-License-Identifier: MIT
// Programs whose answers are known by hand, how a solve ends, and that a running one can be
// cancelled.
#include "planners/program/linear_program.h"

#include <gtest/gtest.h>

#include "core/memory/evaluate.h"
#include "core/memory/stage_judge.h"
#include "planners/program/checkmate_program.h"
#include "planners/program/cut_relaxation.h"
#include "tests/graphs/networks.h"

namespace hw::planners {
namespace {

using namespace hw::core;

class LinearProgramTest : public testing::Test {
protected:
    void SetUp() override {
        if (!haveSolver()) GTEST_SKIP() << "built without HiGHS; enable with: scripts/setup";
    }
};

// The cheapest of three, two of which must be taken one and a half times: 1 + 0.5 * 2.
LinearProgram choice() {
    LinearProgram program;
    program.addOffset(10);
    std::vector<int> columns;
    for (const double cost : {4, 1, 2}) columns.push_back(program.addColumn(cost, 0, 1, true));
    program.beginRow(1.5, INFINITY);
    for (const int column : columns) program.addEntry(column, 1);
    return program;
}

// A knapsack that takes branch and bound: as many weights as bring the sum near the half.
LinearProgram knapsack() {
    LinearProgram program;
    std::vector<std::int64_t> weights;
    for (std::int64_t n = 0; n < 60; ++n) weights.push_back(100'000 + 7919 * n * n % 90'001);
    for (const std::int64_t weight : weights)
        program.addColumn(-static_cast<double>(weight), 0, 1, true);
    for (int row = 0; row < 5; ++row) {
        program.beginRow(-INFINITY, 4'000'000);
        for (int n = 0; n < 60; ++n)
            program.addEntry(n, static_cast<double>(weights[(n * (row + 1) + row) % 60]));
    }
    return program;
}

TEST_F(LinearProgramTest, RelaxedAndWholeOptimum) {
    SolveOptions options;
    options.integer = false;
    const LinearSolution relaxed = choice().solve(options);
    ASSERT_EQ(relaxed.status, SolveStatus::Optimal);
    EXPECT_NEAR(relaxed.bound, 12, 1e-9);
    ASSERT_TRUE(relaxed.values);
    EXPECT_NEAR(relaxed.values->at(2), 0.5, 1e-9);

    const LinearSolution whole = choice().solve({});
    ASSERT_EQ(whole.status, SolveStatus::Optimal);
    EXPECT_NEAR(whole.bound, 13, 1e-6);
    ASSERT_TRUE(whole.values);
    EXPECT_NEAR(whole.values->at(0), 0, 1e-6);
}

TEST_F(LinearProgramTest, BoundsAndCostsCanChangeAfterwards) {
    LinearProgram program = choice();
    program.setLower(0, 1);
    program.setUpper(1, 0.25);
    program.addCost(2, 20);
    EXPECT_EQ(program.lower(0), 1);
    EXPECT_EQ(program.upper(1), 0.25);
    SolveOptions options;
    options.integer = false;
    const LinearSolution solution = program.solve(options);
    ASSERT_EQ(solution.status, SolveStatus::Optimal);
    EXPECT_NEAR(solution.bound, 10 + 4 + 0.25 + 0.25 * 22, 1e-9);
}

TEST_F(LinearProgramTest, WhatCannotBeIsProvenInfeasible) {
    LinearProgram program = choice();
    program.beginRow(-INFINITY, 1);
    for (int column = 0; column < 3; ++column) program.addEntry(column, 1);
    for (const bool integer : {false, true}) {
        SolveOptions options;
        options.integer = integer;
        const LinearSolution solution = program.solve(options);
        EXPECT_EQ(solution.status, SolveStatus::Infeasible);
        EXPECT_FALSE(solution.values);
    }
}

TEST_F(LinearProgramTest, WithoutColumnsOnlyTheConstantsCount) {
    LinearProgram program;
    program.addOffset(7);
    program.beginRow(-1, 0);
    const LinearSolution solution = program.solve({});
    ASSERT_EQ(solution.status, SolveStatus::Optimal);
    EXPECT_EQ(solution.bound, 7);
    ASSERT_TRUE(solution.values);
    EXPECT_TRUE(solution.values->empty());
    program.beginRow(1, INFINITY);
    EXPECT_EQ(program.solve({}).status, SolveStatus::Infeasible);
}

TEST_F(LinearProgramTest, LimitsLeaveAValidBoundAndAreDeterministic) {
    const LinearProgram program = knapsack();
    SolveOptions options;
    options.limits = SolveLimits::deterministic(2000);
    const double optimum = program.solve(options).bound;
    for (const SolveLimits limits : {SolveLimits{.nodes = 1}, SolveLimits{.iterations = 1}}) {
        options.limits = limits;
        const LinearSolution first = program.solve(options), second = program.solve(options);
        EXPECT_EQ(first.status, SolveStatus::Limit);
        EXPECT_LE(first.bound, optimum);
        EXPECT_EQ(first.bound, second.bound);
        EXPECT_EQ(first.values, second.values);
    }
    options.integer = false;
    EXPECT_EQ(program.solve(options).status, SolveStatus::Limit);
    options.limits.iterations = SolveLimits::kNone;
    EXPECT_EQ(program.solve(options).status, SolveStatus::Optimal);
}

TEST_F(LinearProgramTest, BranchAndBoundIsCancelled) {
    SolveOptions options;
    options.limits = SolveLimits::deterministic(200);
    ASSERT_NE(knapsack().solve(options).status, SolveStatus::Cancelled);
    int asked = 0;
    options.cancelled = [&] { return ++asked > 5; };
    EXPECT_EQ(knapsack().solve(options).status, SolveStatus::Cancelled);
    EXPECT_EQ(asked, 6) << "not left at once";
}

// The planners' own programs, on a network of some hundred ops.
class LargePrograms : public LinearProgramTest {
protected:
    static TrainingGraph makeGraph() {
        bench::LstmNetwork network;
        network.steps = 12, network.layers = 2, network.units = 64, network.classes = 50;
        return generate(network);
    }
    /// Answers true from the n-th question on.
    std::function<bool()> cancelledAt(int n) {
        asked_ = 0;
        return [this, n] { return ++asked_ >= n; };
    }

    const TrainingGraph graph_ = makeGraph();
    const StageModel model_{graph_};
    const Bytes budget_{evaluate(graph_, baselineSchedule(graph_)).peak.count() / 2};
    int asked_ = 0;
};

TEST_F(LargePrograms, CutsAreCancelledWhileTheyAreSolved) {
    const std::vector<StageIndex> cuts{model_.end / 2};
    for (const bool integer : {false, true}) {
        CutOptions options;
        options.integer = integer;
        options.limits = SolveLimits::deterministic(3);
        const auto whole = solveCuts(model_, budget_, cuts, options);
        ASSERT_TRUE(whole);
        ASSERT_TRUE(whole->status == SolveStatus::Optimal || whole->status == SolveStatus::Limit);
        options.cancelled = cancelledAt(3);
        const auto left = solveCuts(model_, budget_, cuts, options);
        ASSERT_TRUE(left);
        EXPECT_EQ(left->status, SolveStatus::Cancelled) << integer;
        EXPECT_EQ(asked_, 3) << "not left at once";
        EXPECT_LE(left->bound, whole->bound);
    }
}

TEST_F(LargePrograms, CheckmateIsCancelledWhileItIsSolved) {
    const CheckmateSize size = coarseSize(model_, 6, Bytes(budget_.count() / 100));
    for (const bool integer : {false, true}) {
        CheckmateOptions options;
        options.integer = integer;
        options.limits = SolveLimits::deterministic(1);
        options.cancelled = cancelledAt(3);
        const auto left = solveCheckmate(model_, budget_, size, options);
        ASSERT_TRUE(left);
        EXPECT_EQ(left->status, SolveStatus::Cancelled) << integer;
        EXPECT_EQ(asked_, 3) << "not left at once";
    }
}

}  // namespace
}  // namespace hw::planners
