// SPDX-License-Identifier: MIT
// Sessions of every schema version: those that earlier versions recorded, kept in tests/frozen, and
// what opening them changes.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "core/base/digest.h"
#include "core/memory/evaluate.h"
#include "core/session/access.h"
#include "core/session/session_writer.h"
#include "tests/unit/schema_v1.h"
#include "tests/unit/test_data.h"

namespace hw::core {
namespace {

constexpr int kMayCreate = 6;  // SQLite: read, write, create

/// A file of version 1: two steps of two ops, two memory events.
void makeVersion1(const std::string& path) {
    Database file(path, kMayCreate);
    file.execute(test::kSchemaVersion1);
    file.execute(R"(
INSERT INTO processes(pid, framework) VALUES(7, 'pytorch');
INSERT INTO ops(id, seq, name, duration_ns, workspace_bytes) VALUES
    (0, 11, 'aten::a', 10, 4), (1, 12, 'aten::b', 10, 4),
    (10, 111, 'aten::a', 10, 4), (11, 112, 'aten::b', 10, 4);
INSERT INTO storages(id, bytes, creator, alloc_seq, free_seq) VALUES
    (0, 100, NULL, 10, 20), (1, 200, 0, 11, 21), (2, 50, 1, 12, 98),
    (10, 100, NULL, 110, 120), (11, 200, 10, 111, 121), (12, 50, 11, 112, 198);
INSERT INTO tensors(id, storage) VALUES (0,0), (1,1), (2,2), (10,10), (11,11), (12,12);
INSERT INTO op_inputs VALUES (0,0,0,0), (1,0,1,0), (10,0,10,0), (11,0,11,0);
INSERT INTO op_outputs VALUES (0,0,1,1), (1,0,2,1), (10,0,11,1), (11,0,12,1);
INSERT INTO steps(id, process, first_seq, end_seq) VALUES (0, 1, 10, 99), (1, 1, 110, 199);
INSERT INTO memory_events(time_ns, kind, address, bytes, allocated_bytes, reserved_bytes) VALUES
    (5, 'alloc', 4096, 512, 512, 2048), (6, 'free', NULL, -512, 0, NULL);
)");
}

void expectVersion1Content(const Session& session) {
    const auto graph = loadGraph(session, 1);
    ASSERT_TRUE(graph) << graph.error().what;
    EXPECT_EQ(graph->ops.size(), 2u);
    EXPECT_EQ(evaluate(*graph, baselineSchedule(*graph)).peak, Bytes(354));
    const auto events = session.memoryEvents();
    ASSERT_TRUE(events) << events.error().what;
    ASSERT_EQ(events->size(), 2u);
    EXPECT_EQ((*events)[0].address, 4096);
    EXPECT_EQ((*events)[1].bytes, Bytes(-512));
    EXPECT_EQ((*events)[1].reserved, std::nullopt);
    std::set<std::string> names;
    const auto series = session.series();
    ASSERT_TRUE(series);
    for (const SeriesRow& row : *series) names.insert(row.key.name);
    EXPECT_EQ(names, (std::set<std::string>{"step 0 live", "step 1 live", "device 0 allocated",
                                            "device 0 reserved"}));
}

std::string columns(Database& database) {
    std::string text;
    Statement from(database,
                   "SELECT m.name, c.name, c.type, c.\"notnull\", c.pk FROM sqlite_master m,"
                   " pragma_table_info(m.name) c WHERE m.type IN ('table', 'index')"
                   " ORDER BY m.name, c.cid");
    while (from.step())
        for (int i = 0; i < 5; ++i) text += from.text(i) + (i < 4 ? "|" : "\n");
    return text;
}

TEST(SessionMigration, Version1OpensForReadingAndStaysAsItIs) {
    test::TemporaryFolder folder;
    const std::string path = folder / "old.hws";
    makeVersion1(path);
    const auto size = std::filesystem::file_size(path);
    const auto time = std::filesystem::last_write_time(path);
    {
        auto session = Session::open(path);
        ASSERT_TRUE(session) << session.error().what;
        expectVersion1Content(*session);
    }
    EXPECT_EQ(std::filesystem::file_size(path), size);
    EXPECT_EQ(std::filesystem::last_write_time(path), time);
    EXPECT_EQ(Database(path, 1).pragma("user_version"), 1);
}

TEST(SessionMigration, Version1IsBroughtUpWhenOpenForWriting) {
    test::TemporaryFolder folder;
    const std::string path = folder / "old.hws";
    makeVersion1(path);
    for (int time = 0; time < 2; ++time) {
        auto session = SessionWriter::open(path);
        ASSERT_TRUE(session) << session.error().what;
        expectVersion1Content(*session);
        EXPECT_EQ(databaseOf(*session).pragma("user_version"), kSessionSchemaVersion);
        SessionWriter fresh = SessionWriter::inMemory();
        EXPECT_EQ(columns(databaseOf(*session)), columns(databaseOf(fresh)));
        EXPECT_EQ(databaseOf(fresh).pragma("user_version"), kSessionSchemaVersion);
    }
}

TEST(SessionMigration, AFailureLeavesTheOldFile) {
    test::TemporaryFolder folder;
    const std::string path = folder / "old.hws";
    makeVersion1(path);
    Database(path, kMayCreate).execute("DROP TABLE memory_events");
    EXPECT_FALSE(SessionWriter::open(path));
    Database left(path, 1);
    EXPECT_EQ(left.pragma("user_version"), 1);
    EXPECT_FALSE(Statement(left, "SELECT begin_seq FROM series_buckets").step());
}

std::string frozen(int version) {
    return SOURCE_FOLDER "/tests/frozen/version" + std::to_string(version) + ".hws";
}

/// What the program of then said of its last step.
struct Frozen {
    std::size_t ops;
    std::size_t plans;
};
constexpr Frozen kFrozen[] = {{53, 0}, {51, 1}, {51, 1}};

TEST(SessionVersions, EachHasASessionThatIsRead) {
    ASSERT_EQ(std::size(kFrozen), static_cast<std::size_t>(kSessionSchemaVersion))
        << "keep one that the version before has recorded (tests/frozen/README.md)";
    for (int version = 1; version <= kSessionSchemaVersion; ++version) {
        SCOPED_TRACE(frozen(version));
        EXPECT_EQ(Database(frozen(version), 1).pragma("user_version"), version);
        const auto session = Session::open(frozen(version));
        ASSERT_TRUE(session) << session.error().what;
        EXPECT_EQ(session->steps()->size(), 2u);
        EXPECT_EQ(session->plans()->size(), kFrozen[version - 1].plans);
        const auto graph = loadGraph(*session, 1);
        ASSERT_TRUE(graph) << graph.error().what;
        EXPECT_EQ(graph->ops.size(), kFrozen[version - 1].ops);
        EXPECT_EQ(evaluate(*graph, baselineSchedule(*graph)).peak, Bytes(3896));
        EXPECT_EQ(Database(frozen(version), 1).pragma("user_version"), version);
    }
}

TEST(SessionVersions, EachBecomesThePresentOneWhenItIsWritten) {
    test::TemporaryFolder folder;
    SessionWriter fresh = SessionWriter::inMemory();
    for (int version = 1; version <= kSessionSchemaVersion; ++version) {
        SCOPED_TRACE(version);
        const std::string path = folder / (std::to_string(version) + ".hws");
        std::filesystem::copy_file(frozen(version), path);
        auto session = SessionWriter::open(path);
        ASSERT_TRUE(session) << session.error().what;
        EXPECT_EQ(columns(databaseOf(*session)), columns(databaseOf(fresh)));
        EXPECT_EQ(databaseOf(*session).pragma("user_version"), kSessionSchemaVersion);
        EXPECT_EQ(loadGraph(*session, 1)->ops.size(), kFrozen[version - 1].ops);
    }
}

// Tables and columns are what a program of another version reads.
TEST(SessionVersions, TheSchemaIsTheOneOfItsVersion) {
    SessionWriter fresh = SessionWriter::inMemory();
    Digest digest;
    digest.add(std::string_view(columns(databaseOf(fresh))));
    EXPECT_EQ(digest.hex(), "847289d5645567b565eb7f2e57721519ba566b0e5a61b5892e2d82c8fe724181")
        << "the schema has changed: raise user_version and kSessionSchemaVersion, migrate, keep a "
           "session of the version before (tests/frozen/README.md), then put the new digest here";
}

}  // namespace
}  // namespace hw::core
