// SPDX-License-Identifier: MIT
// What a running program is given of a plan, and what it is not.
#include "live/compile/program_writer.h"

#include <gtest/gtest.h>

#include "core/memory/evaluate.h"
#include "core/plan/codec.h"
#include "live/wire/live_program.h"
#include "tests/unit/graph_builder.h"

namespace hw::live {
namespace {

using namespace core;
namespace wire = profiler::wire;

// a = f(w), b = g(a), c = h(b), d = back(c, a): a waits for the last op.
struct Chain {
    Chain() {
        test::GraphBuilder builder;
        const auto w = builder.constant(8);
        const auto a = builder.one("f", {w}, 100);
        const auto b = builder.one("g", {a}, 10);
        const auto c = builder.one("h", {b}, 10);
        builder.one("back", {c, a}, 10);
        graph = builder.build();
        plan.schedule = {Action::compute(0), Action::compute(1),        Action::free(1),
                         Action::compute(2), Action::recompute(0, {0}), Action::compute(3)};
    }
    TrainingGraph graph;
    Plan plan;
};

TEST(LiveProgram, DropsWhatCanBeMadeAgain) {
    Chain chain;
    ASSERT_TRUE(evaluate(chain.graph, chain.plan.schedule).valid);
    const auto program = liveProgram(chain.graph, chain.plan, {});
    ASSERT_TRUE(program) << program.error().what;
    EXPECT_EQ(program->recomputes, 1);
    EXPECT_EQ(program->drops, 1);
    EXPECT_EQ(program->kept, Bytes(0));
    EXPECT_FALSE(program->bytes.empty());
}

// Else the runtime would find it gone, and make it again with everything on the way at once.
TEST(LiveProgram, EndsWithWhatThePlanMakesAgainForTheEnd) {
    Chain chain;
    chain.plan.schedule = {Action::compute(0), Action::compute(1), Action::compute(2),
                           Action::compute(3), Action::free(1)};
    const auto left = liveProgram(chain.graph, chain.plan, {});
    chain.plan.schedule.push_back(Action::recompute(0, {0}));
    const auto made = liveProgram(chain.graph, chain.plan, {});
    ASSERT_TRUE(left && made);
    EXPECT_EQ(made->recomputes, 1);
    EXPECT_GT(made->bytes.size(), left->bytes.size());
}

// The judge lets an op without results, such as item(), come early; the program runs it at its own
// place.
TEST(LiveProgram, KeepsWhatAnOpWithoutResultsReadsUntilThen) {
    test::GraphBuilder builder;
    const auto w = builder.constant(8);
    const auto loss = builder.one("loss", {w}, 100);
    builder.one("backward", {w}, 10);
    builder.op("item", {loss}, {});
    const TrainingGraph graph = builder.build();
    Plan plan;
    const auto drops = [&](const Schedule& schedule) {
        plan.schedule = schedule;
        EXPECT_TRUE(evaluate(graph, schedule).valid) << evaluate(graph, schedule).why;
        const auto program = liveProgram(graph, plan, {});
        EXPECT_TRUE(program) << program.error().what;
        return program ? program->drops : -1;
    };
    EXPECT_EQ(drops({Action::compute(0), Action::compute(2), Action::free(1), Action::compute(1)}),
              0);
    EXPECT_EQ(drops({Action::compute(0), Action::free(1), Action::compute(1),
                     Action::recompute(0, {0}), Action::compute(2)}),
              1);
}

// The program lets go of `x` right before the op before which the plan reads it again: without it
// the runtime would make it again, from as far back as need be.
TEST(LiveProgram, HoldsWhatThePlanReadsAfterTheProgramHasLetGoOfIt) {
    test::GraphBuilder builder;
    const auto w = builder.constant(8);
    const auto x = builder.one("f", {w}, 100);
    const auto s = builder.one("g", {x}, 10);
    builder.release(x);
    builder.one("h", {s}, 10);
    const TrainingGraph graph = builder.build();
    Plan plan;
    plan.schedule = {Action::compute(0),        Action::compute(1), Action::free(2),
                     Action::recompute(1, {0}), Action::free(1),    Action::compute(2)};
    ASSERT_TRUE(evaluate(graph, plan.schedule).valid) << evaluate(graph, plan.schedule).why;
    const auto program = liveProgram(graph, plan, {});
    ASSERT_TRUE(program) << program.error().what;
    for (const auto action : {wire::LiveAction::Hold, wire::LiveAction::Release}) {
        const std::string written{static_cast<char>(action), 1, 0, 0, 0};
        EXPECT_NE(program->bytes.find(written), std::string::npos);
    }
}

// What is made from parameters that FSDP has gathered cannot be made again once they are gone: it
// is what others are made from, and as long as the plan keeps it, these may go.
TEST(LiveProgram, StartsFromWhatWasMadeFromGatheredParameters) {
    test::GraphBuilder builder;
    const auto x = builder.constant(8);
    const auto gathered = builder.constant(50);
    const auto made = builder.one("addmm", {x, gathered}, 100);
    builder.release(gathered);
    const auto a = builder.one("gelu", {made}, 100);
    const auto b = builder.one("f", {a}, 10);
    builder.one("gelu_backward", {b, made, a}, 10);
    TrainingGraph graph = builder.build();
    graph.recorded = true;
    graph.storages[1].category = Category::Parameter;
    ASSERT_EQ(graph.finish(), "");
    EXPECT_TRUE(graph.ops[0].once);
    EXPECT_FALSE(graph.ops[1].once);
    Plan plan;
    plan.schedule = {Action::compute(0), Action::free(1), Action::compute(1),
                     Action::compute(2), Action::free(3), Action::recompute(1, {0}),
                     Action::compute(3)};
    ASSERT_TRUE(evaluate(graph, plan.schedule).valid) << evaluate(graph, plan.schedule).why;
    const auto program = liveProgram(graph, plan, {});
    ASSERT_TRUE(program) << program.error().what;
    EXPECT_EQ(program->drops, 1);
    EXPECT_EQ(program->kept, Bytes(0));
    plan.schedule.insert(plan.schedule.end() - 1, Action::recompute(0, {0}));
    EXPECT_FALSE(evaluate(graph, plan.schedule).valid) << "its parameters are gone";
}

// Once the constant has been written, nothing makes `a` again: it stays.
TEST(LiveProgram, KeepsWhatItCouldNotRestore) {
    test::GraphBuilder builder;
    const auto w = builder.constant(8);
    const auto a = builder.one("f", {w}, 100);
    const auto b = builder.one("g", {a}, 10);
    builder.inPlace("step", {w});
    builder.one("h", {b}, 10);
    const TrainingGraph graph = builder.build();
    Plan plan;  // drops a, to which the program still refers
    plan.schedule = {Action::compute(0), Action::compute(1), Action::free(1), Action::compute(2),
                     Action::compute(3)};
    const auto program = liveProgram(graph, plan, {});
    ASSERT_TRUE(program) << program.error().what;
    EXPECT_EQ(program->drops, 0);
    EXPECT_EQ(program->kept, Bytes(100));
}

TEST(LiveProgram, RefusesWhatARunningProgramCannotBeGiven) {
    Chain chain;
    chain.plan.implementations[2] = "fft";
    const auto chosen = liveProgram(chain.graph, chain.plan, {});
    ASSERT_FALSE(chosen);
    EXPECT_NE(chosen.error().what.find("h (op 2) as 'fft'"), std::string::npos);
    chain.plan.implementations.clear();
    chain.plan.schedule = {Action::compute(0), Action::encode(1, "huffman", Bytes(10))};
    const auto encoded = liveProgram(chain.graph, chain.plan, {});
    ASSERT_FALSE(encoded);
    EXPECT_EQ(encoded.error().code, ErrorCode::BadInput);
    EXPECT_NE(encoded.error().what.find("encodes storage 1 as 'huffman'"), std::string::npos);
}

TEST(LiveProgram, IsCompiledForWhatItsPerformerCanDo) {
    Chain chain;
    chain.plan.schedule = {Action::compute(0),
                           Action::compute(1),
                           Action::encode(1, std::string(kMaskCodec), Bytes(9)),
                           Action::compute(2),
                           Action::decode(1),
                           Action::compute(3)};
    ASSERT_TRUE(liveProgram(chain.graph, chain.plan, {}, profiler::wire::kPlanActions));
    const auto refused = liveProgram(chain.graph, chain.plan, {}, profiler::wire::kBudgetActions);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::BadInput);
    EXPECT_NE(refused.error().what.find("asks to encode storage 1"), std::string::npos)
        << refused.error().what;
}

// "back" is no op that takes signs for elements.
TEST(LiveProgram, LetsSignsBeReadByWhatComparesWithZeroOnly) {
    Chain chain;
    const auto sign = std::string(kSignCodec);
    chain.plan.schedule = {
        Action::compute(0), Action::compute(1), Action::encode(1, sign, Bytes(7)),
        Action::compute(2), Action::decode(1),  Action::compute(3)};
    const auto refused = liveProgram(chain.graph, chain.plan, {});
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().what.find("op 3 (back) read signs for elements"), std::string::npos);
    chain.graph.ops[3].name = "aten::threshold_backward";
    const auto taken = liveProgram(chain.graph, chain.plan, {});
    ASSERT_TRUE(taken) << taken.error().what;
    EXPECT_EQ(taken->drops, 1);
}

}  // namespace
}  // namespace hw::live
