// SPDX-License-Identifier: MIT
#include "core/memory/defer_frees.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/memory/evaluate.h"
#include "core/memory/rebuild.h"
#include "core/memory/schedule_builder.h"
#include "tests/unit/graph_builder.h"
#include "tests/unit/schedule_words.h"

namespace hw::core {
namespace {

using test::told;

/// a and b are read by one op each; the program lets go of both before the last op.
struct Held {
    explicit Held(std::int64_t last) {
        test::GraphBuilder builder;
        const auto w = builder.constant(8);
        a = builder.one("f", {w}, 100);
        b = builder.one("g", {a}, 10);
        const auto c = builder.one("h", {b}, 50);
        const auto d = builder.one("h", {c}, last);
        builder.release(a);
        builder.release(b);
        builder.one("h", {d}, 1);
        graph = builder.build();
        schedule = {Action::compute(0),
                    Action::compute(1),
                    Action::free(graph.storageOf(a)),
                    Action::compute(2),
                    Action::free(graph.storageOf(b)),
                    Action::compute(3),
                    Action::compute(4)};
    }
    TensorIndex a, b;
    TrainingGraph graph;
    Schedule schedule;
};

TEST(DeferFrees, StaysWithTheProgramWhereThereIsRoom) {
    const Held held(500);  // the peak is at op 3: room for nothing
    ASSERT_TRUE(evaluate(held.graph, held.schedule).valid);
    EXPECT_EQ(told(deferFrees(held.graph, held.schedule)), told(held.schedule));

    const Held low(1);  // at op 1: b has room all along, and then 50 of the 118 bytes are left
    const Schedule deferred = deferFrees(low.graph, low.schedule);
    const Schedule expected{
        Action::compute(0), Action::compute(1), Action::free(low.graph.storageOf(low.a)),
        Action::compute(2), Action::compute(3), Action::free(low.graph.storageOf(low.b)),
        Action::compute(4)};
    EXPECT_EQ(told(deferred), told(expected));
}

// What the plan makes again after the last op is there before the program lets go of anything.
TEST(DeferFrees, EndsAsTheProgramDoes) {
    test::GraphBuilder builder;
    const auto w = builder.constant(8);
    const auto a = builder.one("f", {w}, 100);
    const auto b = builder.one("g", {a}, 30);
    const auto c = builder.one("h", {b}, 100);
    builder.release(b);
    builder.release(c);
    builder.final(a);
    const TrainingGraph graph = builder.build();
    const Schedule schedule{Action::compute(0),
                            Action::compute(1),
                            Action::free(graph.storageOf(a)),
                            Action::compute(2),
                            Action::free(graph.storageOf(b)),
                            Action::free(graph.storageOf(c)),
                            Action::recompute(0, {0})};
    ASSERT_TRUE(evaluate(graph, schedule).valid) << evaluate(graph, schedule).why;
    EXPECT_EQ(told(deferFrees(graph, schedule)), told(schedule));
}

TEST(DeferFrees, LeavesWhatIsMadeAgainWhereItIs) {
    Held low(1);
    low.schedule.insert(low.schedule.end() - 1, Action::recompute(1, {0}));
    EXPECT_FALSE(evaluate(low.graph, low.schedule).valid) << "a is gone";
    low.schedule.insert(low.schedule.end() - 2, Action::recompute(0, {0}));
    ASSERT_TRUE(evaluate(low.graph, low.schedule).valid);
    EXPECT_EQ(told(deferFrees(low.graph, low.schedule)), told(low.schedule));
}

// Peak and time stay, and nothing is freed that was not, or earlier.
TEST(DeferFrees, CostsNothing) {
    std::size_t moved = 0;
    for (unsigned seed = 0; seed < 200; ++seed) {
        SCOPED_TRACE(seed);
        const TrainingGraph graph = test::randomGraph(seed, 40);
        const RebuildInfo info = rebuildInfo(graph);
        ScheduleBuilder builder(graph, info);
        while (!builder.done()) builder.computeNext();
        const Schedule schedule = builder.finish();
        const Evaluation before = evaluate(graph, schedule);
        if (!before.valid) continue;
        const Schedule deferred = deferFrees(graph, schedule);
        moved += test::expectRearranged(graph, schedule, deferred);
        EXPECT_EQ(evaluate(graph, deferred).peak, before.peak);
    }
    EXPECT_GT(moved, 20u);
}

}  // namespace
}  // namespace hw::core
