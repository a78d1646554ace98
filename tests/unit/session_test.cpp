// SPDX-License-Identifier: MIT
#include "core/session/session_writer.h"

#include <filesystem>
#include <fstream>

#include "core/memory/evaluate.h"
#include "core/session/access.h"
#include "tests/unit/step_rows.h"
#include "tests/unit/test_data.h"

namespace hw::core {
namespace {

#define ASSERT_OK(expression) \
    if (const auto status_ = (expression); !status_) FAIL() << status_.error().what

// One step: x (there before), a = make(x), v = view(a), write_(a), b = make(v); a and x go, b
// stays.
void writeStep(SessionWriter& session) {
    ASSERT_OK(session.begin());
    ProcessRow process;
    process.framework = "pytorch", process.frameworkVersion = "1.13.0";
    ASSERT_OK(session.insert(process));
    ASSERT_OK(session.insert(LayerRow{1, {}, "block", "Sequential"}));
    ASSERT_OK(session.insert(LayerRow{2, 1, "block.0", "Linear"}));
    auto op = [](std::int64_t id, std::int64_t seq, const char* name) {
        OpRow row;
        row.id = id, row.seq = seq, row.name = name, row.phase = Phase::Forward, row.layer = 2;
        row.duration = Nanoseconds(10 * (id + 1)), row.workspace = Bytes(4);
        return row;
    };
    OpRow make = op(0, 11, "aten::make");
    make.overload = "out", make.args = R"({"a":[{"t":1}],"k":{}})";
    make.inputs = {{1, 5}}, make.outputs = {{2, true}};  // x was written five times before the step
    OpRow view = op(1, 12, "aten::view");
    view.inputs = {{2, 0}}, view.outputs = {{3, false}};
    OpRow write = op(2, 13, "aten::write_");
    write.inputs = {{2, 0}}, write.outputs = {{2, false}}, write.writes = {{2, 0}};
    OpRow last = op(3, 14, "aten::make");
    last.inputs = {{3, 1}}, last.outputs = {{4, true}};
    for (const OpRow& row : {make, view, write, last}) ASSERT_OK(session.insert(row));
    StorageRow x, a, b;
    x.id = 1, x.bytes = Bytes(100), x.category = Category::Input, x.allocSeq = 3, x.freeSeq = 16;
    a.id = 2, a.bytes = Bytes(200), a.category = Category::Activation, a.creator = 0,
    a.allocSeq = 11, a.freeSeq = 15;
    b.id = 3, b.bytes = Bytes(50), b.creator = 3, b.allocSeq = 14;
    for (const StorageRow& row : {x, a, b}) ASSERT_OK(session.insert(row));
    for (const auto& [tensor, storage] : {std::pair{1, 1}, {2, 2}, {3, 2}, {4, 3}}) {
        TensorRow row;
        row.id = tensor, row.storage = storage, row.dtype = "float32", row.sizes = "[5]",
        row.strides = "[1]";
        ASSERT_OK(session.insert(row));
    }
    StepRow step;
    step.id = 0, step.firstSeq = 10, step.endSeq = 20, step.allocatorPeakBytes = 354;
    ASSERT_OK(session.insert(step, {4}));
    ASSERT_OK(session.commit());
}

TEST(Session, AStepComesBackAsTheGraphThatWasWritten) {
    test::TemporaryFolder folder;
    const std::string path = folder / "s.hws";
    {
        auto session = SessionWriter::create(path);
        ASSERT_TRUE(session) << session.error().what;
        writeStep(*session);
    }
    EXPECT_FALSE(std::filesystem::exists(path + "-wal")) << "a finished session is one plain file";
    auto session = Session::open(path);
    ASSERT_TRUE(session) << session.error().what;
    const auto graph = loadGraph(*session, *session->lastStep());
    ASSERT_TRUE(graph) << graph.error().what;
    ASSERT_EQ(graph->ops.size(), 4u);
    EXPECT_EQ(graph->ops[0].name, "aten::make.out");
    EXPECT_EQ(graph->framework, "pytorch");
    EXPECT_EQ(graph->ops[0].inputs[0].version, 0) << "versions count from the start of the step";
    EXPECT_TRUE(graph->storages[0].isConstant());
    EXPECT_EQ(graph->storages[1].creator, 0);
    EXPECT_EQ(graph->storages[1].writers, ShortList<OpIndex>{2});
    EXPECT_EQ(graph->storages[1].layer, 1);
    EXPECT_EQ(graph->layers[1].parent, 0);
    EXPECT_TRUE(graph->storages[2].aliveAtEnd);
    const Evaluation baseline = evaluate(*graph, baselineSchedule(*graph));
    ASSERT_TRUE(baseline.valid) << baseline.why;
    EXPECT_EQ(baseline.peak, Bytes(354));
    EXPECT_EQ(baseline.time, Nanoseconds(100));

    const auto ops = session->ops(0);
    ASSERT_TRUE(ops);
    EXPECT_EQ((*ops)[0].args, R"({"a":[{"t":1}],"k":{}})");
    EXPECT_EQ((*ops)[2].writes.size(), 1u);
}

TEST(Session, MeasuredCostsAreUsedWherePresent) {
    SessionWriter session = SessionWriter::inMemory();
    writeStep(session);
    EXPECT_FALSE(session.hasMeasuredCosts(0));
    for (std::int64_t op = 0; op < 4; ++op)
        ASSERT_OK(session.setMeasured(op, Nanoseconds(1000), Bytes(0)));
    EXPECT_EQ(loadGraph(session, 0)->totalTime(), Nanoseconds(4000));
    EXPECT_EQ(loadGraph(session, 0, CostSet::Captured)->totalTime(), Nanoseconds(100));
    EXPECT_EQ(loadGraph(session, 0)->fingerprint(),
              loadGraph(session, 0, CostSet::Captured)->fingerprint());
}

// What else the machine did falls on one step or another.
TEST(Session, AnOpHasItsMedianTimeOfTheStepsThatRanTheSame) {
    SessionWriter session = SessionWriter::inMemory();
    ASSERT_OK(session.begin());
    ASSERT_OK(session.insert(ProcessRow{}));
    for (std::int64_t step = 0; step < 4; ++step) ASSERT_OK(test::writeSmallStep(session, step));
    ASSERT_OK(session.commit());
    // Each op took 10.
    Database& database = databaseOf(session);
    database.execute("UPDATE ops SET duration_ns = 90 WHERE id = 20");
    database.execute("UPDATE ops SET duration_ns = 20 WHERE id = 10");
    database.execute("UPDATE ops SET name = 'aten::other', duration_ns = 70 WHERE id = 31");
    const auto times = [&](std::int64_t step) {
        const auto graph = loadGraph(session, step);
        EXPECT_TRUE(graph) << (graph ? "" : graph.error().what);
        return std::vector{graph->ops[0].time, graph->ops[1].time};
    };
    EXPECT_EQ(times(2), (std::vector{Nanoseconds(20), Nanoseconds(10)}));
    EXPECT_EQ(times(0), (std::vector{Nanoseconds(20), Nanoseconds(10)}));
    EXPECT_EQ(times(3), (std::vector{Nanoseconds(10), Nanoseconds(70)}));
}

TEST(Session, PlansAndRunsAreKept) {
    SessionWriter session = SessionWriter::inMemory();
    writeStep(session);
    const auto graph = loadGraph(session, 0);
    PlanRow plan;
    plan.plan.planner = "none", plan.plan.fingerprint = graph->fingerprint();
    plan.plan.schedule = baselineSchedule(*graph), plan.solveSeconds = 0.25, plan.recomputedOps = 3;
    const auto id = session.insert(plan);
    ASSERT_TRUE(id) << id.error().what;
    RunRow run;
    run.plan = *id, run.measuredPeak = Bytes(354), run.compared = 9;
    ASSERT_TRUE(session.insert(run));
    const auto plans = session.plans();
    ASSERT_EQ(plans->size(), 1u);
    EXPECT_EQ(plans->front().plan.schedule.size(), plan.plan.schedule.size());
    EXPECT_EQ(session.runs()->front().measuredPeak, Bytes(354));
}

TEST(Session, AnUncommittedStepIsNotShown) {
    test::TemporaryFolder folder;
    const std::string path = folder / "s.hws", copy = folder / "killed.hws";
    auto session = SessionWriter::create(path);
    ASSERT_TRUE(session);
    writeStep(*session);
    ASSERT_OK(session->begin());
    OpRow half;
    half.id = 99, half.seq = 30, half.name = "aten::half";
    ASSERT_OK(session->insert(half));
    // What a killed recorder leaves behind: the file and its write-ahead log.
    std::filesystem::copy(path, copy);
    std::filesystem::copy(path + "-wal", copy + "-wal");
    auto left = SessionWriter::open(copy);
    ASSERT_TRUE(left) << left.error().what;
    EXPECT_EQ(left->counts()->ops, 4);
    EXPECT_TRUE(loadGraph(*left, 0));
}

TEST(Session, SaysWhatIsWrongWithAFile) {
    test::TemporaryFolder folder;
    const std::string good = folder / "good.hws";
    {
        auto session = SessionWriter::create(good);
        writeStep(*session);
    }
    EXPECT_EQ(Session::open(folder / "missing.hws").error().code, ErrorCode::BadInput);
    EXPECT_EQ(SessionWriter::create(good).error().code, ErrorCode::BadInput)
        << "it must not be overwritten";

    std::ofstream(folder / "noise.hws") << "this is no session at all";
    EXPECT_NE(Session::open(folder / "noise.hws").error().what.find("no Highwater session"),
              std::string::npos);

    const auto size = std::filesystem::file_size(good);
    for (const double share : {0.9, 0.5, 0.1}) {
        const std::string cut = folder / "cut.hws";
        std::filesystem::copy_file(good, cut, std::filesystem::copy_options::overwrite_existing);
        std::filesystem::resize_file(
            cut, static_cast<std::uintmax_t>(static_cast<double>(size) * share));
        const auto opened = Session::open(cut);
        ASSERT_FALSE(opened) << share;
        EXPECT_EQ(opened.error().code, ErrorCode::BadInput);
    }
    {
        Database newer(good, 2 /* read and write */);
        newer.execute("PRAGMA user_version = 7");
    }
    const auto tooNew = Session::open(good);
    ASSERT_FALSE(tooNew);
    EXPECT_NE(tooNew.error().what.find("version 7"), std::string::npos);
    EXPECT_NE(tooNew.error().what.find("version " + std::to_string(kSessionSchemaVersion)),
              std::string::npos);
    {
        Database foreign(folder / "foreign.hws", 6 /* read, write, create */);
        foreign.execute("CREATE TABLE t(x)");
    }
    EXPECT_NE(Session::open(folder / "foreign.hws").error().what.find("no Highwater session"),
              std::string::npos);
}

TEST(Session, RefusesAStepThatContradictsItself) {
    SessionWriter session = SessionWriter::inMemory();
    writeStep(session);
    databaseOf(session).execute("UPDATE op_inputs SET version = 0 WHERE op = 3");
    const auto stale = loadGraph(session, 0);
    ASSERT_FALSE(stale);
    EXPECT_NE(stale.error().what.find("version"), std::string::npos);
    EXPECT_FALSE(loadGraph(session, 5)) << "there is no such step";
    databaseOf(session).execute("DELETE FROM tensors WHERE id = 3");
    EXPECT_FALSE(loadGraph(session, 0));
}

}  // namespace
}  // namespace hw::core
