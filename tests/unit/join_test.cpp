// SPDX-License-Identifier: MIT
#include "core/join/join.h"

#include "core/session/access.h"
#include "core/session/call_stacks.h"
#include "core/session/common_rows.h"
#include "tests/unit/test_data.h"

namespace hw::core {
namespace {

#define ASSERT_OK(expression) \
    if (const auto status_ = (expression); !status_) FAIL() << status_.error().what

struct Rank {
    int rank = 0;
    std::int64_t world = 4;
    std::int64_t clock = 0;  // what its machine's clock is ahead
    std::int64_t late = 0;   // how much later than the others it comes to each collective
    std::string version = "2.11.0", run = "r@a:29500", layer = "block";
    int steps = 3;
    bool collectives = true;
};

// Step i begins at 1000 * i: a gradient is made, summed over the ranks until 500, and read by the
// optimizer.
void writeRank(SessionWriter& session, const Rank& rank, std::int64_t process, CommonRows& common) {
    const std::int64_t base = (process - 1) * kIdsOfProcess;
    ProcessRow row;
    row.pid = 7, row.host = "host" + std::to_string(rank.clock), row.rank = rank.rank;
    row.framework = "pytorch", row.frameworkVersion = rank.version;
    row.worldSize = rank.world, row.run = rank.run;
    ASSERT_OK(session.insert(row));
    const auto layer = common.layer(session, {0, {}, rank.layer, "Linear"});
    ASSERT_TRUE(layer);
    const auto frame = common.sourceFrame(session, {0, rank.layer + ".py", "forward", 3, false});
    const auto stack = common.stack(session, {0, {}, *frame});
    for (std::int64_t i = 0; i < rank.steps; ++i) {
        const std::int64_t id = base + 10 * i, seq = base + 100 * i,
                           begin = 1000 * i + 7 * (i % 2) + rank.clock;
        const auto op = [&](std::int64_t n, const char* name, Phase phase, std::int64_t beginNs) {
            OpRow made;
            made.id = id + n, made.seq = seq + 1 + n, made.name = name, made.phase = phase;
            made.layer = *layer, made.stack = *stack, made.beginNs = beginNs,
            made.duration = Nanoseconds(10);
            return made;
        };
        OpRow make = op(0, "aten::make", Phase::Backward, begin);
        make.outputs = {{id, true}};
        make.args = R"({"a":[12],"k":{}})";
        OpRow sum = op(1, rank.collectives ? "c10d::allreduce_" : "aten::add_", Phase::Backward,
                       begin + 100 + rank.late);
        sum.inputs = {{id, 0}}, sum.writes = {{id, 0}};
        sum.args = R"({"a":[{"t":)" + std::to_string(id) + R"(}],"k":{}})";
        OpRow update = op(2, "aten::update", Phase::Optimizer, begin + 500);
        update.inputs = {{id, 1}};
        for (const OpRow& each : {make, sum, update}) ASSERT_OK(session.insert(each));
        StorageRow storage;
        storage.id = id, storage.bytes = Bytes(100 + rank.rank), storage.creator = id;
        storage.layer = *layer, storage.allocSeq = seq + 1, storage.freeSeq = seq + 50;
        ASSERT_OK(session.insert(storage));
        TensorRow tensor;
        tensor.id = tensor.storage = id, tensor.creator = id;
        ASSERT_OK(session.insert(tensor));
        StepRow step;
        step.id = i * 8 + process - 1, step.process = process;
        step.firstSeq = seq, step.endSeq = seq + 99;
        step.beginNs = begin, step.endNs = begin + 900 + rank.rank;
        ASSERT_OK(session.insert(step, {}));
    }
}

class Join : public ::testing::Test {
protected:
    std::string session(const std::string& name, const std::vector<Rank>& ranks) {
        const std::string path = folder_ / name;
        auto writer = SessionWriter::create(path);
        EXPECT_TRUE(writer);
        CommonRows common;
        std::int64_t process = 0;
        for (const Rank& rank : ranks) writeRank(*writer, rank, ++process, common);
        return path;
    }
    std::string refusal(const std::vector<std::string>& paths,
                        ErrorCode code = ErrorCode::BadInput) {
        auto to = SessionWriter::inMemory();
        const auto joined = joinSessions(paths, to);
        if (joined) return "";
        EXPECT_EQ(joined.error().code, code);
        EXPECT_FALSE(joined.error().hint.empty());
        return joined.error().what;
    }
    static bool has(const std::string& text, const std::string& part) {
        return text.find(part) != std::string::npos;
    }

