// SPDX-License-Identifier: MIT
// The expected figures of the samples come from Python's own pickle.
#include "core/import/torch_snapshot.h"

#include <fstream>
#include <utility>
#include <vector>

#include "core/session/call_stacks.h"
#include "core/session/origins.h"
#include "tests/unit/expected.h"

namespace hw::core {
namespace {

using test::figure;
using test::hasGap;

// --- pickles of the first protocol, by hand

std::string num(std::int64_t value) {
    return "I" + std::to_string(value) + "\n";
}
std::string str(const std::string& text) {
    return "V" + text + "\n";
}
std::string list(const std::vector<std::string>& items) {
    std::string text = "(";
    for (const std::string& item : items) text += item;
    return text + "l";
}
std::string dict(const std::vector<std::pair<std::string, std::string>>& pairs) {
    std::string text = "(";
    for (const auto& [key, value] : pairs) text += str(key) + value;
    return text + "d";
}
std::string block(std::int64_t size, const std::string& state,
                  const std::vector<std::pair<std::string, std::string>>& more = {}) {
    std::vector<std::pair<std::string, std::string>> pairs{{"size", num(size)},
                                                           {"state", str(state)}};
    pairs.insert(pairs.end(), more.begin(), more.end());
    return dict(pairs);
}
std::string segment(int device, const std::vector<std::string>& blocks, std::int64_t total) {
    return dict({{"device", num(device)},
                 {"address", "L9223372036854775808L\n"},
                 {"total_size", num(total)},
                 {"blocks", list(blocks)}});
}
std::string event(const std::string& action, std::int64_t address, std::int64_t size,
                  std::int64_t timeUs = -1) {
    std::vector<std::pair<std::string, std::string>> pairs{
        {"action", str(action)}, {"addr", num(address)}, {"size", num(size)}};
    if (timeUs >= 0) pairs.emplace_back("time_us", num(timeUs));
    return dict(pairs);
}

class TorchSnapshot : public testing::Test {
protected:
    Result<Session> import(const std::string& pickle) {
        std::ofstream(folder_ / "s.pickle", std::ios::binary) << pickle << ".";
        return openAny(folder_ / "s.pickle");
    }
    void refused(const std::string& pickle, const std::string& why) {
        const auto session = import(pickle);
        ASSERT_FALSE(session) << why;
        EXPECT_EQ(session.error().code, ErrorCode::BadInput);
        EXPECT_NE(session.error().what.find(why), std::string::npos) << session.error().what;
    }
    test::TemporaryFolder folder_;
};

/// Of the public files; those of the samples lie beside them.
nlohmann::json figuresOf(const std::string& file) {
    if (test::dataName(file).starts_with("Samples")) return test::expectedOf(file);
    nlohmann::json figures{{"allocs", 2899},
                           {"frees_requested", 2574},
                           {"frees_completed", 2574},
                           {"storages", 2899 + 320},
                           {"freed_storages", 2574},
                           {"allocated_begin", 94326992},
                           {"allocated_peak", 597327488},
                           {"allocated_end", 408384288},
                           {"last_time", 0}};
    if (file.ends_with("empty-cache.pickle.gz"))
        figures.update(
            {{"layers", 244}, {"reserved_peak", 662700032}, {"reserved_end", 509607936}});
    else if (file.ends_with("expandable.pickle.gz"))
        figures.update(
            {{"layers", 242}, {"reserved_peak", 643825664}, {"reserved_end", 643825664}});
    else
        figures = {{"allocs", 6526},
                   {"frees_requested", 6305},
                   {"frees_completed", 6305},
                   {"storages", 6526 + 226},
                   {"freed_storages", 5867},
                   {"allocated_begin", 5095321600},
                   {"allocated_peak", 7013335044},
                   {"allocated_end", 6808535044},
                   {"reserved_peak", 7235174400},
                   {"reserved_end", 7235174400},
                   {"last_time", 1783874496022988000}};
    return figures;
}

class SnapshotFile : public testing::TestWithParam<std::string> {};

TEST_P(SnapshotFile, HasTheCountsOfPythonsReader) {
    auto session = openAny(GetParam());
    ASSERT_TRUE(session) << session.error().what;
    const nlohmann::json expected = figuresOf(GetParam());
    test::expectFigures(
        *session, expected,
        {{"allocs", "SELECT count(*) FROM memory_events WHERE kind = 'alloc'"},
         {"frees_requested", "SELECT count(*) FROM memory_events WHERE kind = 'free_requested'"},
         {"frees_completed", "SELECT count(*) FROM memory_events WHERE kind = 'free_completed'"},
         {"freed_storages", "SELECT count(*) FROM storages WHERE free_seq IS NOT NULL"},
         {"allocated_begin", "SELECT allocated_bytes FROM memory_events WHERE id = 0"},
         {"allocated_peak", "SELECT max(allocated_bytes) FROM memory_events"},
         {"reserved_peak", "SELECT max(reserved_bytes) FROM memory_events"},
         {"allocated_end",  // the requested sizes of the blocks in use
          "SELECT allocated_bytes FROM memory_events ORDER BY id DESC LIMIT 1"},
         {"reserved_end", "SELECT reserved_bytes FROM memory_events ORDER BY id DESC LIMIT 1"},
         {"last_time", "SELECT max(time_ns) FROM memory_events"}});
    EXPECT_EQ(figure(*session, "SELECT count(*) FROM memory_events WHERE kind = 'initial'"), 1);
    const auto counts = session->counts();
    EXPECT_EQ(counts->storages, expected["storages"].get<std::int64_t>())
        << "allocated in the history, or before it and in use";
    if (expected.contains("layers")) {
        EXPECT_EQ(counts->layers, expected["layers"].get<std::int64_t>());
    }
    for (const char* gap : {"ops", "start", "rounding"}) EXPECT_TRUE(hasGap(*session, gap)) << gap;
    EXPECT_EQ(hasGap(*session, "times"), expected["last_time"] == 0);
}
INSTANTIATE_TEST_SUITE_P(
    Data, SnapshotFile,
    testing::ValuesIn(test::dataFiles({"torch-snapshot/before-history.pickle.gz",
                                       "torch-snapshot/empty-cache.pickle.gz",
                                       "torch-snapshot/expandable.pickle.gz"})),
    test::dataNameOf);

TEST_F(TorchSnapshot, DevicesAreMergedByTime) {
    const auto session = import(
        dict({{"segments", list({segment(0, {block(100, "active_allocated")}, 4096),
                                 segment(1, {block(70, "inactive")}, 8192)})},
              {"device_traces",
               list({list({event("segment_alloc", 1, 4096, 10), event("alloc", 1, 60, 30)}),
                     list({event("alloc", 9, 70, 20), event("free_requested", 9, 70, 40)})})}}));
    ASSERT_TRUE(session) << session.error().what;
    const Session& imported = *session;
    EXPECT_EQ(figure(imported, "SELECT count(*) FROM devices"), 2);
    EXPECT_EQ(test::text(imported,
                         "SELECT group_concat(time_ns) FROM (SELECT time_ns FROM "
                         "memory_events WHERE kind <> 'initial' ORDER BY id)"),
              "10000,20000,30000,40000");
    EXPECT_EQ(test::text(imported,
                         "SELECT group_concat(reserved_bytes) FROM (SELECT * FROM "
                         "memory_events WHERE device = 0 ORDER BY id)"),
              "0,4096,4096");
    EXPECT_EQ(test::text(imported,
                         "SELECT group_concat(allocated_bytes) FROM (SELECT * FROM "
                         "memory_events WHERE device = 1 ORDER BY id)"),
              "0,70,0");
    EXPECT_FALSE(hasGap(imported, "times"));
}

TEST_F(TorchSnapshot, OldFormHasSegmentsOnlyAndHistories) {
    auto session = import(list(
        {segment(0,
                 {block(512, "active_allocated",
                        {{"history", list({dict({{"addr", num(4)}, {"real_size", num(500)}})})}}),
                  block(1024, "inactive"), block(256, "active_allocated")},
                 2048)}));
    ASSERT_TRUE(session) << session.error().what;
    EXPECT_EQ(figure(*session, "SELECT count(*) FROM memory_events WHERE kind = 'block'"), 2);
    EXPECT_EQ(figure(*session, "SELECT max(allocated_bytes) FROM memory_events"), 768);
    EXPECT_EQ(figure(*session, "SELECT address FROM storages WHERE id = 1"), INT64_MIN + 1536)
        << "a block of an old snapshot follows the one before it; addresses are unsigned";
    EXPECT_TRUE(hasGap(*session, "history"));
    EXPECT_FALSE(hasGap(*session, "times"));
}

TEST_F(TorchSnapshot, CallStacksTellTheLineOfAnAllocation) {
    const auto frame = [](const char* file, int line, const char* name) {
        return dict({{"filename", str(file)}, {"line", num(line)}, {"name", str(name)}});
    };
    const std::string frames = list(
        {frame("??", 0, "at::empty"), frame("/x/site-packages/torch/nn/linear.py", 114, "forward"),
         frame("/home/me/model.py", 31, "forward"), frame("/home/me/train.py", 7, "<module>")});
    const auto session = import(list({segment(
        0, {block(512, "active_allocated", {{"frames", frames}}), block(100, "active_allocated")},
        2048)}));
    ASSERT_TRUE(session) << session.error().what;
    const auto stacks = CallStacks::load(*session);
    ASSERT_TRUE(stacks) << stacks.error().what;
    ASSERT_EQ(stacks->frames(stacks->ofStorage(0)).size(), 4u);
    EXPECT_EQ(stacks->frames(stacks->ofStorage(0)).front()->function, "<module>");
    EXPECT_EQ(frameText(*stacks->line(stacks->ofStorage(0))), "model.py:31 forward");
    const auto recorded = loadRecordedMemory(*session);
    ASSERT_TRUE(recorded) << recorded.error().what;
    const auto groups =
        originsBy(OriginKey::Line, recorded->graph, *stacks, originsAtPeak(*recorded, *stacks), {});
    ASSERT_EQ(groups.size(), 2u);
    EXPECT_EQ(groups[0].name, "model.py:31 forward");
    EXPECT_EQ(groups[0].peak, Bytes(512));
    EXPECT_EQ(groups[1].peak, Bytes(100)) << "no stack is known";
    EXPECT_EQ(groups[1].frame, nullptr);
}

TEST_F(TorchSnapshot, HasNoOpsToPlan) {
    auto session = import(list({segment(0, {block(512, "active_allocated")}, 2048)}));
    ASSERT_TRUE(session) << session.error().what;
    const auto step = session->lastStep();
    ASSERT_FALSE(step);
    EXPECT_EQ(step.error().code, ErrorCode::BadInput);
    EXPECT_NE(step.error().what.find("no ops to plan"), std::string::npos) << step.error().what;
}

TEST_F(TorchSnapshot, RefusesWhatIsNoSnapshot) {
    refused("N", "no snapshot");
    refused(list({}), "no segment and no event");
    refused(dict({{"weights", num(1)}}), "no segments");
    refused(dict({{"segments", num(1)}}), "no list");
    refused(list({num(1)}), "no dict");
    refused(list({segment(-1, {}, 1)}), "number -1");
    refused(list({segment(0, {}, -1)}), "negative");
    refused(list({segment(0, {block(1, "x"), num(3)}, 1)}), "no dict");
    refused(list({segment(0, {}, INT64_MAX), segment(0, {}, INT64_MAX)}), "too much");
    refused("(dVdevice_traces\n((lp1\ng1\nls", "several places");
    refused(dict({{"device_traces", list({list({event("alloc", 1, -5)})})}}), "negative");
    refused(dict({{"device_traces", list({list({dict({})})})}}), "no action");
    refused(dict({{"device_traces", list({list({event("alloc", 1, 5, INT64_MAX)})})}}), "large");
}

}  // namespace
}  // namespace hw::core
