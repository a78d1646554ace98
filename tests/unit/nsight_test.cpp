// SPDX-License-Identifier: MIT
#include "core/import/nsight.h"

#include <sqlite3.h>

#include "tests/unit/memory_rows.h"

namespace hw::core {
namespace {

using test::figure;

class Nsight : public testing::Test {
protected:
    std::string make(const std::string& sql) {
        Database(folder_ / "n.sqlite", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)
            .execute(sql.c_str());
        return folder_ / "n.sqlite";
    }
    test::TemporaryFolder folder_;
};

constexpr const char* kTable =
    "CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS(start INTEGER, globalPid INTEGER, deviceId INTEGER,"
    " contextId INTEGER, address INTEGER, pc INTEGER, bytes INTEGER, memKind INTEGER,"
    " memoryOperationType INTEGER, name TEXT);";

TEST_F(Nsight, MemoryOfTheDriver) {
    const std::string path =
        make(std::string(kTable).append("INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES"
                                        " (30, 87241523200000, 0, 1, 4096, 0, 0, 3, 2, NULL),"
                                        " (10, 87241523200000, 0, 1, 4096, 0, 1000, 3, 1, NULL),"
                                        " (20, 87241523200000, 0, 1, 8192, 0, 500, 3, 1, NULL),"
                                        " (25, 87241523200000, 0, 1, 64, 0, 77, 2, 1, NULL),"
                                        " (40, 87241523200000, 0, 1, 12345, 0, 9, 3, 2, NULL);"));
    auto session = openAny(path);
    ASSERT_TRUE(session) << session.error().what;
    EXPECT_EQ(figure(*session, "SELECT count(*) FROM memory_events"), 5);
    EXPECT_EQ(figure(*session, "SELECT count(*) FROM storages"), 3);
    EXPECT_EQ(test::text(*session,
                         "SELECT group_concat(allocated_bytes) FROM (SELECT * FROM "
                         "memory_events WHERE device = 0 ORDER BY id)"),
              "1000,1500,500,500");
    EXPECT_EQ(test::text(*session, "SELECT device FROM storages WHERE bytes = 77"), "host");
    EXPECT_TRUE(test::hasGap(*session, "lifetimes")) << "one free without its allocation";
    EXPECT_EQ(test::text(*session, "SELECT value FROM meta WHERE key = 'format'"), "nsight");
    EXPECT_FALSE(session->lastStep());
}

TEST_F(Nsight, RefusesOtherDatabases) {
    const auto other = openAny(make("CREATE TABLE x(a)"));
    ASSERT_FALSE(other);
    EXPECT_NE(other.error().what.find("no Highwater session"), std::string::npos);
    const auto view =
        openAny(make("CREATE VIEW CUDA_GPU_MEMORY_USAGE_EVENTS AS SELECT 1 AS start"));
    EXPECT_FALSE(view);
}

TEST_F(Nsight, NamesWhatIsMissing) {
    const auto empty = openAny(make(kTable));
    ASSERT_FALSE(empty);
    EXPECT_NE(empty.error().what.find("no event"), std::string::npos) << empty.error().what;
}

}  // namespace
}  // namespace hw::core
