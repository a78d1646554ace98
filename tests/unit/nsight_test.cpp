// SPDX-License-Identifier: MIT
#include "core/import/nsight.h"

#include <sqlite3.h>

#include "core/session/device_work.h"
#include "core/session/recorded_memory.h"
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

TEST_F(Nsight, TheFilesOwnTablesSayWhatItsNumbersMean) {
    const std::string rows =
        "INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES"
        " (10, 0, 0, 1, 4096, 0, 1000, 2, 0, NULL), (20, 0, 0, 1, 8192, 0, 500, 2, 0, NULL),"
        " (25, 0, 0, 1, 64, 0, 77, 1, 0, NULL), (30, 0, 0, 1, 4096, 0, 1000, 2, 1, NULL);";
    const std::string enums =
        "CREATE TABLE ENUM_CUDA_DEV_MEM_EVENT_OPER(id INTEGER, name TEXT, label TEXT);"
        "INSERT INTO ENUM_CUDA_DEV_MEM_EVENT_OPER VALUES"
        " (0, 'CUDA_DEV_MEM_EVENT_OPR_ALLOCATION', 'Allocation'),"
        " (1, 'CUDA_DEV_MEM_EVENT_OPR_DEALLOCATION', 'Deallocation');"
        "CREATE TABLE ENUM_CUDA_MEM_KIND(id INTEGER, name TEXT, label TEXT);"
        "INSERT INTO ENUM_CUDA_MEM_KIND VALUES (0, 'PAGEABLE', 'Pageable'), (1, 'PINNED', "
        "'Pinned'),"
        " (2, 'DEVICE', 'Device');";
    for (const bool told : {true, false}) {
        std::filesystem::remove(folder_ / "n.sqlite");
        const auto session = openAny(make(kTable + rows + (told ? enums : std::string())));
        ASSERT_TRUE(session) << session.error().what;
        EXPECT_EQ(test::text(*session,
                             "SELECT group_concat(allocated_bytes) FROM (SELECT * FROM "
                             "memory_events WHERE device = 0 ORDER BY id)"),
                  "1000,1500,500")
            << "numbers that begin with 0 are the exporter's";
        EXPECT_EQ(test::text(*session, "SELECT device FROM storages WHERE bytes = 77"), "host");
    }
}

constexpr const char* kWork =
    "CREATE TABLE META_DATA_EXPORT(name TEXT, value TEXT);"
    "CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT);"
    "INSERT INTO StringIds VALUES (1, 'add(int)'), (2, 'add'), (3, 'a range');"
    "CREATE TABLE TARGET_INFO_GPU(id INTEGER, name TEXT, totalMemory INTEGER);"
    "INSERT INTO TARGET_INFO_GPU VALUES (0, 'Some GPU', 8000), (1, 'Unused GPU', 9000);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER, end INTEGER, deviceId INTEGER,"
    " streamId INTEGER, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER,"
    " shortName INTEGER);"
    "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (300, 400, 0, 7, 5, 0, 1, 2),"
    " (200, 100, 0, 7, 6, 0, 1, 2), (500, 600, 0, 7, 8, 0, 99, 2);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY(start INTEGER, end INTEGER, deviceId INTEGER,"
    " streamId INTEGER, bytes INTEGER, copyKind INTEGER, srcKind INTEGER, dstKind INTEGER);"
    "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (250, 260, 0, 13, 4096, 1, 2, 3);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET(start INTEGER, end INTEGER, deviceId INTEGER,"
    " streamId INTEGER, bytes INTEGER, memKind INTEGER);"
    "INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (270, 280, 0, 13, 64, 3);"
    "CREATE TABLE NVTX_EVENTS(start INTEGER, end INTEGER, text TEXT, textId INTEGER,"
    " globalTid INTEGER);"
    "INSERT INTO NVTX_EVENTS VALUES (200, 700, NULL, 3, 42), (210, NULL, 'a mark', NULL, 42);";

TEST_F(Nsight, KernelsAndCopiesAreReadWithoutAnyMemory) {
    const auto session = openAny(make(kWork));
    ASSERT_TRUE(session) << session.error().what;
    EXPECT_EQ(test::text(*session,
                         "SELECT group_concat(name) FROM (SELECT name FROM kernels ORDER"
                         " BY begin_ns)"),
              "add(int),add")
        << "the one that ends before it begins is left out";
    EXPECT_EQ(figure(*session, "SELECT correlation FROM kernels WHERE begin_ns = 300"), 5);
    EXPECT_EQ(figure(*session, "SELECT stream FROM copies WHERE bytes = 4096"), 13);
    EXPECT_EQ(test::text(*session,
                         "SELECT group_concat(kind, '; ') FROM (SELECT kind FROM copies"
                         " ORDER BY begin_ns)"),
              "Memcpy HtoD (Pinned -> Device); Memset (Device)");
    EXPECT_EQ(test::text(*session, "SELECT name FROM ranges WHERE kind = 'nvtx'"), "a range");
    EXPECT_EQ(test::text(*session, "SELECT group_concat(name) FROM devices"), "Some GPU");
    EXPECT_TRUE(test::hasGap(*session, "memory"));
    EXPECT_TRUE(test::hasGap(*session, "work"));
    const auto recorded = loadRecordedMemory(*session);
    ASSERT_TRUE(recorded) << recorded.error().what;
    EXPECT_TRUE(recorded->moments.empty());
    EXPECT_EQ(recorded->device, "cuda:0");
    EXPECT_EQ(recorded->deviceName, "Some GPU");
    EXPECT_EQ(recorded->originNs, 250);
    EXPECT_EQ(recorded->end, Nanoseconds(350));
    const auto work = loadDeviceWork(*session, recorded->ordinal, recorded->originNs);
    ASSERT_TRUE(work);
    EXPECT_EQ(work->streams.size(), 2u);
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
    std::filesystem::remove(folder_ / "n.sqlite");
    const auto nothing = openAny(make("CREATE TABLE META_DATA_EXPORT(name TEXT, value TEXT)"));
    ASSERT_FALSE(nothing);
    EXPECT_NE(nothing.error().what.find("no kernel, no copy"), std::string::npos)
        << nothing.error().what;
}

class NsightFile : public testing::TestWithParam<std::string> {};

TEST_P(NsightFile, HasTheRowsOfItsTables) {
    const auto session = openAny(GetParam());
    ASSERT_TRUE(session) << session.error().what;
    const auto counts = session->deviceWorkCounts();
    ASSERT_TRUE(counts);
    EXPECT_EQ(counts->kernels, 1);
    EXPECT_EQ(counts->copies, 72);
    EXPECT_EQ(test::text(*session, "SELECT name FROM kernels"), "add(int, float *, float *)");
    EXPECT_EQ(test::text(*session, "SELECT name FROM devices"), "NVIDIA GeForce RTX 2080 Ti");
    EXPECT_TRUE(test::hasGap(*session, "memory"));
}
INSTANTIATE_TEST_SUITE_P(Data, NsightFile,
                         testing::ValuesIn(test::dataFiles({"nsight/kernels-and-copies.sqlite"})),
                         test::dataNameOf);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(NsightFile);

}  // namespace
}  // namespace hw::core
