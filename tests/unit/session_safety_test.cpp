// SPDX-License-Identifier: MIT
// What a session file survives: old versions, kills, damage, readers beside the writer.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <thread>

#include "core/memory/evaluate.h"
#include "core/session/access.h"
#include "core/session/session_writer.h"
#include "tests/unit/step_rows.h"
#include "tests/unit/test_data.h"

namespace hw::core {
namespace {

constexpr int kReadWriteCreate = 6;  // SQLite's flags

enum class Opened { ToRead, ToWrite };

Result<Session> openAs(Opened opened, const std::string& path) {
    if (opened == Opened::ToRead) return Session::open(path);
    auto writer = SessionWriter::open(path);
    if (!writer) return writer.error();
    return std::move(*writer);
}

/// All that reading may leave another way: the bytes, the time, and the files beside it.
std::string stateOf(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::string text((std::istreambuf_iterator<char>(file)), {});
    text +=
        "\n" + std::to_string(std::filesystem::last_write_time(path).time_since_epoch().count());
    std::set<std::string> beside;
    for (const auto& entry :
         std::filesystem::directory_iterator(std::filesystem::path(path).parent_path()))
        beside.insert(entry.path().filename().string());
    for (const std::string& name : beside) text += "\n" + name;
    return text;
}

void readAll(const std::string& path) {
    const auto session = Session::open(path);
    ASSERT_TRUE(session) << session.error().what;
    EXPECT_TRUE(loadGraph(*session, 0));
    EXPECT_TRUE(session->counts());
    EXPECT_TRUE(session->memoryEvents());
    EXPECT_TRUE(session->series());
    EXPECT_TRUE(session->plans());
}

TEST(SessionSafety, ReadingLeavesTheFileAsItIs) {
    test::TemporaryFolder folder;
    const std::string path = folder / "a#b?%20.hws";
    {
        auto session = SessionWriter::create(path);
        ASSERT_TRUE(session);
        for (std::int64_t id = 0; id < 3; ++id) ASSERT_TRUE(test::writeSmallStep(*session, id));
    }
    const std::string before = stateOf(path);
    readAll(path);
    EXPECT_TRUE(stateOf(path) == before);
}

TEST(SessionSafety, ReadingWhatAKilledWriterLeftChangesNothing) {
    test::TemporaryFolder folder, moved;
    const std::string path = folder / "s.hws", alone = moved / "a#b?%20.hws";
    auto session = SessionWriter::create(path);
    ASSERT_TRUE(session);
    ASSERT_TRUE(test::writeSmallStep(*session, 0));
    databaseOf(*session).execute("PRAGMA wal_checkpoint(TRUNCATE)");
    std::filesystem::copy(path, alone);  // without its WAL, which holds nothing any more
    const std::string before = stateOf(alone);
    readAll(alone);
    EXPECT_TRUE(stateOf(alone) == before) << "no -wal and no -shm are left beside it";
}

TEST(SessionSafety, AWriterThatIsDoneIsReadOn) {
    test::TemporaryFolder folder;
    auto writer = SessionWriter::create(folder / "s.hws");
    ASSERT_TRUE(writer);
    ASSERT_TRUE(test::writeSmallStep(*writer, 0));
    const std::size_t before = writer->memoryEvents()->size();
    MemoryEventRow event;
    event.kind = "alloc", event.bytes = Bytes(512);
    ASSERT_TRUE(writer->insert(event));
    const Session session = std::move(*writer);
    EXPECT_EQ(session.memoryEvents()->size(), before + 1) << "what it had gathered";
    EXPECT_EQ(session.path(), folder / "s.hws");
    EXPECT_FALSE(std::filesystem::exists(folder / "s.hws-wal"));
    EXPECT_EQ(Session::open(folder / "s.hws")->memoryEvents()->size(), before + 1);
}

TEST(SessionSafety, TwoReadersReadWhileTheWriterWrites) {
    test::TemporaryFolder folder;
    const std::string path = folder / "s.hws";
    auto writer = SessionWriter::create(path);
    ASSERT_TRUE(writer);
    ASSERT_TRUE(writer->begin());
    ASSERT_TRUE(test::writeSmallStep(*writer, 0));
    ASSERT_TRUE(writer->commit());
    std::atomic<bool> done = false;
    std::atomic<int> faults = 0;
    std::vector<std::thread> readers;
    for (int i = 0; i < 2; ++i)
        readers.emplace_back([&] {
            std::size_t seen = 0;
            do {
                auto session = Session::open(path);
                const auto steps = session ? session->steps() : session.error();
                if (!steps || steps->size() < std::max<std::size_t>(seen, 1) ||
                    !loadGraph(*session, steps->back().id) || !session->window(1, 0, 1000000, 100))
                    ++faults;
                else
                    seen = steps->size();
            } while (!done);
        });
    for (std::int64_t id = 1; id < 200; ++id) {
        ASSERT_TRUE(writer->begin());
        const Status step = test::writeSmallStep(*writer, id);
        ASSERT_TRUE(step) << step.error().what;
        const Status committed = writer->commit();
        ASSERT_TRUE(committed) << committed.error().what;
    }
    done = true;
    for (std::thread& reader : readers) reader.join();
    EXPECT_EQ(faults, 0);
    *writer = SessionWriter::inMemory();
    EXPECT_FALSE(std::filesystem::exists(path + "-wal")) << "one file remains";
    EXPECT_EQ(Session::open(path)->steps()->size(), 200u);
}

/// Writes steps and memory events until it is killed, and tells of each finished step.
[[noreturn]] void writeUntilKilled(const std::string& path, int tell) {
    auto session = SessionWriter::create(path);
    if (!session) _exit(1);
    MemoryEventRow event;
    event.kind = "alloc";
    for (std::int64_t id = 0;; ++id) {
        if (!session->begin()) _exit(2);
        if (!test::writeSmallStep(*session, id)) _exit(3);
        for (int i = 0; i < 300; ++i) {
            event.timeNs += 7, event.bytes = Bytes(i % 2 == 0 ? 512 : -512);
            if (!session->insert(event)) _exit(4);
        }
        if (!session->commit()) _exit(5);
        if (::write(tell, &id, sizeof id) != sizeof id) _exit(6);
    }
}

TEST(SessionSafety, AKilledWriterLeavesEveryFinishedStep) {
    const char* wanted = std::getenv("HIGHWATER_KILLS");
    const int kills = wanted != nullptr ? std::atoi(wanted) : 20;
    std::mt19937 random(std::random_device{}());
    for (int kill = 0; kill < kills; ++kill) {
        test::TemporaryFolder folder;
        const std::string path = folder / "s.hws";
        int pipe[2];
        ASSERT_EQ(::pipe(pipe), 0);
        const pid_t child = fork();
        ASSERT_GE(child, 0);
        if (child == 0) writeUntilKilled(path, pipe[1]);
        ::close(pipe[1]);
        std::int64_t last = -1;
        ASSERT_EQ(::read(pipe[0], &last, sizeof last), static_cast<ssize_t>(sizeof last));
        ::usleep(random() % 60000);
        ::kill(child, SIGKILL);
        int status = 0;
        ::waitpid(child, &status, 0);
        ASSERT_TRUE(WIFSIGNALED(status)) << "the writer failed with " << WEXITSTATUS(status);
        while (::read(pipe[0], &last, sizeof last) == static_cast<ssize_t>(sizeof last)) continue;
        ::close(pipe[0]);

        auto session = openAs(kill % 2 == 0 ? Opened::ToRead : Opened::ToWrite, path);
        ASSERT_TRUE(session) << session.error().what;
        const auto steps = session->steps();
        ASSERT_TRUE(steps) << steps.error().what;
        const auto count = static_cast<std::int64_t>(steps->size());
        EXPECT_GE(count, last + 1) << "a finished step is lost";
        EXPECT_LE(count, last + 2);
        for (std::int64_t id = 0; id < count; ++id) {
            const auto graph = loadGraph(*session, id);
            ASSERT_TRUE(graph) << graph.error().what;
        }
        const auto events = session->memoryEvents();
        ASSERT_TRUE(events) << events.error().what;
        EXPECT_EQ(static_cast<std::int64_t>(events->size()), count * 300);
        EXPECT_EQ(session->counts()->ops, count * 2) << "nothing of an unfinished step is there";
        const auto series = session->series();
        ASSERT_TRUE(series);
        for (const SeriesRow& row : *series) {
            if (row.key.name == "device 0 allocated") {
                EXPECT_EQ(row.samples, count * 300);
            }
        }
    }
}

TEST(SessionSafety, ADamagedIndexIsRebuilt) {
    for (const Opened opened : {Opened::ToRead, Opened::ToWrite}) {
        test::TemporaryFolder folder;
        const std::string path = folder / "s.hws";
        {
            auto session = SessionWriter::create(path);
            ASSERT_TRUE(session);
            for (std::int64_t id = 0; id < 3; ++id) ASSERT_TRUE(test::writeSmallStep(*session, id));
        }
        std::int64_t page = 0, pageSize = 0;
        {
            Database file(path, kReadWriteCreate);
            pageSize = file.pragma("page_size");
            Statement root(file, "SELECT rootpage FROM sqlite_master WHERE name = 'storages_free'");
            ASSERT_TRUE(root.step());
            page = root.integer(0);
        }
        {  // an empty leaf of an index in its place
            std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
            file.seekp((page - 1) * pageSize);
            const char empty[] = {10, 0, 0, 0, 0, static_cast<char>(pageSize >> 8), 0, 0};
            file.write(empty, sizeof empty);
        }
        auto session = openAs(opened, path);
        ASSERT_TRUE(session) << session.error().what;
        EXPECT_TRUE(loadGraph(*session, 2));
        Statement entries(databaseOf(*session),
                          "SELECT count(*) FROM storages INDEXED BY storages_free"
                          " WHERE free_seq > 0");
        ASSERT_TRUE(entries.step());
        EXPECT_EQ(entries.integer(0), 9);
    }
}

// A finding of the session fuzzer: SQLite cites the SQL of a damaged schema, line breaks and all.
TEST(SessionSafety, ADamagedSchemaIsToldInOneLine) {
    test::TemporaryFolder folder;
    const std::string path = folder / "s.hws";
    ASSERT_TRUE(SessionWriter::create(path));
    std::string bytes;
    {
        std::ifstream in(path, std::ios::binary);
        bytes.assign(std::istreambuf_iterator<char>(in), {});
    }
    const std::size_t at = bytes.find("step INTEGER, begin_ns INTEGER");
    ASSERT_NE(at, std::string::npos);
    bytes[at] = '`';
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
    const auto opened = Session::open(path);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, ErrorCode::BadInput);
    EXPECT_EQ(opened.error().what.find('\n'), std::string::npos) << opened.error().what;
}

TEST(SessionSafety, WhatIsLostIsNamed) {
    test::TemporaryFolder folder;
    const std::string path = folder / "s.hws";
    {
        auto session = SessionWriter::create(path);
        ASSERT_TRUE(session);
        ASSERT_TRUE(session->begin());
        for (std::int64_t id = 0; id < 400; ++id) ASSERT_TRUE(test::writeSmallStep(*session, id));
        ASSERT_TRUE(session->commit());
    }
    std::int64_t page = 0, pageSize = 0;
    {
        Database file(path, kReadWriteCreate);
        pageSize = file.pragma("page_size");
        // The page of ops that holds the rows of step 200.
        Statement root(file, "SELECT rootpage FROM sqlite_master WHERE name = 'ops'");
        ASSERT_TRUE(root.step());
        page = root.integer(0);
    }
    {
        std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
        // The root is an interior page: its fourth child is overwritten.
        std::vector<unsigned char> content(static_cast<std::size_t>(pageSize));
        file.seekg((page - 1) * pageSize);
        file.read(reinterpret_cast<char*>(content.data()), pageSize);
        ASSERT_EQ(content[0], 5) << "an interior page";
        const std::size_t cell = content[12 + 6] << 8 | content[12 + 7];
        const std::int64_t child = content[cell] << 24 | content[cell + 1] << 16 |
                                   content[cell + 2] << 8 | content[cell + 3];
        file.seekp((child - 1) * pageSize);
        const std::string noise(static_cast<std::size_t>(pageSize), '\x7f');
        file.write(noise.data(), pageSize);
    }
    const auto opened = Session::open(path);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, ErrorCode::BadInput);
    EXPECT_NE(opened.error().what.find("ops after row"), std::string::npos) << opened.error().what;
    EXPECT_NE(opened.error().what.find("of 400 steps those from"), std::string::npos)
        << opened.error().what;
}

}  // namespace
}  // namespace hw::core
