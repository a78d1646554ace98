// SPDX-License-Identifier: MIT
// A budget in a program: whatever is evicted and whichever plan takes over, every bit is the one of
// the program alone.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "live/compile/program_writer.h"
#include "live/compile/traced_step.h"
#include "planners/dtr/live_replay.h"
#include "tests/live/live_harness.h"

namespace hw::test {
namespace {

using namespace core;
using live::runtime::Boundary;
using live::runtime::BudgetRuntime;
namespace native = profiler::native;

constexpr unsigned kHeuristics = 7;  // of DTR

class LiveBudget : public LiveTest {};

void runWithin(unsigned number, Figures& figures) {
    SCOPED_TRACE("case " + std::to_string(number));
    std::mt19937 random(number);
    std::vector<Program> steps;
    for (int i = 0; i < 4; ++i)
        steps.push_back(i == 0 || random() % 2 == 0 ? randomProgram(random, 6 + random() % 40)
                                                    : changed(steps.front(), random));
    const std::string alone = runAlone(steps, number);
    BudgetRuntime runtime(pressingAgent(),
                          static_cast<planners::DtrHeuristic>(random() % kHeuristics), true);
    if (number % 2 == 0) runtime.keepKnown(1, 1);
    std::string why;
    if (random() % 2 == 0) {
        const Recorded recorded = record(steps.front(), number);
        if (!recorded.graph.ops.empty()) {
            ASSERT_TRUE(runtime.follow(
                0, Boundary::Planned,
                liveProgramOf(recorded, random, figures, profiler::wire::kBudgetActions), why))
                << why;
        }
    }
    EXPECT_TRUE(runPressed(steps, number, runtime, random, figures) == alone);
}

/// Without a budget: allocations fail at any time, some again and again.
void runRescued(unsigned number, Figures& figures) {
    SCOPED_TRACE("case " + std::to_string(number));
    std::mt19937 random(number);
    const std::vector<Program> steps{randomProgram(random, 6 + random() % 40),
                                     randomProgram(random, 6 + random() % 40)};
    const std::string alone = runAlone(steps, number);
    BudgetRuntime runtime(pressingAgent(), planners::DtrHeuristic::EqClass, false, false);
    if (number % 3 == 0) {  // nothing fails
        Figures quiet;
        EXPECT_TRUE(runLive(steps, number, runtime, quiet) == alone);
        EXPECT_EQ(quiet.within + quiet.evicted + quiet.rescued + quiet.refused, 0);
        return;
    }
    EXPECT_TRUE(runPressed(steps, number, runtime, random, figures) == alone);
}

/// Several plans side by side, of programs that begin alike, and steps of kinds without any.
void runWithSeveralPlans(unsigned number, Figures& figures) {
    SCOPED_TRACE("case " + std::to_string(number));
    std::mt19937 random(number);
    std::vector<Program> kinds{randomProgram(random, 6 + random() % 40)};
    for (unsigned i = 1 + random() % 5; i > 0; --i)
        kinds.push_back(random() % 4 == 0 ? randomProgram(random, 6 + random() % 40)
                                          : changed(kinds.front(), random));
    std::vector<Program> steps{kinds.front()};  // as record() has it, for what all others find
    for (int i = 0; i < 6; ++i) steps.push_back(kinds[random() % kinds.size()]);
    const std::string alone = runAlone(steps, number);
    BudgetRuntime runtime(pressingAgent(), planners::DtrHeuristic::EqClass, true);
    std::string why;
    for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
        const Recorded recorded = record(kinds[kind], number);
        if (recorded.graph.ops.empty() || random() % 4 == 0) continue;
        const Boundary ending = random() % 2 == 0 ? Boundary::Planned : Boundary::BySize;
        ASSERT_TRUE(runtime.follow(
            static_cast<std::int64_t>(kind % 4), ending,
            liveProgramOf(recorded, random, figures, profiler::wire::kBudgetActions), why))
            << why;
    }
    EXPECT_TRUE(runPressed(steps, number, runtime, random, figures) == alone);
    while (runtime.takeRequest()) ++figures.requests;
}

// With evictions wherever an allocation could be.
TEST_F(LiveBudget, LeavesEveryBitOfRandomProgramsWithinABudgetAsItIs) {
    const Figures figures = runCases(runWithin, wantedCases());
    EXPECT_EQ(figures.within, figures.steps);
    EXPECT_GT(figures.evicted, figures.steps);
    EXPECT_GT(figures.recomputed, figures.steps);
    EXPECT_GT(figures.planned, figures.steps / 16);
    EXPECT_EQ(figures.rescued + figures.refused, 0);  // keeping a budget is no rescue
}

TEST_F(LiveBudget, LeavesEveryBitWhereAllocationsFailAsItIs) {
    const Figures figures = runCases(runRescued, wantedCases() / 2);
    EXPECT_GT(figures.within, figures.steps / 4);
    EXPECT_GT(figures.rescued, figures.steps);
    EXPECT_GT(figures.refused, 0);
    EXPECT_GT(figures.freed, figures.rescued);
}

TEST_F(LiveBudget, LeavesEveryBitOfRandomProgramsUnderSeveralPlansAsItIs) {
    const Figures figures = runCases(runWithSeveralPlans, wantedCases());
    EXPECT_EQ(figures.within, figures.steps);
    EXPECT_GT(figures.planned, figures.steps / 16);
    EXPECT_GT(figures.bySize, figures.steps / 16);
    EXPECT_GT(figures.evicted, figures.steps);
    EXPECT_GT(figures.requests, wantedCases() / 2);
}

/// The log of what a program does under DTR, of which the simulation makes its own evictions.
void replayWithin(unsigned number, Figures& figures) {
    SCOPED_TRACE("case " + std::to_string(number));
    const std::string path = ::testing::TempDir() + "decisions-" + std::to_string(getpid());
    std::mt19937 random(number);
    std::vector<Program> steps;
    for (int i = 0; i < 3; ++i) steps.push_back(randomProgram(random, 6 + random() % 60));
    setenv("HIGHWATER_DTR_LOG", path.c_str(), 1);
    const auto heuristic = static_cast<planners::DtrHeuristic>(number % kHeuristics);
    BudgetRuntime runtime(pressingAgent(), heuristic, number % 2 == 0);
    unsetenv("HIGHWATER_DTR_LOG");
    if (number % 4 < 2) runtime.keepKnown(1, 1);
    runPressed(steps, number, runtime, random, figures);
    std::ifstream file(path);
    const auto log = planners::readLiveLog(file);
    std::filesystem::remove(path);
    ASSERT_TRUE(log) << log.error().what;
    EXPECT_EQ(log->heuristic, heuristic);
    for (const planners::LiveStretch& stretch : log->stretches) {
        SCOPED_TRACE("stretch " + std::to_string(&stretch - log->stretches.data()));
        const planners::Replayed replayed = planners::replay(stretch, heuristic);
        const auto [one, other] = std::mismatch(replayed.evicted.begin(), replayed.evicted.end(),
                                                stretch.evicted.begin(), stretch.evicted.end());
        SCOPED_TRACE("first other eviction: " + std::to_string(one - replayed.evicted.begin()));
        EXPECT_EQ(replayed.stopped, "");
        EXPECT_EQ(replayed.evicted, stretch.evicted);
        figures.replayed += static_cast<std::int64_t>(stretch.evicted.size());
    }
}

TEST_F(LiveBudget, TheSimulationEvictsTheSame) {
    const Figures figures = runCases(replayWithin, wantedCases());
    EXPECT_GT(figures.replayed, figures.steps);
    EXPECT_GE(figures.replayed, figures.evicted);
    EXPECT_GT(figures.recomputed, figures.steps);
}

/// What the judge and the planners look at, but for times and workspaces.
std::string described(const TrainingGraph& graph) {
    std::ostringstream text;
    for (const Event& event : graph.events) {
        if (event.kind == Event::Kind::Constant) continue;
        if (event.kind == Event::Kind::Release) {
            text << "release " << event.index << '\n';
            continue;
        }
        const Op& op = graph.ops[event.index];
        text << op.name << (op.random ? " random" : "");
        for (const Use& use : op.inputs)
            text << ' ' << graph.storageOf(use.tensor) << '@' << use.version;
        for (const OpOutput& output : op.outputs)
            text << " > " << graph.storageOf(output.tensor) << (output.makesStorage ? "!" : "");
        for (const Write& write : op.writes)
            text << " w " << write.storage << '@' << write.versionBefore;
        text << '\n';
    }
    for (const Storage& storage : graph.storages) text << storage.bytes.count() << ' ';
    return text.str();
}

// A plan has held what it read for the last time, and lets go of it; what that was made from cannot
// be made again, and is the program's, which looks at who else refers to it.
TEST_F(LiveBudget, HoldsNothingForWhatAPlanLetsGoOf) {
    using Kind = Instruction::Kind;
    const Program usual{{Kind::Forward},  {Kind::Sigmoid, 3, 0},       {Kind::Sigmoid, 4, 3},
                        {Kind::LetGo, 3}, {Kind::AddInPlace, 0, 0, 1}, {Kind::Sigmoid, 5, 4},
                        {Kind::LetGo, 5}, {Kind::Relu, 6, 1},          {Kind::Grow, 4, 4, 6}};
    const Recorded recorded = record(usual, 1);
    const auto& ops = recorded.graph.ops;
    ASSERT_EQ(ops.back().name, "aten::add_.Tensor");
    Plan plan;
    for (OpIndex op = 0; op < static_cast<OpIndex>(ops.size()); ++op) {
        plan.schedule.push_back(Action::compute(op));
        if (ops[op].name == "aten::relu")
            plan.schedule.push_back(
                Action::free(recorded.graph.storageOf(ops[3].outputs.front().tensor)));
    }
    const auto program = live::liveProgram(recorded.graph, plan, recorded.tensors);
    ASSERT_TRUE(program) << program.error().what;
    BudgetRuntime runtime(pressingAgent(), planners::DtrHeuristic::EqClass, true);
    std::string why;
    ASSERT_TRUE(runtime.follow(0, Boundary::Planned, program->bytes, why)) << why;
    Figures figures;
    const std::vector<Program> steps(4, usual);
    EXPECT_TRUE(runLive(steps, 1, runtime, figures) == runAlone(steps, 1));
    EXPECT_EQ(figures.planned, 4);
}

// Evictions and recomputations are no part of what is traced for a planner.
TEST_F(LiveBudget, TracesAStepWithinABudgetAsItIsAlone) {
    int traced = 0;
    for (unsigned number = 0; number < 200; ++number) {
        SCOPED_TRACE("case " + std::to_string(number));
        std::mt19937 random(number);
        const Program usual = randomProgram(random, 6 + random() % 40);
        const Recorded recorded = record(usual, number);
        if (recorded.graph.ops.empty()) continue;
        BudgetRuntime runtime(pressingAgent(), planners::DtrHeuristic::EqClass, true);
        gPressure.runtime = &runtime;
        gPressure.random.seed(number);
        gPressure.oneIn = 2;
        gPressure.loses = number % 2 == 0;
        Figures figures;
        runLive(std::vector<Program>(6, usual), number, runtime, figures);
        gPressure.runtime = nullptr;
        gPressure.loses = true;
        const auto request = runtime.takeRequest();
        if (!request) continue;  // it fails half-way, or the other thread's ops come between
        ++traced;
        const auto step = live::readTracedStep(request->trace);
        ASSERT_TRUE(step) << step.error().what;
        EXPECT_EQ(described(step->graph), described(recorded.graph));
    }
    EXPECT_GT(traced, 50);
}

/// Storages that were visited for each op, to find what evicted ones are made from. What a chain of
/// `length` is made from takes more bytes than it gives, so that it goes last of all.
double visitsAnOp(int length) {
    BudgetRuntime runtime(pressingAgent(), planners::DtrHeuristic::EqClass, false);
    BudgetRuntime::Work work;
    const at::Tensor parameter = at::ones(64), numbers = at::ones(64, at::kLong);
    runStep(runtime, [&] {
        std::vector<at::Tensor> kept;
        at::Tensor last = at::tanh(parameter);
        for (int i = 0; i < length; ++i) {
            kept.push_back(at::add(numbers, i));  // a list of integers: it stays
            kept.push_back(last = at::add(last, kept.back()));
            kept.push_back(at::tanh(parameter));
            if (i % 8 == 0) runtime.makeRoom({1, 0, 0});
        }
        work = runtime.work();
    });
    return static_cast<double>(work.visited) / (3 * length);
}

TEST_F(LiveBudget, AnOpVisitsTheSameHoweverManyStoragesThereAre) {
    const double few = visitsAnOp(300), many = visitsAnOp(3000);
    EXPECT_GT(few, 0);
    EXPECT_LT(many, 4);
    EXPECT_LT(many, 2 * few);
}

// An evaluation before the first step, a recurrence, a sum: what they leave behind is forgotten.
TEST_F(LiveBudget, AStepWithoutAnEndTakesNoMoreOfOurMemory) {
    constexpr int kRounds = 3000;
    BudgetRuntime runtime(pressingAgent(), planners::DtrHeuristic::EqClass, false);
    runtime.keepKnown(256, 4);
    std::size_t most = 0;
    BudgetRuntime::Work work;
    at::Tensor state, sum;
    const auto step = [&] {
        const at::Tensor weight = at::full({8, 8}, 0.25), noise = at::ones({8, 8});
        state = at::tanh(noise), sum = at::mul(noise, 2);
        for (int i = 0; i < kRounds; ++i) {
            at::Tensor x = at::add(noise, i);
            for (int layer = 0; layer < 6; ++layer) x = at::tanh(at::mm(x, weight));
            state = at::tanh(at::add(state, x));
            sum.add_(x);
            if (i % 16 == 0) runtime.makeRoom({1, 0, 0});
            work = runtime.work();
            most = std::max(most, work.storages);
        }
    };
    runStep(runtime, step);
    EXPECT_LT(most, 1024U);
    EXPECT_LT(work.moved, 4 * 16 * kRounds);
    const at::Tensor within = state.clone(), summed = sum.clone();
    step();
    EXPECT_TRUE(at::equal(within, state) && at::equal(summed, sum));
}

// Both operands come from long chains of which nothing is left. While one of them is made there is
// room for nothing else: the other one, made first, goes once more.
TEST_F(LiveBudget, WhatWaitsGoesWhereNothingElseCan) {
    BudgetRuntime runtime(pressingAgent(), planners::DtrHeuristic::EqClass, false);
    const at::Tensor parameter = at::ones(64);
    at::Tensor result;
    BudgetRuntime::Work work;
    const auto chain = [&](double scale) {
        at::Tensor x = at::mul(parameter, scale);
        for (int i = 0; i < 8; ++i) x = at::add(at::tanh(x), at::sigmoid(x));
        return x;
    };
    const auto step = [&](bool pressed) {
        const at::Tensor one = chain(0.5), other = chain(2);
        if (pressed) {
            while (runtime.makeRoom({1, 0, 0}) == native::Reclaim::Made) {
            }
            gPressure.oneIn = 1;
            gPressure.runtime = &runtime;
        }
        result = at::add(one, other);
        gPressure.runtime = nullptr;
        work = runtime.work();
    };
    runStep(runtime, [&] { step(true); });
    EXPECT_GT(work.unlocked, 0);
    const at::Tensor within = result.clone();
    step(false);
    EXPECT_TRUE(at::equal(within, result));
}

}  // namespace
}  // namespace hw::test
