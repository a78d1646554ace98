// SPDX-License-Identifier: MIT
// A session may come from anybody: what it holds is looked at, nothing of it runs.
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/base/utf8.h"
#include "core/session/access.h"
#include "core/session/call_stacks.h"
#include "core/session/session_writer.h"
#include "tests/unit/step_rows.h"
#include "tests/unit/test_data.h"

namespace hw::core {
namespace {

class UntrustedSession : public testing::Test {
protected:
    void SetUp() override {
        auto session = SessionWriter::create(path());
        ASSERT_TRUE(session) << session.error().what;
        ASSERT_TRUE(session->insert(LayerRow{0, {}, "(root)", ""}));
        ASSERT_TRUE(session->insert(LayerRow{1, 0, "a", ""}));
        ASSERT_TRUE(test::writeSmallStep(*session, 0));
    }

    std::string path() const { return folder_ / "s.hws"; }

    void change(const std::string& sql) const {
        sqlite3* database = nullptr;
        ASSERT_EQ(sqlite3_open(path().c_str(), &database), SQLITE_OK);
        char* error = nullptr;
        EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, &error), SQLITE_OK)
            << error << "\n"
            << sql;
        sqlite3_close(database);
    }

    /// The error that it is opened with, in both ways.
    void expectRefused(const std::string& words) const {
        const auto read = Session::open(path());
        ASSERT_FALSE(read);
        EXPECT_NE(read.error().what.find(words), std::string::npos) << read.error().what;
        EXPECT_EQ(read.error().code, ErrorCode::BadInput);
        const auto written = SessionWriter::open(path());
        ASSERT_FALSE(written);
        EXPECT_EQ(written.error().what, read.error().what);
    }

    test::TemporaryFolder folder_;
};

TEST_F(UntrustedSession, IsRefusedWithAView) {
    change(
        "ALTER TABLE steps RENAME TO kept;"
        "CREATE VIEW steps AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)"
        " SELECT kept.* FROM kept, n");
    expectRefused("holds the view 'steps', which no session has");
}

TEST_F(UntrustedSession, IsRefusedWithATrigger) {
    change("CREATE TRIGGER t AFTER INSERT ON plans BEGIN DELETE FROM ops; END");
    expectRefused("the trigger 't'");
}

TEST_F(UntrustedSession, IsRefusedWithAGeneratedColumn) {
    change("CREATE TABLE z(a, b GENERATED ALWAYS AS (hex(zeroblob(a))) VIRTUAL)");
    expectRefused("the generated column 'b' of the table 'z'");
}

/// As text of the file itself, where no statement would put it.
std::string rewritten(const std::string& what, const std::string& by, const std::string& table) {
    return "PRAGMA writable_schema=ON; UPDATE sqlite_master SET sql = replace(sql, '" + what +
           "', '" + by + "') WHERE name = '" + table + "'";
}

TEST_F(UntrustedSession, IsRefusedWithAVirtualTableHoweverItIsWritten) {
    change("CREATE VIRTUAL TABLE z USING rtree(id, a, b)");
    expectRefused("the virtual table 'z'");
    change(rewritten("CREATE VIRTUAL", "CREATE/**/VIRTUAL", "z"));
    expectRefused("the virtual table 'z'");
}

TEST_F(UntrustedSession, IsRefusedWhereItSaysThatWhatIsWrittenIsLost) {
    change(rewritten("document TEXT NOT NULL",
                     "document TEXT NOT NULL, z INT NOT NULL ON CONFLICT IGNORE DEFAULT NULL",
                     "plans"));
    expectRefused("a conflict clause in 'plans'");
}

TEST_F(UntrustedSession, IsRefusedWithADefaultThatComputes) {
    change("CREATE TABLE z(a, b TEXT DEFAULT (hex(zeroblob(450000000))))");
    expectRefused("the computed default of 'b' in the table 'z'");
}

TEST_F(UntrustedSession, ItsNamesAreLinesThatEnd) {
    change(
        "UPDATE layers SET path = replace(hex(zeroblob(1000000)), '0', 'x') || char(10) WHERE id = "
        "1;"
        "UPDATE ops SET name = 'a' || char(10) || 'highwater: saved' || char(8238)");
    auto session = Session::open(path());
    ASSERT_TRUE(session) << session.error().what;
    const auto graph = loadGraph(*session, 0);
    ASSERT_TRUE(graph) << graph.error().what;
    for (const Op& op : graph->ops) EXPECT_EQ(op.name, "a?highwater: saved?");
    for (const Layer& layer : graph->layers) EXPECT_LE(layer.path.size(), kLongestName + 3);
}

