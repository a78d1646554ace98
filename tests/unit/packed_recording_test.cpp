// SPDX-License-Identifier: MIT
// A recording whose steps are packed tells the same as one whose rows all lie in tables.
#include <fstream>
#include <limits>
#include <sstream>

#include "core/export/csv.h"
#include "core/session/append_session.h"
#include "core/session/call_stacks.h"
#include "core/session/category_rules.h"
#include "core/session/collectives.h"
#include "core/session/exchanges.h"
#include "core/session/recorded_addresses.h"
#include "core/session/recorded_memory.h"
#include "core/session/signatures.h"
#include "tests/unit/memory_rows.h"
#include "tests/unit/recorder_frames.h"

namespace hw::profiler {
namespace {

constexpr I64 kSteps = 12, kPacked = 10;
constexpr I64 kNever = std::numeric_limits<I64>::max();

class PackedRecording : public Recorder {
protected:
    std::string path(const char* name) const { return (folder_ / name).string(); }

    /// Each step: a batch comes and goes, an activation is made from it and written, a gradient
    /// stays until the next step, the parameter is updated, a value is sent around.
    void record(const std::string& file, I64 packAfter) {
        assembler_ = std::make_unique<Assembler>(file);
        assembler_->setPackAfter(packAfter);
        introduce(0, "");
        for (const I64 frame : {0, 1}) {
            ok(Type::SourceFrame, frame, 9 + frame, static_cast<std::uint8_t>(frame),
               std::string("/home/me/train.py"), std::string("main"));
            ok(Type::StackNode, frame, frame - 1, frame);
        }
        EXPECT_TRUE(storage(0, 0, 100, -1) && tensor(0, 0, -1));
        ok(Type::Category, static_cast<std::uint8_t>(core::Category::Parameter), I64{0},
           std::uint32_t{1}, I64{0});
        ok(Type::StepStart, I64{10}, I64{500}, I64{100});
        ok(Type::Gap, I64{0}, I64{0}, std::string("something"), std::string("for a reason"));
        for (I64 step = 0; step < kSteps; ++step) trainStep(step);
        EXPECT_TRUE(assembler_->finish());
        assembler_.reset();
    }

    void trainStep(I64 step) {
        const I64 begin = 10 + 20 * step, first = 5 * step;
        const I64 batch = 1 + 3 * step, made = batch + 1, gradient = batch + 2;
        stack_ = step % 2;
        if (step > 0) ok(Type::Free, batch - 1, begin);
        EXPECT_TRUE(storage(batch, begin + 1, 40, -1) && tensor(batch, batch, -1));
        ok(Type::Contents, begin + 1, batch, I64{40}, I64{0}, step, I64{2}, I64{3}, I64{4}, I64{5});
        ok(Type::Generator, begin + 1, I64{0}, std::string("cpu"), step);
        opName_ = "aten::relu";
        EXPECT_TRUE(storage(made, begin + 2, 100, first) && tensor(made, made, first));
        EXPECT_TRUE(op(first, begin + 2, batch, 0, made, true));
        ok(Type::Category, static_cast<std::uint8_t>(core::Category::Activation), I64{0},
           std::uint32_t{1}, made);
        EXPECT_TRUE(op(first + 1, begin + 3, made, 0, made, false, made, 0));
        EXPECT_TRUE(storage(gradient, begin + 4, 60, first + 2) &&
                    tensor(gradient, gradient, first + 2));
        EXPECT_TRUE(op(first + 2, begin + 4, made, 1, gradient, true));
        opName_ = "c10d::allreduce_";
        EXPECT_TRUE(op(first + 3, begin + 5, gradient, 0, gradient, false, gradient, 0));
        opName_ = "aten::add_";
        EXPECT_TRUE(op(first + 4, begin + 6, gradient, 1, 0, false, 0, static_cast<int>(step)));
        ok(Type::Free, made, begin + 7);
        ok(Type::Free, batch, begin + 8);
        end(begin + 9, {0, gradient});
        ok(Type::StepConfirmed);
    }

