// SPDX-License-Identifier: MIT
#include "core/import/memory_timeline.h"

#include <fstream>

#include "core/session/recorded_memory.h"
#include "tests/unit/memory_rows.h"

namespace hw::core {
namespace {

using test::figure;
using test::hasGap;

class MemoryTimeline : public testing::Test {
protected:
    Result<Session> import(const std::string& text) {
        std::ofstream(folder_ / "t.raw.json", std::ios::binary) << text;
        return openAny(folder_ / "t.raw.json");
    }
    void refused(const std::string& text, const std::string& why) {
        const auto session = import(text);
        ASSERT_FALSE(session) << text;
        EXPECT_EQ(session.error().code, ErrorCode::BadInput);
        EXPECT_NE(session.error().what.find(why), std::string::npos) << session.error().what;
        EXPECT_FALSE(session.error().hint.empty());
    }
    test::TemporaryFolder folder_;
};

TEST_F(MemoryTimeline, EventsBecomeALevelAndStoragesWithCategories) {
    const auto session = import(
        "[[-1, 1, 100, 0], [-1, 1, 30, 7], [1000, 2, 50, 4], [1100, 3, -50, 4], [1100, 3, 50, 5],"
        " [1200, 3, -30, 7], [1200, 3, 30, 7], [1300, 2, 20, 3], [1400, 4, -20, 3],"
        " [1500, 4, -50, 5]]");
    ASSERT_TRUE(session) << session.error().what;
    EXPECT_EQ(test::text(*session, "SELECT value FROM meta WHERE key = 'format'"),
              "memory-timeline");
    EXPECT_EQ(test::text(*session, "SELECT group_concat(allocated_bytes) FROM memory_events"),
              "130,180,180,200,180,130");
    EXPECT_EQ(test::text(*session, "SELECT group_concat(kind) FROM memory_events"),
              "initial,alloc,version,alloc,free,free");
    EXPECT_EQ(figure(*session, "SELECT time_ns FROM memory_events WHERE id = 0"), 1000);
    EXPECT_EQ(test::text(*session,
                         "SELECT group_concat(category) FROM (SELECT category FROM"
                         " storages ORDER BY id)"),
              "parameter,unknown,activation,gradient,temporary");
    const auto recorded = loadRecordedMemory(*session);
    ASSERT_TRUE(recorded);
    Bytes atPeak;
    for (const auto& life : recorded->lifetimes)
        if (life.first <= 3 && life.last >= 3)
            atPeak += recorded->graph.storages[static_cast<std::size_t>(life.storage)].bytes;
    EXPECT_EQ(atPeak, Bytes(200)) << "all that is there at the highest moment has a storage";
    EXPECT_TRUE(hasGap(*session, "device"));
    EXPECT_FALSE(hasGap(*session, "lifetimes"));
}

TEST_F(MemoryTimeline, WhatIsReleasedWithoutHavingBeenThereIsLeftOutAndSaid) {
    const auto session = import("[[5, 2, 10, 4], [6, 4, -99, 4], [7, 3, 8, 1], [8, 3, -4, 1]]");
    ASSERT_TRUE(session) << session.error().what;
    EXPECT_EQ(test::text(*session, "SELECT group_concat(allocated_bytes) FROM memory_events"),
              "0,10");
    EXPECT_TRUE(hasGap(*session, "lifetimes"));
}

TEST_F(MemoryTimeline, OtherListsAreRefused) {
    refused("[[1, 2, 3], [[0, 1], [0, 2], [0, 3]]]", "no list of [time, action");
    refused("[[1, 2, 3, 4, 5]]", "no list of [time, action");
    refused("[[1, 2, 3.5, 4]]", "no list of [time, action");
    refused("[[1, 2, 3, 4], {}]", "no list of [time, action");
    refused("[[1, 2, 3, 8]]", "category 8");
    refused("[[1, 5, 3, 1]]", "action 5");
    refused("[[1, 2, -3, 1]]", "negative");
    refused("[[1, 4, 3, 1]]", "positive");
    refused("[[1, 2, 9223372036854775807, 1], [1, 2, 1, 1]]", "too much");
    refused("[[1, 2, 18446744073709551615, 1]]", "too large");
    refused("[[1, 2, 3, 4], [1, 2", "byte");
}

class TimelineFile : public testing::TestWithParam<std::string> {};

TEST_P(TimelineFile, PeaksWhereTheSumOfItsEntriesDoes) {
    const auto session = openAny(GetParam());
    ASSERT_TRUE(session) << session.error().what;
    EXPECT_EQ(figure(*session, "SELECT max(allocated_bytes) FROM memory_events"), 3082832104)
        << "the highest running sum of the file's third column";
    EXPECT_FALSE(hasGap(*session, "lifetimes"));
}
INSTANTIATE_TEST_SUITE_P(
    Data, TimelineFile,
    testing::ValuesIn(test::dataFiles({"torch-snapshot/memory_timeline.raw.gz"})),
    test::dataNameOf);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(TimelineFile);

}  // namespace
}  // namespace hw::core
