// SPDX-License-Identifier: MIT
#include "executor/replay/arena_layout.h"

#include <gtest/gtest.h>

using namespace hw::core;
using namespace hw::executor;

namespace {

// constant 0 -> op 0 makes storage 1 -> op 1 makes storages 2 and 3 with 32 bytes of workspace.
struct ArenaSample {
    TrainingGraph graph;
    Signatures signatures;

    ArenaSample() {
        graph.storages.resize(4);
        const std::int64_t bytes[] = {64, 128, 256, 64};
        for (int s = 0; s < 4; ++s) {
            graph.storages[s].bytes = Bytes(bytes[s]);
            graph.tensors.push_back({s, kNone, s});
        }
        Op first, second;
        first.name = "first", first.inputs = {{0, 0}}, first.outputs = {{1, true}};
        second.name = "second", second.inputs = {{1, 0}}, second.outputs = {{2, true}, {3, true}};
        second.workspace = Bytes(32);
        graph.ops = {first, second};
        graph.events = {
            {Event::Kind::Constant, 0}, {Event::Kind::Compute, 0}, {Event::Kind::Compute, 1}};
        graph.finalTensors = {2};
        signatures.resize(2);
        signatures[0] = {{{Bytes(128), 0, 0, std::nullopt}}, 1};
        signatures[1] = {{{Bytes(256), 0, 0, std::nullopt},
                          {Bytes(32), std::nullopt, 1, 3},
                          {Bytes(64), 1, 2, std::nullopt}},
                         4};
    }
};

}  // namespace

TEST(ArenaLayout, LifetimesFollowTheSchedule) {
    ArenaSample sample;
    ASSERT_EQ(sample.graph.finish(), "");
    const Schedule schedule{Action::compute(0), Action::compute(1), Action::free(1),
                            Action::free(3)};
    const Arena arena = packSchedule(sample.graph, schedule, sample.signatures);
    ASSERT_EQ(arena.actions.size(), 4u);
    EXPECT_EQ(arena.actions[0].size(), 1u);
    ASSERT_EQ(arena.actions[1].size(), 3u);
    EXPECT_EQ(arena.actions[1][1].bytes, Bytes(32));
    EXPECT_TRUE(arena.actions[2].empty());
    ASSERT_EQ(arena.constants.count(0), 1u);
    EXPECT_EQ(arena.lowerBound, Bytes(64 + 128 + 256 + 32 + 64));
}

TEST(ArenaLayout, DuplicatesOfARecomputationDieWithIt) {
    ArenaSample sample;
    ASSERT_EQ(sample.graph.finish(), "");
    const Schedule kept{Action::compute(0), Action::compute(1), Action::free(2),
                        Action::recompute(1, {0}), Action::free(1)};
    const Arena arena = packSchedule(sample.graph, kept, sample.signatures);
    // Storage 3 stays while its duplicate lives for the moment of the recomputation.
    EXPECT_EQ(arena.lowerBound, Bytes(64 + 128 + 64 + 256 + 32 + 64));
    EXPECT_EQ(arena.actions[3].size(), 3u);
}

TEST(ArenaLayout, AForeignLayoutIsRefused) {
    ArenaSample sample;
    ASSERT_EQ(sample.graph.finish(), "");
    const Schedule schedule{Action::compute(0), Action::compute(1)};
    AddressLayout layout{
        Bytes(4096), {{0, Bytes(0)}}, {{Bytes(64)}, {Bytes(192), Bytes(448), Bytes(512)}}};
    const auto fits = arenaFromLayout(layout, sample.graph, schedule, sample.signatures);
    ASSERT_TRUE(fits);
    EXPECT_EQ(fits->actions[1][2].offset, Bytes(512));

    AddressLayout broken = layout;
    broken.offsets[1].pop_back();
    EXPECT_FALSE(arenaFromLayout(broken, sample.graph, schedule, sample.signatures));
    broken = layout;
    broken.offsets[0][0] = Bytes(4032);
    const auto outside = arenaFromLayout(broken, sample.graph, schedule, sample.signatures);
    ASSERT_FALSE(outside);
    EXPECT_EQ(outside.error().code, ErrorCode::Verification);
    EXPECT_NE(outside.error().what.find("op 0, first"), std::string::npos) << outside.error().what;
    broken = layout;
    broken.offsets[1][0] = Bytes(128);  // over the block of op 0
    const auto overlap = arenaFromLayout(broken, sample.graph, schedule, sample.signatures);
    ASSERT_FALSE(overlap);
    EXPECT_EQ(overlap.error().code, ErrorCode::Verification);
    EXPECT_NE(overlap.error().what.find("op 1, second"), std::string::npos) << overlap.error().what;
    broken = layout;
    broken.constants.clear();
    EXPECT_FALSE(arenaFromLayout(broken, sample.graph, schedule, sample.signatures));
}

TEST(ArenaLayout, EncodedFormsHaveTheirPlace) {
    ArenaSample sample;
    ASSERT_EQ(sample.graph.finish(), "");
    const Schedule schedule{Action::compute(0), Action::encode(1, "mask1", Bytes(24)),
                            Action::decode(1), Action::compute(1)};
    const Arena arena = packSchedule(sample.graph, schedule, sample.signatures);
    ASSERT_EQ(arena.actions[1].size(), 1u);
    EXPECT_EQ(arena.actions[1][0].bytes, Bytes(24));
    ASSERT_EQ(arena.actions[2].size(), 1u);
    EXPECT_EQ(arena.actions[2][0].bytes, Bytes(128));
    EXPECT_GE(arena.bytes, Bytes(64 + 128 + 256 + 32 + 64));
}