    void recordBoth() {
        record(path("tables.hws"), kNever);
        record(path("packed.hws"), Assembler::kPackAfter);
    }
};

template <class Value>
Value got(core::Result<Value> result) {
    EXPECT_TRUE(result) << (result ? "" : result.error().what);
    return result ? std::move(*result) : Value();
}

/// All tables as CSV, one behind the other.
std::string csvOf(const core::Session& session, const std::string& folder) {
    std::filesystem::remove_all(folder);
    const auto done = core::exportCsv(session, folder);
    EXPECT_TRUE(done) << (done ? "" : done.error().what);
    std::ostringstream all;
    for (const std::string& table : got(core::csvTables(session))) {
        const std::string name = folder + "/" + table + ".csv";
        all << "== " << table << "\n" << std::ifstream(name, std::ios::binary).rdbuf();
    }
    return all.str();
}

void tell(std::ostream& out, const core::Session& session, const core::StepRow& step) {
    for (const core::OpRow& row : got(session.ops(step.id))) {
        out << "op " << row.id << ' ' << row.seq << ' ' << row.name << ' ' << row.overload << ' '
            << phaseName(row.phase) << ' ' << row.layer.value_or(-1) << ' ' << row.thread << ' '
            << row.beginNs << ' ' << row.duration.count() << ' ' << row.workspace.count() << ' '
            << row.liveBytes.value_or(-1) << ' ' << row.random << row.args << row.stack.has_value();
        for (const auto& input : row.inputs) out << " i" << input.tensor << '.' << input.version;
        for (const auto& output : row.outputs)
            out << " o" << output.tensor << '.' << output.makesStorage;
        for (const auto& write : row.writes)
            out << " w" << write.storage << '.' << write.versionBefore;
        out << '\n';
    }
    for (const core::OpSpanRow& row : got(session.opSpans(step.id)))
        out << "span " << row.id << ' ' << row.seq << ' ' << row.name << ' '
            << row.layer.value_or("-") << ' ' << row.beginNs << ' ' << row.nextBeginNs.value_or(-1)
            << '\n';
    for (const core::StorageRow& row : got(session.storages(step)))
        out << "storage " << row.id << ' ' << row.bytes.count() << ' ' << row.device << ' '
            << categoryName(row.category) << ' ' << row.creator.value_or(-1) << ' ' << row.allocSeq
            << ' ' << row.freeSeq.value_or(-1) << ' ' << row.address.value_or(-1) << '\n';
    for (const core::Generator& row : got(session.generators(step.id)))
        out << "generator " << row.id << ' ' << static_cast<int>(row.state.front()) << '\n';
    for (const core::CollectiveUse& use : got(core::collectivesOf(session, step)))
        out << "collective " << use.operation << ' ' << use.count << ' ' << use.bytes.count()
            << '\n';
    for (const core::Exchange& row : got(core::exchangesOf(session, step)))
        out << "exchange " << row.op << ' ' << row.use.value_or(-1) << ' ' << row.beginNs << '\n';
    out << "measured " << session.hasMeasuredCosts(step.id) << '\n';
}

void tell(std::ostream& out, const core::Session& session, const core::TrainingGraph& graph) {
    for (const core::Op& op : graph.ops) {
        out << "node " << op.sessionId << ' ' << op.name << ' ' << op.time.count() << ' '
            << op.opaque << ' ' << op.layer;
        for (const core::Use& use : op.inputs) out << " i" << use.tensor << '.' << use.version;
        for (const core::OpOutput& output : op.outputs) out << " o" << output.tensor;
        out << '\n';
    }
    for (const core::Storage& storage : graph.storages)
        out << "held " << storage.sessionId << ' ' << storage.bytes.count() << ' '
            << storage.isConstant() << storage.aliveAtEnd << ' ' << storage.creator << '\n';
    for (const core::Event& event : graph.events)
        out << "event " << static_cast<int>(event.kind) << ' ' << event.index << '\n';
    for (const std::int64_t begin : got(core::opBegins(session, graph))) out << begin << ' ';
}

/// Everything that a session tells, but for its tables.
std::string toldBy(const core::Session& session) {
    std::ostringstream out;
    const auto counts = *session.counts();
    out << counts.ops << ' ' << counts.tensors << ' ' << counts.storages << ' ' << counts.events
        << '\n';
    const auto stacks = *core::CallStacks::load(session);
    for (I64 id = 0; id < 5 * kSteps; ++id)
        out << stacks.ofOp(id) << ',' << stacks.ofStorage(id) << ' ';
    for (const core::OpTimeRow& row : got(session.opTimes()))
        out << row.op << '@' << row.beginNs << ' ';
    for (const core::TensorRow& row : got(session.tensors()))
        out << row.id << ':' << row.storage << row.sizes << row.creator.value_or(-1) << ' ';
    for (const std::string& device : got(session.storageDevices())) out << device << ' ';
    const auto addresses = *core::storageAddresses(session);
    for (I64 id = 0; id < 5 * kSteps; ++id) out << addresses.contains(id);
    const auto memory = core::loadRecordedMemory(session);
    EXPECT_TRUE(memory);
    for (const core::RecordedMemory::OpSpan& span : memory->spans)
        out << span.op << '-' << span.begin.count() << ' ';
    for (const core::Op& op : memory->graph.ops) out << op.sessionId << op.name << ' ';
    for (const core::StepRow& step : got(session.steps())) {
        tell(out << "\nstep " << step.id << '\n', session, step);
        const auto graph = core::loadGraph(session, step.id);
        EXPECT_TRUE(graph) << (graph ? "" : graph.error().what);
        if (graph) tell(out, session, *graph);
    }
    return out.str();
}

TEST_F(PackedRecording, TellsTheSameAsTables) {
    recordBoth();
    const auto tables = core::Session::open(path("tables.hws")),
               packed = core::Session::open(path("packed.hws"));
    ASSERT_TRUE(tables && packed);
    EXPECT_EQ(test::figure(*tables, "SELECT count(*) FROM packed_steps"), 0);
    EXPECT_EQ(test::figure(*packed, "SELECT count(*) FROM packed_steps"),
              kSteps - Assembler::kPackAfter);
    EXPECT_EQ(test::figure(*packed, "SELECT count(*) FROM ops"), 5 * Assembler::kPackAfter);
    EXPECT_EQ(packed->ops(kPacked)->size(), 5u);
    EXPECT_EQ(toldBy(*packed), toldBy(*tables));
    EXPECT_EQ(csvOf(*packed, path("packed")), csvOf(*tables, path("tables")));
}

TEST_F(PackedRecording, UnpackedItHasTheSameRows) {
    recordBoth();
    auto tables = core::SessionWriter::open(path("tables.hws"));
    auto packed = core::SessionWriter::open(path("packed.hws"));
    ASSERT_TRUE(tables && packed);
    ASSERT_TRUE(packed->begin());
    for (I64 step = 0; step <= kSteps; ++step) EXPECT_TRUE(packed->unpackStep(step));
    ASSERT_TRUE(packed->commit());
    EXPECT_EQ(test::figure(*packed, "SELECT count(*) FROM packed_steps"), 0);
    EXPECT_EQ(csvOf(*packed, path("packed")), csvOf(*tables, path("tables")));
    EXPECT_EQ(toldBy(*packed), toldBy(*tables));
}

TEST_F(PackedRecording, TakesCategoryRules) {
    recordBoth();
    const char* text = R"([{"set": "input", "op": "aten::relu", "category": "activation"}])";
    const auto rules = core::parseCategoryRules(text);
    ASSERT_TRUE(rules);
    std::string told[2];
    for (const char* name : {"tables.hws", "packed.hws"}) {
        auto session = core::SessionWriter::open(path(name));
        ASSERT_TRUE(session);
        const auto changes = core::applyCategoryRules(*session, *rules, text);
        ASSERT_TRUE(changes) << changes.error().what;
        EXPECT_EQ(changes->at("activation -> input").storages, kSteps) << name;
        told[name[0] == 'p'] = csvOf(*session, path("csv"));
    }
    EXPECT_EQ(told[0], told[1]);
}

TEST_F(PackedRecording, StaysPackedBehindAnotherSession) {
    recordBoth();
    std::string told[2], tables[2];
    for (const char* name : {"tables.hws", "packed.hws"}) {
        const bool packed = name[0] == 'p';
        const auto from = core::Session::open(path(name));
        ASSERT_TRUE(from);
        core::SessionWriter to = core::SessionWriter::inMemory();
        core::CommonRows common;
        for (const I64 processes : {0, 1}) {
            core::Placement placement;
            placement.processes = processes, placement.clockOffsetNs = 1000 * processes;
            for (I64 step = 0; step < kSteps; ++step) placement.steps[step] = 2 * step + processes;
            const auto done = core::appendSession(*from, placement, common, to);
            ASSERT_TRUE(done) << done.error().what;
        }
        EXPECT_EQ(test::figure(to, "SELECT count(*) FROM packed_steps"),
                  packed ? 2 * (kSteps - Assembler::kPackAfter) : 0);
        told[packed] = toldBy(to), tables[packed] = csvOf(to, path("csv"));
    }
    EXPECT_EQ(told[0], told[1]);
    EXPECT_EQ(tables[0], tables[1]);
}

TEST_F(PackedRecording, TakesWhatAProfileRunMeasured) {
    record(path("packed.hws"), Assembler::kPackAfter);
    auto session = core::SessionWriter::open(path("packed.hws"));
    ASSERT_TRUE(session);
    const I64 first = 5 * kPacked;
    ASSERT_TRUE(session->unpackStep(kPacked));
    for (I64 op = first; op < first + 5; ++op)
        ASSERT_TRUE(session->setMeasured(op, core::Nanoseconds(77), core::Bytes(8)));
    ASSERT_TRUE(session->replaceSignatures({{first, 0, core::Bytes(100), 0, 0, {}}}));
    const auto graph = core::loadGraph(*session, kPacked);
    ASSERT_TRUE(graph) << graph.error().what;
    EXPECT_EQ(graph->costs, core::CostSet::Measured);
    EXPECT_EQ(graph->ops[0].time, core::Nanoseconds(77));
    EXPECT_EQ(core::loadSignatures(*session, *graph)->size(), 5u);
    EXPECT_EQ(core::loadGraph(*session, kPacked + 1)->costs, core::CostSet::Captured);
}

TEST_F(PackedRecording, RanksAndStepsOfAGpuKeepTheirRows) {
    for (const bool gpu : {false, true}) {
        const std::string file = path(gpu ? "gpu.hws" : "rank.hws");
        assembler_ = std::make_unique<Assembler>(file);
        assembler_->setPackAfter(0);
        introduce(gpu ? 0 : 2, gpu ? "" : "r@host:29500");
        if (gpu) ok(Type::Clock, I64{100'000}, I64{0}, I64{10});
        EXPECT_TRUE(storage(0, 0, 100, -1) && tensor(0, 0, -1));
        ok(Type::SourceFrame, I64{0}, I64{9}, std::uint8_t{0}, std::string("a.py"),
           std::string("main"));
        for (const I64 node : {0, 1}) ok(Type::StackNode, node, I64{-1}, I64{0});
        ok(Type::StepStart, I64{10}, I64{500}, I64{100});
        trainStep(0);
        ASSERT_TRUE(assembler_->finish());
        const auto session = core::Session::open(file);
        ASSERT_TRUE(session);
        EXPECT_EQ(test::figure(*session, "SELECT count(*) FROM ops"), 5) << file;
    }
}

TEST_F(PackedRecording, DamageIsNamed) {
    record(path("packed.hws"), Assembler::kPackAfter);
    auto session = core::SessionWriter::open(path("packed.hws"));
    ASSERT_TRUE(session);
    core::databaseOf(*session).execute(
        "UPDATE packed_steps SET data = substr(data, 1, length(data) - 1) WHERE step = 10");
    for (const auto& what :
         {session->ops(10).error().what, core::loadGraph(*session, 10).error().what,
          session->tensors().error().what, core::CallStacks::load(*session).error().what})
        EXPECT_NE(what.find("step 10 is damaged"), std::string::npos) << what;
    EXPECT_FALSE(session->unpackStep(10));
    EXPECT_TRUE(session->ops(9)) << "the others are whole";
    EXPECT_TRUE(core::loadGraph(*session, 9)) << "with the times of those that are";
}

}  // namespace
}  // namespace hw::profiler
