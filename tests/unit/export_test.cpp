// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>

#include "core/export/checkpoint_plan.h"
#include "core/export/csv.h"
#include "core/export/perfetto.h"
#include "core/import/allocation_csv.h"
#include "core/memory/evaluate.h"
#include "core/memory/held_by_plan.h"
#include "core/memory/rebuild.h"
#include "core/session/access.h"
#include "planners/checkpoints/choose_checkpoints.h"
#include "planners/checkpoints/forecast.h"
#include "tests/unit/step_rows.h"
#include "tests/unit/test_data.h"

namespace hw::core {
namespace {

std::string textOf(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

/// A decoded protobuf message: numbers and texts by field, in order.
struct Message {
    std::multimap<std::uint32_t, std::uint64_t> numbers;
    std::multimap<std::uint32_t, std::string> texts;

    std::uint64_t number(std::uint32_t field) const {
        const auto at = numbers.find(field);
        return at == numbers.end() ? 0 : at->second;
    }
    std::string text(std::uint32_t field) const {
        const auto at = texts.find(field);
        return at == texts.end() ? "" : at->second;
    }
    Message message(std::uint32_t field) const { return parse(text(field)); }

    static Message parse(const std::string& bytes) {
        Message result;
        std::size_t at = 0;
        const auto varint = [&] {
            std::uint64_t value = 0;
            for (unsigned shift = 0; at < bytes.size(); shift += 7) {
                const auto byte = static_cast<unsigned char>(bytes[at++]);
                value |= std::uint64_t{byte & 0x7fu} << shift;
                if (byte < 0x80) return value;
            }
            ADD_FAILURE() << "cut short";
            return value;
        };
        while (at < bytes.size()) {
            const std::uint64_t key = varint();
            const auto field = static_cast<std::uint32_t>(key >> 3);
            if ((key & 7) == 0) {
                result.numbers.emplace(field, varint());
            } else {
                EXPECT_EQ(key & 7, 2u);
                const std::uint64_t size = varint();
                EXPECT_LE(at + size, bytes.size());
                result.texts.emplace(field, bytes.substr(at, size));
                at += size;
            }
        }
        return result;
    }
};

// Field numbers of Perfetto's protos, written down a second time.
TEST(Export, PerfettoHasSlicesAndCounters) {
    test::TemporaryFolder folder;
    SessionWriter session = SessionWriter::inMemory();
    ASSERT_TRUE(session.insert(LayerRow{1, {}, "block.0", "Linear"}));
    ASSERT_TRUE(test::writeSmallStep(session, 0));
    databaseOf(session).execute("UPDATE ops SET layer = 1, begin_ns = 1000 + 100 * id");
    ASSERT_TRUE(session.insert(GapRow{0, {}, {}, "kernels", "no device"}));
    const std::vector<Sample> samples{{1000, 5}, {1050, 7}};
    ASSERT_TRUE(
        session.insertSamples({"device 0 allocated", "bytes", SeriesAxis::Time, {}, 0}, samples));
    const std::string path = folder / "t.pftrace";
    const Status done = exportPerfetto(session, path);
    ASSERT_TRUE(done) << done.error().what;

    const Message trace = Message::parse(textOf(path));
    EXPECT_EQ(trace.numbers.size(), 0u);
    std::map<std::uint64_t, std::string> tracks;
    std::vector<std::string> slices;
    std::map<std::string, std::vector<std::int64_t>> counters;
    int depth = 0;
    for (const auto& [field, bytes] : trace.texts) {
        ASSERT_EQ(field, 1u);
        const Message packet = Message::parse(bytes);
        EXPECT_NE(packet.number(10), 0u) << "a sequence id";
        if (packet.texts.contains(60)) {
            const Message track = packet.message(60);
            EXPECT_TRUE(tracks.emplace(track.number(1), track.text(2)).second);
            if (track.texts.contains(8)) {
                EXPECT_EQ(track.message(8).number(3), 3u) << "bytes";
            }
            continue;
        }
        const Message event = packet.message(11);
        ASSERT_TRUE(tracks.contains(event.number(11))) << "described before it is used";
        switch (event.number(9)) {
            case 1:
                ++depth;
                slices.push_back(event.text(23));
                if (event.text(23) == "aten::make") {
                    EXPECT_EQ(event.text(22), "forward");
                    EXPECT_EQ(event.message(4).text(10), "layer");
                    EXPECT_EQ(event.message(4).text(6), "block.0");
                }
                break;
            case 2:
                --depth;
                break;
            case 4:
                counters[tracks[event.number(11)]].push_back(
                    static_cast<std::int64_t>(event.number(30)));
                break;
            default:
                EXPECT_EQ(event.text(23), "kernels");
        }
    }
    EXPECT_EQ(depth, 0) << "every slice ends";
    EXPECT_EQ(slices, (std::vector<std::string>{"aten::make", "aten::make", "step 0"}));
    EXPECT_EQ(counters["device 0 allocated"], (std::vector<std::int64_t>{5, 7}));
    const auto& live = counters["live"];
    EXPECT_EQ(*std::max_element(live.begin(), live.end()), 354);
    EXPECT_EQ(live.back(), 0);
    EXPECT_EQ(
        *std::max_element(counters["live: workspace"].begin(), counters["live: workspace"].end()),
        4);
}

TEST(Export, PerfettoAndCsvTellTheLineOfAnOp) {
    test::TemporaryFolder folder;
    SessionWriter session = SessionWriter::inMemory();
    ASSERT_TRUE(session.insert(SourceFrameRow{0, "/a/model.py", "forward", 8, false}));
    ASSERT_TRUE(session.insert(StackRow{0, {}, 0}));
    ASSERT_TRUE(test::writeSmallStep(session, 0));
    databaseOf(session).execute("INSERT INTO op_stacks VALUES(0, 0)");
    ASSERT_TRUE(exportPerfetto(session, folder / "t.pftrace"));
    EXPECT_NE(textOf(folder / "t.pftrace").find("model.py:8 forward"), std::string::npos);
    ASSERT_TRUE(exportCsv(session, folder / "out"));
    EXPECT_EQ(textOf(folder / "out/source_frames.csv"),
              "id,file,function,line,framework\n0,/a/model.py,forward,8,0\n");
    EXPECT_EQ(textOf(folder / "out/op_stacks.csv"), "op,stack\n0,0\n");
}

TEST(Export, EveryTableIsWrittenAsCsv) {
    test::TemporaryFolder folder;
    SessionWriter session = SessionWriter::inMemory();
    ASSERT_TRUE(test::writeSmallStep(session, 0));
    MemoryEventRow event;
    event.kind = "a,\"b\"", event.timeNs = 5, event.bytes = Bytes(-7), event.allocated = 12;
    ASSERT_TRUE(session.insert(event));
    const std::byte data[] = {std::byte{0}, std::byte{0xab}};
    ASSERT_TRUE(session.insertContents(0, 1, data));
    const Status done = exportCsv(session, folder / "out");
    ASSERT_TRUE(done) << done.error().what;
    const auto tables = csvTables(session);
    ASSERT_TRUE(tables);
    for (const std::string& name : *tables)
        EXPECT_FALSE(textOf(folder / "out/" + name + ".csv").empty()) << name;
    EXPECT_EQ(textOf(folder / "out/memory_events.csv"),
              "id,seq,device,time_ns,kind,address,bytes,allocated_bytes,reserved_bytes,op\n"
              "0,,0,5,\"a,\"\"b\"\"\",,-7,12,,\n");
    EXPECT_EQ(textOf(folder / "out/contents.csv"), "step,storage,data\n0,1,00ab\n");
    EXPECT_NE(textOf(folder / "out/series_samples.csv").find("1,12,354\n"), std::string::npos);
    std::istringstream storages(textOf(folder / "out/storages.csv"));
    std::string line;
    int lines = 0;
    for (; std::getline(storages, line); ++lines) {
        const auto fields = splitCsvLine(line);
        ASSERT_TRUE(fields);
        EXPECT_EQ(fields->size(), 10u);
    }
    EXPECT_EQ(lines, 4);
    EXPECT_EQ(exportCsvTable(session, "nothing", folder / "n.csv").error().code, ErrorCode::Usage);
    EXPECT_EQ(exportCsvTable(session, "ops", folder / "no/where.csv").error().code,
              ErrorCode::BadInput);
}

/// model: two blocks of two ops each; backward takes one block at a time.
TrainingGraph blocks() {
    TrainingGraph graph;
    graph.layers = {{"(root)", "Net", kNone}, {"a", "Block", 0}, {"b", "Block", 0}};
    graph.storages.resize(7);
    graph.tensors.resize(7);
    for (std::int32_t i = 0; i < 7; ++i) {
        graph.storages[i].bytes = Bytes(100);
        graph.tensors[i].storage = i;
    }
    graph.events.push_back({Event::Kind::Constant, 0});
    for (std::int32_t i = 0; i < 6; ++i) {
        Op op;
        op.name = i < 4 ? (i % 2 == 0 ? "aten::mm" : "aten::relu") : "aten::grad";
        op.phase = i < 4 ? Phase::Forward : Phase::Backward;
        op.layer = i < 4 ? 1 + i / 2 : kNone;
        op.time = Nanoseconds(10);
        op.inputs = {{i, 0}};
        if (i == 4) op.inputs = {{4, 0}, {3, 0}};
        if (i == 5) op.inputs = {{5, 0}, {2, 0}, {1, 0}};
        op.outputs = {{i + 1, true}};
        graph.ops.push_back(op);
        graph.events.push_back({Event::Kind::Compute, i});
        if (i == 4) {
            graph.events.push_back({Event::Kind::Release, 3});
            graph.events.push_back({Event::Kind::Release, 4});
        }
    }
    graph.finalTensors = {6};
    for (const std::int32_t s : {0, 1, 2, 5}) graph.events.push_back({Event::Kind::Release, s});
    EXPECT_EQ(graph.finish(), "");
    return graph;
}

TEST(Export, APlanBecomesASelectiveCheckpoint) {
    const TrainingGraph graph = blocks();
    ASSERT_EQ(evaluate(graph, baselineSchedule(graph)).peak, Bytes(600));
    Plan plan;
    plan.planner = "test";
    plan.budget = Bytes(500);
    // Gives up the first result of block a and computes it again before its backward.
    plan.schedule = {Action::compute(0), Action::compute(1), Action::free(1),
                     Action::compute(2), Action::compute(3), Action::compute(4),
                     Action::free(3),    Action::free(4),    Action::recompute(0, {0}),
                     Action::compute(5)};
    const Evaluation judged = evaluate(graph, plan.schedule);
    ASSERT_TRUE(judged.valid) << judged.why;
    EXPECT_EQ(judged.peak, Bytes(500));
    const auto rows = layerPlans(graph, plan.schedule);
    ASSERT_EQ(rows.size(), 3u);
    EXPECT_EQ(rows[0].forwardOps, 4);
    EXPECT_EQ(rows[1].recomputedOps, 1);
    EXPECT_EQ(rows[1].recomputeTime, Nanoseconds(10));
    EXPECT_EQ(rows[1].dropped, Bytes(100));
    EXPECT_EQ(rows[0].retained, Bytes(300));
    const auto chosen = planners::chooseCheckpoints(graph, plan.schedule);
    EXPECT_EQ(layerListCsv(graph, plan, chosen),
              "layer,type,forward_ops,recomputed_ops,recompute_ns,retained_bytes,dropped_bytes,"
              "checkpoint\n(root),Net,4,1,10,300,100,0\na,Block,2,1,10,100,100,1\n"
              "b,Block,2,0,0,200,0,0\n");
    const auto policy = torchPolicy(graph, plan, chosen);
    ASSERT_TRUE(policy) << policy.error().what;
    EXPECT_NE(policy->text.find("REGIONS = {\n \"a\": {\n  \"aten::relu\": [\n   1,\n   [\n    0\n"
                                "   ]\n  ]\n }\n}\n"),
              std::string::npos)
        << policy->text;
    EXPECT_EQ(policy->peak, Bytes(500));
    EXPECT_EQ(policy->time, Nanoseconds(70));
    EXPECT_EQ(policy->baselinePeak, Bytes(600));
    EXPECT_EQ(policy->baselineTime, Nanoseconds(60));
    plan.budget = Bytes(499);
    const auto refused = torchPolicy(graph, plan, chosen);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::NoPlan);
}

TEST(Export, NamesWithCommasAndQuotesStayOneField) {
    TrainingGraph graph = blocks();
    graph.layers[1].path = "heads[\"a,b\"]";
    graph.layers[2].type = "Block, twice";
    Plan plan;
    plan.schedule = baselineSchedule(graph);
    std::istringstream lines(layerListCsv(graph, plan, std::nullopt));
    std::vector<std::vector<std::string>> rows;
    for (std::string line; std::getline(lines, line);) {
        const auto fields = splitCsvLine(line);
        ASSERT_TRUE(fields) << line << ": " << fields.error().what;
        EXPECT_EQ(fields->size(), 8U) << line;
        rows.push_back(*fields);
    }
    ASSERT_EQ(rows.size(), 4U);
    EXPECT_EQ(rows[2][0], "heads[\"a,b\"]");
    EXPECT_EQ(rows[3][1], "Block, twice");
}

TEST(Export, CheckpointsOfLayersThatRunSeveralTimes) {
    // Both blocks are runs of one module: each run is a checkpoint of its own.
    TrainingGraph graph = blocks();
    graph.layers[1].path = "cell";
    for (OpIndex op : {0, 1, 2, 3}) graph.ops[op].layer = 1;
    graph.ops[2].layer = kNone;  // something runs in between
    ASSERT_EQ(graph.finish(), "");
    const auto expected = planners::forecast(
        graph, rebuildInfo(graph), heldByPlan(graph, baselineSchedule(graph)), {{1, false}});
    ASSERT_TRUE(expected);
    EXPECT_EQ(expected->peak, Bytes(500));
    EXPECT_EQ(expected->time, Nanoseconds(80)) << "t1 and t4 are computed twice";
}

TEST(Export, NoCheckpointWhoseInputIsWrittenLater) {
    TrainingGraph graph = blocks();
    const HeldByPlan held = heldByPlan(graph, baselineSchedule(graph));
    ASSERT_TRUE(planners::forecast(graph, rebuildInfo(graph), held, {{2, true}}));
    graph.ops[3].writes = {{2, 0}};  // block b changes its input in place
    graph.ops[5].inputs[1].version = 1;
    ASSERT_EQ(graph.finish(), "");
    EXPECT_FALSE(planners::forecast(graph, rebuildInfo(graph), held, {{2, true}}));
}

TEST(Export, NoCheckpointWithoutLayersOrAGain) {
    TrainingGraph graph = blocks();
    Plan plan;
    plan.schedule = baselineSchedule(graph);
    graph.layers.clear();
    for (Op& op : graph.ops) op.layer = kNone;
    const auto policy = torchPolicy(graph, plan, planners::chooseCheckpoints(graph, plan.schedule));
    ASSERT_FALSE(policy);
    EXPECT_EQ(policy.error().code, ErrorCode::BadInput);
    EXPECT_NE(policy.error().hint.find("names no layers"), std::string::npos);
}

}  // namespace
}  // namespace hw::core