    test::TemporaryFolder folder_;
};

constexpr std::int64_t kAhead = 5'000'000'000;

TEST_F(Join, RanksOfTwoMachinesAreOneSession) {
    const std::string one = session("1.hws", {{2, 4, kAhead}, {3, 4, kAhead}});
    const std::string zero = session("0.hws", {{1}, {0}});
    auto to = SessionWriter::inMemory();
    const auto joined = joinSessions({one, zero}, to);
    ASSERT_TRUE(joined) << joined.error().what;
    ASSERT_EQ(joined->sessions.size(), 2u);
    EXPECT_EQ(joined->sessions[0].path, zero) << "the lowest rank comes first";
    EXPECT_EQ(joined->sessions[1].ranks, (std::vector<int>{2, 3}));
    EXPECT_EQ(joined->steps, 12);
    EXPECT_EQ(joined->layers, 1);
    const auto processes = to.processes();
    ASSERT_TRUE(processes);
    ASSERT_EQ(processes->size(), 4u);
    EXPECT_EQ((*processes)[2].rank, 2);
    EXPECT_EQ((*processes)[2].clockOffsetNs, -kAhead);
    // Steps come in the order in which they ended, and each is what it was.
    const auto steps = to.steps();
    ASSERT_TRUE(steps);
    std::vector<int> ranks;
    for (const StepRow& step : *steps) {
        const ProcessRow& process = (*processes)[static_cast<std::size_t>(step.process - 1)];
        ranks.push_back(process.rank);
        const auto graph = loadGraph(to, step.id);
        ASSERT_TRUE(graph) << graph.error().what;
        ASSERT_EQ(graph->ops.size(), 3u);
        EXPECT_EQ(graph->storages[0].bytes, Bytes(100 + process.rank));
        EXPECT_EQ(graph->layers[static_cast<std::size_t>(graph->ops[0].layer)].path, "block");
        const auto ops = to.ops(step.id);
        ASSERT_TRUE(ops);
        EXPECT_EQ((*ops)[1].args,
                  R"({"a":[{"t":)" + std::to_string((*ops)[1].inputs[0].tensor) + R"(}],"k":{}})");
        EXPECT_EQ((*ops)[0].args, R"({"a":[12],"k":{}})") << "a number is no tensor";
        EXPECT_LT((*ops)[0].beginNs, 3000);
        const auto stacks = CallStacks::load(to);
        EXPECT_EQ(stacks->frames(stacks->ofOp((*ops)[0].id)).size(), 1u);
    }
    EXPECT_EQ(ranks, (std::vector<int>{0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3}));
}

TEST_F(Join, EveryTableIsTaken) {
    // Another table in schema.sql has to be thought of in append_session.cpp.
    auto to = SessionWriter::inMemory();
    Statement count(databaseOf(to), "SELECT count(*) FROM sqlite_master WHERE type = 'table'");
    ASSERT_TRUE(count.step());
    EXPECT_EQ(count.integer(0), 34);
}

TEST_F(Join, TheClockIsTheOneOnWhichRanksPassTogether) {
    // Rank 1 is late for each collective; they leave it together all the same.
    const std::string zero = session("0.hws", {{0, 2}});
    const std::string one = session("1.hws", {{1, 2, kAhead, 300}});
    auto to = SessionWriter::inMemory();
    const auto joined = joinSessions({zero, one}, to);
    ASSERT_TRUE(joined) << joined.error().what;
    const ClockOffset& clock = joined->sessions[1].clock;
    EXPECT_EQ(clock.offsetNs, -kAhead);
    EXPECT_EQ(clock.errorNs, 0);
    EXPECT_EQ(clock.moments, 3);
}

TEST(ClockOffset, ItsErrorCoversWhatCannotBe) {
    // By its median, 100, the second step's collective would be left before the other had come.
    const std::vector<RankMoments> reference{
        {0, {{0, 0, 1000, 1100}, {1, 0, 2000, 2100}, {2, 0, 3000, 3100}}, {}, {}}};
    const std::vector<RankMoments> other{
        {1, {{0, 0, 900, 1000}, {1, 0, 1700, 1760}, {2, 0, 2900, 3000}}, {}, {}}};
    const ClockOffset clock = alignClock(reference, other);
    EXPECT_EQ(clock.offsetNs, 100);
    EXPECT_EQ(clock.errorNs, 140);
    EXPECT_EQ(alignClock(reference, {{1, {{0, 0, 900, 1000}, {0, 1, 901, 1001}}, {}, {}}}).moments,
              0)
        << "a step of other collectives is no measure";
}

// The other clock is 100 behind. What the first rank sends at 1000 is worked on at 1030, by its
// own clock; what the other sends at 2000, at 2010.
TEST(ClockOffset, MessagesBothWaysBoundIt) {
    const RankMoments reference{
        0, {}, {{1, 0, 0, 0, 1000}}, {{1, 0, 0, 0, 2010}, {1, 0, 0, 1, 2500}}};
    RankMoments other{1, {}, {{0, 0, 0, 0, 1900}, {0, 0, 0, 1, 2300}}, {{0, 0, 0, 0, 930}}};
    const ClockOffset clock = alignClock({reference}, {other});
    EXPECT_EQ(clock.moments, 3);
    EXPECT_EQ(clock.offsetNs, 90);
    EXPECT_EQ(clock.errorNs, 20) << "from 70 to 110";
    other.sent.clear();
    EXPECT_EQ(alignClock({reference}, {other}).moments, 0) << "one way says one bound only";
}

TEST_F(Join, WithoutACollectiveTheClockIsNotKnown) {
    Rank zero{0, 2}, one{1, 2, kAhead};
    zero.collectives = one.collectives = false;
    const std::string a = session("0.hws", {zero}), b = session("1.hws", {one});
    auto to = SessionWriter::inMemory();
    ASSERT_TRUE(joinSessions({a, b}, to));
    const auto gaps = to.gaps();
    ASSERT_TRUE(gaps);
    ASSERT_EQ(gaps->size(), 1u);
    EXPECT_TRUE(has((*gaps)[0].what, "clock"));
}

TEST_F(Join, RefusesWhatIsNotOneRun) {
    const std::string zero = session("0.hws", {{0}, {1}});
    Rank newer{2}, elsewhere{2}, alone{2, 3};
    newer.version = "2.15.0", elsewhere.run = "s@a:29500";
    EXPECT_TRUE(has(refusal({zero, session("v.hws", {newer})}), "pytorch 2.15.0"));
    EXPECT_TRUE(has(refusal({zero, session("r.hws", {elsewhere})}), "of another run"));
    EXPECT_TRUE(has(refusal({zero, session("w.hws", {alone})}), "of another run"));
    EXPECT_TRUE(has(refusal({zero, session("m.hws", {{2}})}), "rank 3 of 4 is in none"));
    EXPECT_TRUE(has(refusal({zero, session("t.hws", {{1}, {2}, {3}})}), "rank 1 is in"));
    EXPECT_TRUE(has(refusal({zero}, ErrorCode::Usage), "nothing to join"));
    EXPECT_TRUE(has(refusal({zero, folder_ / "none.hws"}), "there is no file"));
    EXPECT_TRUE(has(refusal({zero, session("e.hws", {})}), "no recorded step"));
}

}  // namespace
}  // namespace hw::core
