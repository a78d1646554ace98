// SPDX-License-Identifier: MIT
// Which storages can be rebuilt, and until when.
#include "core/memory/rebuild.h"

#include <gtest/gtest.h>

#include "tests/unit/graph_builder.h"

namespace hw::core {
namespace {

TEST(Rebuild, GoesOnUntilABackwardWritesOverWhatTheForwardSaved) {
    test::GraphBuilder b;
    const auto data = b.constant(8);
    const auto first = b.one("product", {data}, 100);
    const auto second = b.one("norm", {first}, 100);
    const auto third = b.one("activation", {second}, 100);
    const auto gradient = b.one("loss_backward", {third}, 100);
    b.inPlace("activation_backward", {gradient, third});
    const auto sum = b.one("sum", {second, gradient}, 8);
    b.inPlace("norm_backward", {first, second, gradient});
    b.final(b.one("product_backward", {first, sum}, 8));
    const TrainingGraph graph = b.build();
    const RebuildInfo info = rebuildInfo(graph);
    const OpIndex normBackward = 6;
    EXPECT_TRUE(info.rematerializable[graph.storageOf(third)]);
    // Up to the op that reads it and writes over what it is made from, as the op comes after.
    EXPECT_EQ(info.lastUse[graph.storageOf(second)], normBackward);
    EXPECT_TRUE(info.rematerializable[graph.storageOf(second)]);
    // Not with what has been written over it: `second` could not be rebuilt for that.
    EXPECT_FALSE(info.rematerializable[graph.storageOf(first)]);
    EXPECT_EQ(info.rebuildableBefore[graph.storageOf(first)], normBackward);
    EXPECT_EQ(info.rebuildableBefore[graph.storageOf(second)], kNone);
}

TEST(Rebuild, EndsBeforeAnOpThatMustNotRunAgain) {
    test::GraphBuilder b;
    const auto data = b.constant(8);
    const auto first = b.one("make", {data}, 8), second = b.one("make", {data}, 8);
    b.inPlace("one_", {first});
    b.inPlace("both_", {first, second}, 1, 2);
    b.inPlace("one_", {first});
    b.final(b.one("last", {first, second}, 8));
    const TrainingGraph graph = b.build();
    const RebuildInfo info = rebuildInfo(graph);
    const OpIndex both = 3;
    EXPECT_EQ(info.rebuildableBefore[graph.storageOf(first)], both);
    EXPECT_EQ(info.rebuildableBefore[graph.storageOf(second)], both);
    EXPECT_FALSE(info.rematerializable[graph.storageOf(first)]);
    EXPECT_TRUE(info.source[graph.storageOf(first)]);
}

}  // namespace
}  // namespace hw::core
