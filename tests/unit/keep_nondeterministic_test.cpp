// SPDX-License-Identifier: MIT
#include "core/memory/keep_nondeterministic.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/graph/nondeterministic_ops.h"
#include "core/memory/evaluate.h"
#include "tests/unit/graph_builder.h"
#include "tests/unit/schedule_words.h"

namespace hw::core {
namespace {

using test::told;

TEST(NondeterministicOps, AreTakenByNameAndDevice) {
    EXPECT_TRUE(isNondeterministic("aten::index_put_", false));
    EXPECT_TRUE(isNondeterministic("aten::index_put", false));
    EXPECT_TRUE(isNondeterministic("aten::scatter_add.out", true));
    EXPECT_FALSE(isNondeterministic("aten::scatter_add", false));
    EXPECT_TRUE(isNondeterministic("aten::_adaptive_avg_pool2d_backward", true));
    EXPECT_TRUE(isNondeterministic("aten::upsample_trilinear3d_backward", true));
    EXPECT_FALSE(isNondeterministic("aten::mm", true));
    EXPECT_FALSE(isNondeterministic("mine::index_put_", true));
    EXPECT_FALSE(isNondeterministic("aten::", true));
}

/// Two such storages, x of 100 and y of 60, dropped before an op that makes 200, and read after it.
struct Drops {
    Drops() {
        test::GraphBuilder builder;
        const auto w = builder.constant(10);
        const auto x = builder.one("aten::index_put", {w}, 100);
        const auto y = builder.one("aten::index_put", {w}, 60);
        const auto big = builder.one("aten::mm", {w}, 200);
        builder.release(big);
        const auto end = builder.one("aten::add", {x, y}, 10);
        builder.release(x);
        builder.release(y);
        builder.final(end);
        graph = builder.build();
        const StorageIndex sx = graph.storageOf(x), sy = graph.storageOf(y);
        schedule = {Action::compute(0),        Action::free(sx),
                    Action::compute(1),        Action::free(sy),
                    Action::compute(2),        Action::free(graph.storageOf(big)),
                    Action::recompute(0, {0}), Action::recompute(1, {0}),
                    Action::compute(3),        Action::free(sx),
                    Action::free(sy)};
    }
    TrainingGraph graph;
    Schedule schedule;
};

TEST(KeepNondeterministic, KeepsWhatThereIsRoomFor) {
    const Drops drops;
    const Evaluation before = evaluate(drops.graph, drops.schedule);
    ASSERT_TRUE(before.valid) << before.why;
    ASSERT_EQ(before.peak, Bytes(210));
    const auto peakWithin = [&](std::int64_t budget, std::int64_t again) {
        const auto kept = keepNondeterministic(drops.graph, drops.schedule, Bytes(budget), false);
        EXPECT_EQ(kept.has_value(), again < 2);
        const Evaluation judged = evaluate(drops.graph, kept.value_or(drops.schedule));
        EXPECT_TRUE(judged.valid) << judged.why;
        EXPECT_EQ(judged.recomputedOps, again);
        return judged.peak;
    };
    EXPECT_EQ(peakWithin(210, 2), Bytes(210));
    EXPECT_EQ(peakWithin(299, 1), Bytes(270));  // y alone
    EXPECT_EQ(peakWithin(310, 1), Bytes(310));  // x, which comes first
    EXPECT_EQ(peakWithin(370, 0), Bytes(370));
}

TEST(KeepNondeterministic, LeavesOthersAlone) {
    const Drops drops;
    TrainingGraph graph = drops.graph;
    for (Op& op : graph.ops) op.name = "aten::scatter_add";
    EXPECT_FALSE(keepNondeterministic(graph, drops.schedule, Bytes(1000), false));
    const auto kept = keepNondeterministic(graph, drops.schedule, Bytes(1000), true);
    ASSERT_TRUE(kept);
    EXPECT_NE(told(*kept), told(drops.schedule));
}

}  // namespace
}  // namespace hw::core
