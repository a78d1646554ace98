// SPDX-License-Identifier: MIT
// Plans in a program: whatever a plan does and wherever the program leaves it, every bit is the one
// of the program alone.
#include <gtest/gtest.h>

#include "core/plan/codec.h"
#include "live/compile/program_writer.h"
#include "tests/live/live_harness.h"

namespace hw::test {
namespace {

using namespace core;
using live::runtime::Runtime;
namespace native = profiler::native;

class LiveRuntime : public LiveTest {};

// As long as the step: the stack of the thread is no measure of what can be made again.
TEST_F(LiveRuntime, RestoresWhatTheLongestChainMade) {
    using Kind = Instruction::Kind;
    constexpr std::size_t kOps = 12'000, kLast = 3;
    Program program(kOps, {Kind::Sigmoid, kLast, kLast});
    program.front().a = 0;  // a parameter
    program.push_back({Kind::Sum, kLast + 1, 0});
    const Recorded recorded = record(program, 1);
    ASSERT_EQ(recorded.graph.ops.size(), kOps + 1);
    const StorageIndex last =
        recorded.graph.storageOf(recorded.graph.ops[kOps - 1].outputs.front().tensor);
    Plan plan;
    for (OpIndex op = 0; op < static_cast<OpIndex>(kOps); ++op)
        plan.schedule.push_back(Action::compute(op));
    plan.schedule.push_back(Action::free(last));
    plan.schedule.push_back(Action::compute(kOps));
    const auto compiled = live::liveProgram(recorded.graph, plan, recorded.tensors);
    ASSERT_TRUE(compiled) << compiled.error().what;
    Runtime runtime(silentAgent());
    std::string why;
    ASSERT_TRUE(runtime.add(compiled->bytes, why)) << why;
    Figures figures;
    const std::string live = runLive({program, program}, 1, runtime, figures);
    EXPECT_TRUE(live == runAlone({program, program}, 1));
    EXPECT_GT(figures.restored, 0);
}

/// Drops one storage and makes it again; then the parameters are written, and `last` runs.
Program stepWithTail(Instruction::Kind last) {
    using Kind = Instruction::Kind;
    return {{Kind::Forward},
            {Kind::Sigmoid, 3, 0},
            {Kind::Sigmoid, 4, 3},
            {Kind::Mul, 5, 3, 4},
            {Kind::AddInPlace, 0, 0, 5},
            {Kind::AddInPlace, 0, 1, 5},
            {Kind::AddInPlace, 0, 2, 5},
            {last, 6, 5}};
}

std::string planWithTail(const Program& program) {
    const Recorded recorded = record(program, 1);
    const auto& ops = recorded.graph.ops;
    Plan plan;
    for (OpIndex op = 0; op < static_cast<OpIndex>(ops.size()); ++op) {
        if (ops[op].name == "aten::mul.Tensor") plan.schedule.push_back(Action::recompute(0, {0}));
        plan.schedule.push_back(Action::compute(op));
        if (op == 1)
            plan.schedule.push_back(
                Action::free(recorded.graph.storageOf(ops[0].outputs.front().tensor)));
    }
    const auto compiled = live::liveProgram(recorded.graph, plan, recorded.tensors);
    EXPECT_TRUE(compiled) << compiled.error().what;
    return compiled->bytes;
}

/// Steps under plans for some of them: results as alone.
Figures runTails(const std::vector<Program>& planned, const std::vector<Program>& steps) {
    Runtime runtime(silentAgent());
    std::string why;
    for (const Program& each : planned) EXPECT_TRUE(runtime.add(planWithTail(each), why)) << why;
    const std::string alone = runAlone(steps, 1);
    Figures figures;
    gTurns.clear();
    EXPECT_TRUE(runLive(steps, 1, runtime, figures) == alone);
    return figures;
}

// The plan is carried out, whatever comes after it: but a step that makes other nodes of autograd
// is another one.
TEST_F(LiveRuntime, SeesNoOpsAfterAPlansLastAction) {
    const Program usual = stepWithTail(Instruction::Kind::Relu);
    const Program other = stepWithTail(Instruction::Kind::Sum);
    const Program trains = stepWithTail(Instruction::Kind::Node);
    const Figures figures = runTails({usual}, {usual, usual, other, trains, usual, usual});
    EXPECT_EQ(figures.planned, 5);
    EXPECT_EQ(figures.recomputed, 6);
    EXPECT_EQ(figures.restored, 0);
    // All ops of the first step; else those up to the one that needs what was dropped: there is
    // nothing to be secured where the parameters are written. The last ones of the second step,
    // before two were alike, and of those after another one.
    // The first op of each step, which ends the part before the forward pass, comes by boxed.
    EXPECT_EQ(gTurns[native::Turn::Seen], 7 + 5 * 2);
    EXPECT_EQ(gTurns[native::Turn::Unseen], 4 + 2 * 4);
}

// Two ops on what the plan leaves alone, between its actions.
TEST_F(LiveRuntime, FollowsNoStorageThatThePlanHasNoUseFor) {
    using Kind = Instruction::Kind;
    Program usual = stepWithTail(Kind::Relu);
    usual.insert(usual.begin() + 3, {{Kind::Sigmoid, 7, 1}, {Kind::Relu, 8, 7}});
    // Where the plan has storages of no use to it, one that it has dropped.
    Program other = usual;
    other[4] = {Kind::Relu, 8, 3};
    const Figures figures = runTails({usual}, {usual, usual, other, usual});
    EXPECT_EQ(figures.planned, 3);
    EXPECT_GT(figures.restored, 0);
    // In the second step both and the tail, in the third one the first, and what comes after it has
    // left its plan, in the last one both.
    EXPECT_EQ(gTurns[native::Turn::Unseen], (2 + 4) + (1 + 5) + 2);
    EXPECT_EQ(figures.recomputed, 3);
}

TEST_F(LiveRuntime, GoesOnWithAnotherPlanAfterTheLastActionOfOne) {
    const Program usual = stepWithTail(Instruction::Kind::Relu);
    const Program other = stepWithTail(Instruction::Kind::Sum);
    const Figures figures = runTails({usual, other}, {usual, other, usual, other});
    EXPECT_EQ(figures.planned, 4);
    EXPECT_EQ(figures.recomputed, 4);
    EXPECT_GT(gTurns[native::Turn::Unseen], 0);
}

// Looked at, and then written in place by an op that may not run twice: the plan still needs it
// when the program has let go of it.
TEST_F(LiveRuntime, HoldsWhatMayNotBeMadeTwiceThoughItStaysAnyway) {
    using Kind = Instruction::Kind;
    const Program program{{Kind::Forward},
                          {Kind::Rand, 3, 0},
                          {Kind::Look, 3, 3},
                          {Kind::Noise, 3, 3},
                          {Kind::Sum, 4, 3},
                          {Kind::LetGo, 3, 3},
                          {Kind::Sigmoid, 5, 0},
                          {Kind::Sigmoid, 6, 5},
                          {Kind::AddInPlace, 0, 0, 6},
                          {Kind::AddInPlace, 0, 1, 6},
                          {Kind::AddInPlace, 0, 2, 6}};
    const Recorded recorded = record(program, 1);
    const auto& ops = recorded.graph.ops;
    ASSERT_EQ(ops[1].name, "aten::uniform_");
    const StorageIndex random = recorded.graph.storageOf(ops[0].outputs.front().tensor);
    Plan plan;
    for (OpIndex op = 0; op < static_cast<OpIndex>(ops.size()); ++op) {
        if (op == 4) {  // the second sigmoid
            plan.schedule.push_back(Action::recompute(0, {0}));
            plan.schedule.push_back(Action::recompute(1, {}));
        }
        plan.schedule.push_back(Action::compute(op));
        if (op == 2) plan.schedule.push_back(Action::free(random));
    }
    const auto compiled = live::liveProgram(recorded.graph, plan, recorded.tensors);
    ASSERT_TRUE(compiled) << compiled.error().what;
    Runtime runtime(silentAgent());
    std::string why;
    ASSERT_TRUE(runtime.add(compiled->bytes, why)) << why;
    const std::vector<Program> steps(4, program);
    Figures figures;
    const std::string live = runLive(steps, 1, runtime, figures);
    EXPECT_TRUE(live == runAlone(steps, 1)) << runtime.fault();
    EXPECT_EQ(figures.planned, 4) << runtime.fault();
}

void runCase(unsigned number, Figures& figures) {
    SCOPED_TRACE("case " + std::to_string(number));
    std::mt19937 random(number);
    const Program usual = randomProgram(random, 6 + random() % 30);
    const Program other = changed(usual, random);
    const Recorded recorded = record(usual, number);
    if (recorded.graph.ops.empty()) return;
    Runtime runtime(silentAgent());
    std::string why;
    ASSERT_TRUE(runtime.add(liveProgramOf(recorded, random, figures), why)) << why;
    if (random() % 3 == 0) {
        const Recorded second = record(other, number);
        if (!second.graph.ops.empty()) {
            ASSERT_TRUE(runtime.add(liveProgramOf(second, random, figures), why)) << why;
        }
    }
    std::vector<Program> steps{usual, usual};
    for (int i = 0; i < 3; ++i)
        steps.push_back(random() % 2 == 0   ? usual
                        : random() % 2 == 0 ? other
                                            : changed(usual, random));
    const std::string alone = runAlone(steps, number);
    EXPECT_TRUE(runLive(steps, number, runtime, figures) == alone);
    // What code past the dispatcher may write, an op writes in place, and a later one again: such a
    // program is not for plans, and says so.
    const bool twice = runtime.fault().find("may not run twice") != std::string::npos;
    EXPECT_TRUE(runtime.fault() == "released" || twice) << runtime.fault();
    figures.unplannable += twice ? 1 : 0;
}

TEST_F(LiveRuntime, LeavesEveryBitOfRandomProgramsAsItIs) {
    Figures figures = runCases(runCase, wantedCases());
    // Programs do keep to their plans, plans recompute, and leaving them restores.
    EXPECT_GT(figures.planned, figures.steps / 3);
    EXPECT_GT(figures.recomputed, figures.planned);
    EXPECT_GT(figures.restored, 0);
    EXPECT_LE(figures.unplannable, static_cast<int>(wantedCases() / 200));
    // Ops come by typed, planned or not, and boxed where they are not the planned ones.
    EXPECT_GT(gTurns[native::Turn::Seen], 10 * figures.planned);
    EXPECT_GT(gTurns[native::Turn::Unseen], 0);
    EXPECT_GT(gTurns[native::Turn::Boxed], 0);
    for (const std::string_view codec : {kMaskCodec, kSignCodec, kIndexCodec})
        EXPECT_GT(figures.encodings[std::string(codec)], static_cast<int>(wantedCases() / 200))
            << codec;
    EXPECT_GT(figures.offloads, static_cast<std::int64_t>(wantedCases() / 2));
    RecordProperty("planned", std::to_string(figures.planned));
}

}  // namespace
}  // namespace hw::test
