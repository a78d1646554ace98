// SPDX-License-Identifier: MIT
#include "core/memory/schedule_builder.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/memory/evaluate.h"
#include "tests/unit/graph_builder.h"

namespace hw::core {
namespace {

// Each op reads the one before; only the first and the last result are held on the way.
TEST(ScheduleBuilder, AChainAsLongAsTheStepIsRebuilt) {
    constexpr int kOps = 200'000;
    test::GraphBuilder b;
    const TensorIndex x = b.constant(8);
    TensorIndex at = b.one("first", {x}, 8);
    for (int i = 1; i < kOps; ++i) at = b.one("next", {at}, 8);
    b.final(b.one("last", {at, x}, 8));
    const TrainingGraph graph = b.build();
    const RebuildInfo info = rebuildInfo(graph);
    ScheduleBuilder builder(graph, info);
    while (builder.next() < kOps) builder.computeNext();
    ASSERT_TRUE(builder.resident(graph.storageOf(at)));
    builder.drop(graph.storageOf(at));
    builder.computeNext();
    const Schedule schedule = builder.finish();
    const Evaluation judged = evaluate(graph, schedule);
    ASSERT_TRUE(judged.valid) << judged.why;
    EXPECT_EQ(std::count_if(schedule.begin(), schedule.end(),
                            [](const Action& action) { return action.recomputes(); }),
              kOps);
    EXPECT_EQ(judged.peak, Bytes(24));
}

}  // namespace
}  // namespace hw::core