TEST_F(UntrustedSession, IsRefusedWithAnIndexThatComputes) {
    change("CREATE INDEX i ON ops(hex(zeroblob(id)))");
    expectRefused("the index 'i' on an expression");
}

TEST_F(UntrustedSession, ChecksOfItsTablesAreNotRun) {
    change(
        "CREATE TABLE z(a CHECK (length(hex(zeroblob(a))) > 0)); INSERT INTO z VALUES(4);"
        "PRAGMA ignore_check_constraints = ON; INSERT INTO z VALUES(600000000)");
    EXPECT_TRUE(Session::open(path()));  // the check would need more than SQLite allows for a text
}

TEST_F(UntrustedSession, LayersThatLeadInACircleAreSaid) {
    change("UPDATE layers SET parent = 1");
    const auto session = Session::open(path());
    ASSERT_TRUE(session);
    const auto layers = session->layers();
    ASSERT_FALSE(layers);
    EXPECT_NE(layers.error().what.find("its layers lead in a circle"), std::string::npos);
    const auto graph = loadGraph(*session, 0);
    ASSERT_FALSE(graph);
    EXPECT_NE(graph.error().what.find("its layers lead in a circle"), std::string::npos);
}

TEST_F(UntrustedSession, CallStacksThatLeadInACircleAreSaid) {
    change(
        "INSERT INTO source_frames VALUES(0, 'a.py', 'f', 1, 0);"
        "INSERT INTO stacks VALUES(0, NULL, 0), (1, 2, 0), (2, 1, 0)");
    const auto session = Session::open(path());
    ASSERT_TRUE(session);
    const auto stacks = CallStacks::load(*session);
    ASSERT_FALSE(stacks);
    EXPECT_NE(stacks.error().what.find("its call stacks lead in a circle"), std::string::npos);
}

TEST_F(UntrustedSession, WorkIsLimitedByTheSizeOfTheFile) {
    auto session = Session::open(path());
    ASSERT_TRUE(session);
    Statement endless(databaseOf(*session),
                      "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)"
                      " SELECT max(x) FROM n");
    try {
        endless.step();
        FAIL();
    } catch (const DatabaseError& error) {
        EXPECT_EQ(error.code & 0xff, SQLITE_INTERRUPT);
    }
}

TEST_F(UntrustedSession, ALockIsNamedAndNoDamage) {
    int ready[2], over[2];
    ASSERT_EQ(pipe(ready), 0);
    ASSERT_EQ(pipe(over), 0);
    const pid_t holder = fork();
    ASSERT_GE(holder, 0);
    if (holder == 0) {
        sqlite3* database = nullptr;
        sqlite3_open(path().c_str(), &database);
        const bool locked =
            sqlite3_exec(database, "BEGIN EXCLUSIVE", nullptr, nullptr, nullptr) == SQLITE_OK;
        char byte = locked ? 'y' : 'n';
        if (write(ready[1], &byte, 1) != 1 || read(over[0], &byte, 1) != 1) _exit(1);
        _exit(0);
    }
    char byte = 0;
    ASSERT_EQ(read(ready[0], &byte, 1), 1);
    ASSERT_EQ(byte, 'y');
    const auto session = Session::open(path());
    ASSERT_FALSE(session);
    EXPECT_NE(session.error().what.find("is locked by another process (" + std::to_string(holder)),
              std::string::npos)
        << session.error().what;
    ASSERT_EQ(write(over[1], &byte, 1), 1);
    waitpid(holder, nullptr, 0);
    EXPECT_TRUE(Session::open(path()));
}

TEST_F(UntrustedSession, WhatIsWrittenToAFileThatIsGoneIsNotSaved) {
    for (const bool replaced : {false, true}) {
        const std::string gone = folder_ / (replaced ? "replaced.hws" : "removed.hws");
        auto session = SessionWriter::create(gone);
        ASSERT_TRUE(session);
        ASSERT_TRUE(session->begin());
        ASSERT_TRUE(session->commit());
        std::filesystem::remove(gone);
        if (replaced) std::ofstream(gone) << "another file";
        ASSERT_TRUE(session->begin());
        const Status saved = session->commit();
        ASSERT_FALSE(saved);
        EXPECT_EQ(saved.error().code, ErrorCode::Internal);
        EXPECT_NE(saved.error().what.find("was removed or replaced while it was written"),
                  std::string::npos);
    }
}

}  // namespace
}  // namespace hw::core
