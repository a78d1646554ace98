// SPDX-License-Identifier: MIT
// The expected figures of the samples come from Python's own json.
#include "core/import/kineto.h"

#include <fstream>
#include <optional>

#include "core/session/device_work.h"
#include "core/session/recorded_memory.h"
#include "tests/unit/expected.h"

namespace hw::core {
namespace {

using test::figure;
using test::hasGap;
using test::text;

constexpr const char* kOfRank = "v100-rank1-memory.json.gz";
constexpr const char* kOf2021 = "resnet50-train.pt.trace.json.gz";

/// Of the public files; those of the samples lie beside them.
nlohmann::json figuresOf(const std::string& file) {
    if (file.ends_with(kOf2021))
        return {{"ops", 23622},
                {"memory_events", 12838},
                {"kernels", 8772},
                {"copies", 324},
                {"layers", 229},
                {"backward", 8652},
                {"optimizer", 4842},
                {"forward", 6978},
                {"bytes", 19267840},
                {"moments", 8220},
                {"peak", 2791636480},
                {"end", 0},
                {"last_memory_ns", 1623142624491931000}};
    if (file.ends_with(kOfRank))
        return {{"ops", 56680},
                {"memory_events", 28010},
                {"kernels", 19370},
                {"copies", 2920},
                {"backward", 40050},
                {"allocations", 14005},
                {"frees", 14005},
                {"compute_stream", 17350 + 2920},
                {"collective_stream", 2020},
                {"highest_total", 6629508096}};
    return test::expectedOf(file);
}

class KinetoFile : public testing::TestWithParam<std::string> {
protected:
    void SetUp() override {
        auto session = openAny(GetParam());
        ASSERT_TRUE(session) << session.error().what;
        session_.emplace(std::move(*session));
        expected_ = figuresOf(GetParam());
    }
    std::optional<Session> session_;
    nlohmann::json expected_;
};
class KinetoFileOf2021 : public KinetoFile {};
class KinetoFileOfARank : public KinetoFile {};

TEST_P(KinetoFile, HasTheCountsOfPythonsReader) {
    test::expectFigures(*session_, expected_,
                        {{"ops", "SELECT count(*) FROM ops"},
                         {"memory_events", "SELECT count(*) FROM memory_events"},
                         {"kernels", "SELECT count(*) FROM kernels"},
                         {"copies", "SELECT count(*) FROM copies"},
                         {"layers", "SELECT count(*) FROM layers"},
                         {"forward", "SELECT count(*) FROM ops WHERE phase = 'forward'"},
                         {"backward", "SELECT count(*) FROM ops WHERE phase = 'backward'"},
                         {"optimizer", "SELECT count(*) FROM ops WHERE phase = 'optimizer'"},
                         {"bytes", "SELECT sum(bytes) FROM memory_events"}});
}

TEST_P(KinetoFileOf2021, HasNeitherAddressesNorTotals) {
    for (const char* gap : {"tensors", "levels", "lifetimes", "layers"})
        EXPECT_TRUE(hasGap(*session_, gap)) << gap;
    const auto memory = loadRecordedMemory(*session_);
    ASSERT_TRUE(memory) << memory.error().what;
    EXPECT_EQ(memory->device, "cuda:0");
    ASSERT_EQ(memory->moments.size(), expected_["moments"].get<std::size_t>());
    EXPECT_EQ(memory->moments.back().allocated.count(), expected_["end"].get<std::int64_t>())
        << "all that was allocated is freed";
    const std::int64_t begin = figure(*session_, "SELECT min(begin_ns) FROM ops");
    EXPECT_EQ(memory->moments.back().begin.count() + begin,
              expected_["last_memory_ns"].get<std::int64_t>())
        << "the time of the device's last [memory] event";
    Bytes peak;
    for (const auto& moment : memory->moments) peak = std::max(peak, moment.allocated);
    EXPECT_EQ(peak.count(), expected_["peak"].get<std::int64_t>());
    EXPECT_EQ(session_->lastStep().error().code, ErrorCode::BadInput);
}

TEST_P(KinetoFileOfARank, HasAddressesTotalsAndStreams) {
    test::expectFigures(
        *session_, expected_,
        {{"allocations", "SELECT count(*) FROM storages"},
         {"frees", "SELECT count(*) FROM storages WHERE free_seq > alloc_seq"},
         {"highest_total", "SELECT max(allocated_bytes) FROM memory_events WHERE device = 1"}});
    EXPECT_EQ(figure(*session_, "SELECT rank FROM processes"), 1);
    EXPECT_EQ(text(*session_, "SELECT name FROM devices WHERE kind = 'cuda' AND ordinal = 1"),
              GetParam().ends_with(kOfRank) ? "Tesla V100-SXM2-32GB" : "Made-up GPU");
    EXPECT_FALSE(hasGap(*session_, "levels"));

    const std::int64_t origin = loadRecordedMemory(*session_)->originNs;
    const auto work = loadDeviceWork(*session_, 1, origin);
    ASSERT_TRUE(work) << work.error().what;
    ASSERT_EQ(work->streams.size(), 2u);
    EXPECT_EQ(work->streams[0].id, 7);
    EXPECT_EQ(work->streams[0].spans.size(), expected_["compute_stream"].get<std::size_t>())
        << "kernels and copies";
    EXPECT_EQ(work->streams[1].id, 14);
    EXPECT_EQ(work->streams[1].spans.size(), expected_["collective_stream"].get<std::size_t>())
        << "the all-reduces";
    for (const auto& span : work->streams[1].spans) {
        ASSERT_TRUE(work->names[span.name].starts_with("ncclKernel"));
        ASSERT_LT(span.begin, span.end);
    }
    EXPECT_TRUE(loadDeviceWork(*session_, 0, origin)->streams.empty());
    EXPECT_FALSE(hasGap(*session_, "lifetimes"));
}

const std::vector<std::string> k2021 =
    test::dataFiles({"kineto/gpu-2021.json.gz", "kineto/resnet50-train.pt.trace.json.gz"});
const std::vector<std::string> kRanks =
    test::dataFiles({"kineto/gpu-rank1.json.gz", "kineto/v100-rank1-memory.json.gz"});
INSTANTIATE_TEST_SUITE_P(
    OfACpu, KinetoFile,
    testing::ValuesIn(test::dataFiles({"execution-trace/training_trace.json.gz"})),
    test::dataNameOf);
INSTANTIATE_TEST_SUITE_P(Of2021, KinetoFile, testing::ValuesIn(k2021), test::dataNameOf);
INSTANTIATE_TEST_SUITE_P(OfARank, KinetoFile, testing::ValuesIn(kRanks), test::dataNameOf);
INSTANTIATE_TEST_SUITE_P(Data, KinetoFileOf2021, testing::ValuesIn(k2021), test::dataNameOf);
INSTANTIATE_TEST_SUITE_P(Data, KinetoFileOfARank, testing::ValuesIn(kRanks), test::dataNameOf);

class Kineto : public testing::Test {
protected:
    Result<Session> import(const std::string& trace) {
        std::ofstream(folder_ / "t.json", std::ios::binary) << trace;
        return openAny(folder_ / "t.json");
    }
    test::TemporaryFolder folder_;
};

constexpr const char* kToday = R"({"schemaVersion": 1, "distributedInfo": {"rank": 3},
"traceEvents": [
{"ph":"X","cat":"python_function","name":"nn.Module: Net_0","pid":9,"tid":1,"ts":100.000,"dur":50},
{"ph":"X","cat":"python_function","name":"nn.Module: Linear_0","pid":9,"tid":1,"ts":101,"dur":20},
{"ph":"X","cat":"cpu_op","name":"aten::linear","pid":9,"tid":1,"ts":102.125,"dur":10.5,
 "args":{"External id":7,"Record function id":7,"Sequence number":5,"Fwd thread id":0}},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":9,"tid":1,"ts":103,"dur":1,"args":{"correlation":40}},
{"ph":"i","cat":"cpu_instant_event","name":"[memory]","pid":9,"tid":1,"ts":104.5,
 "args":{"Device Type":1,"Device Id":0,"Addr":18446744073709551615,"Bytes":512,"Total Allocated":600,"Total Reserved":2048}},
{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":110,"dur":4,"args":{"device":0,"stream":7,"correlation":40,"deep":[[[{"a":1}]]]}},
{"ph":"X","cat":"cpu_op","name":"autograd::engine::evaluate_function: AddmmBackward0","pid":9,"tid":2,"ts":200,"dur":9,
 "args":{"Sequence number":5,"Fwd thread id":1}},
{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":9,"tid":2,"ts":201,"dur":3,"args":{}},
{"ph":"X","cat":"user_annotation","name":"Optimizer.step#SGD.step","pid":9,"tid":1,"ts":300,"dur":20,"args":{}},
{"ph":"X","cat":"cpu_op","name":"aten::add_","pid":9,"tid":1,"ts":301,"dur":2,"args":{}},
{"ph":"i","cat":"cpu_instant_event","name":"[memory]","pid":9,"tid":1,"ts":302,
 "args":{"Device Type":1,"Device Id":0,"Addr":18446744073709551615,"Bytes":-512,"Total Allocated":88,"Total Reserved":2048}},
{"ph":"X","cat":"cpu_op","name":"aten::bad","pid":9,"tid":1,"ts":1,"dur":-2},
{"ph":"M","name":"process_name","pid":9,"args":{"name":"python"}}
]})";

TEST_F(Kineto, TodaysFormHasModulesPhasesAndFractions) {
    auto session = import(kToday);
    ASSERT_TRUE(session) << session.error().what;
    EXPECT_EQ(text(*session,
                   "SELECT group_concat(name || ' ' || phase, ', ') FROM "
                   "(SELECT * FROM ops ORDER BY seq)"),
              "aten::linear forward, autograd::engine::evaluate_function: AddmmBackward0 backward, "
              "aten::mm backward, aten::add_ optimizer");
    EXPECT_EQ(text(*session,
                   "SELECT group_concat(coalesce(path, '-'), ', ') FROM (SELECT path FROM "
                   "ops LEFT JOIN layers l ON l.id = layer ORDER BY seq)"),
              "Net_0.Linear_0, Net_0.Linear_0, Net_0.Linear_0, -")
        << "backward ops by their sequence number";
    EXPECT_EQ(figure(*session, "SELECT begin_ns FROM ops WHERE name = 'aten::linear'"), 102125);
    EXPECT_EQ(figure(*session, "SELECT duration_ns FROM ops WHERE name = 'aten::linear'"), 10500);
    EXPECT_EQ(figure(*session, "SELECT device_ns FROM ops WHERE name = 'aten::linear'"), 4000);
    EXPECT_EQ(figure(*session, "SELECT op FROM memory_events ORDER BY id LIMIT 1"), 0);
    EXPECT_EQ(figure(*session, "SELECT count(*) FROM storages WHERE free_seq IS NOT NULL"), 1);
    EXPECT_EQ(figure(*session, "SELECT rank FROM processes"), 3);
    EXPECT_TRUE(hasGap(*session, "events")) << "one event has a negative duration";
    EXPECT_FALSE(hasGap(*session, "end"));
}

TEST_F(Kineto, CategoriesAreDeducedFromThePhasesOfALifetime) {
    std::string events;
    const auto op = [&](const std::string& name, int begin, int duration) {
        events += R"({"ph":"X","cat":"cpu_op","tid":1,"name":")" + name + R"(","ts":)" +
                  std::to_string(begin) + R"(,"dur":)" + std::to_string(duration) + "},\n";
    };
    const auto memory = [&](int at, int address, int bytes) {
        events += R"({"ph":"i","cat":"cpu_instant_event","name":"[memory]","tid":1,"ts":)" +
                  std::to_string(at) + R"(,"args":{"Device Type":1,"Device Id":0,"Addr":)" +
                  std::to_string(address) + R"(,"Bytes":)" + std::to_string(bytes) +
                  R"(,"Total Allocated":4096}},)" + "\n";
    };
    memory(5, 9, 100);  // before any op: nothing tells what for
    op("aten::linear", 10, 20);
    memory(11, 1, 101), memory(12, 2, 102);
    memory(35, 2, -102);  // between ops, still forward
    op("autograd::engine::evaluate_function: AddmmBackward0", 50, 40);
    memory(51, 3, 103), memory(52, 4, 104), memory(60, 1, -101), memory(61, 4, -104);
    op("Optimizer.step#SGD.step", 99, 0);  // an annotation of 2021
    events += R"({"ph":"X","cat":"user_annotation","name":"Optimizer.step#SGD.step","tid":1,)"
              R"("ts":100,"dur":20},)";
    op("aten::add_", 101, 10);
    memory(102, 5, 105), memory(103, 6, 106), memory(104, 6, -106), memory(105, 3, -103);
    events.resize(events.find_last_of(','));
    auto session = import(R"({"traceEvents":[)" + events + "]}");
    ASSERT_TRUE(session) << session.error().what;
    EXPECT_EQ(text(*session,
                   "SELECT group_concat(bytes || ' ' || category, ', ') FROM "
                   "(SELECT * FROM storages ORDER BY bytes)"),
              "100 unknown, 101 activation, 102 temporary, 103 gradient, 104 temporary, "
              "105 optimizer state, 106 temporary");
    EXPECT_TRUE(hasGap(*session, "categories")) << "they are no fact of the trace";
}

TEST_F(Kineto, ACutTraceIsImportedAsFarAsItGoes) {
    const std::string whole = kToday;
    int partial = 0;
    for (std::size_t length = 1; length + 3 < whole.size(); length += 37) {
        auto session = import(whole.substr(0, length));
        if (!session) {
            EXPECT_EQ(session.error().code, ErrorCode::BadInput);
            continue;
        }
        EXPECT_TRUE(hasGap(*session, "end")) << "cut at " << length;
        ++partial;
    }
    EXPECT_GT(partial, 10);
    EXPECT_FALSE(import(R"({"traceEvents":[{"ph":"X")"));
    EXPECT_FALSE(import(R"({"traceEvents":[]})"));
    EXPECT_FALSE(import("{\"traceEvents\":" + std::string(1'000'000, '[')));
}

TEST_F(Kineto, ABareArrayIsATraceToo) {
    auto session =
        import(R"([{"ph":"X","cat":"cpu_op","name":"aten::add","tid":1,"ts":1,"dur":1}])");
    ASSERT_TRUE(session) << session.error().what;
    EXPECT_EQ(session->counts()->ops, 1);
    EXPECT_TRUE(hasGap(*session, "memory"));
}

TEST_F(Kineto, WithoutCategoriesTheProcessTellsOpsFromKernels) {
    auto session = import(R"([
{"name":"aten::add","ph":"X","ts":100,"dur":60,"tid":1,"pid":"CPU functions","args":{}},
{"name":"aten::to","ph":"X","ts":110,"dur":32,"tid":1,"pid":"CPU functions","args":{}},
{"name":"Optimizer.step#SGD.step","ph":"X","ts":200,"dur":9,"tid":1,"pid":"CPU functions","args":{}},
{"name":"aten::add_","ph":"X","ts":203,"dur":3,"tid":1,"pid":"CPU functions","args":{}},
{"name":"aten::add","ph":"s","ts":101,"tid":1,"pid":"CPU functions","id":1,"cat":"cpu_to_cuda","args":{}},
{"name":"add_kernel","ph":"X","ts":120,"dur":5,"tid":0,"pid":"CUDA functions","args":{}}])");
    ASSERT_TRUE(session) << session.error().what;
    EXPECT_EQ(figure(*session, "SELECT count(*) FROM ops"), 3);
    EXPECT_EQ(figure(*session, "SELECT count(*) FROM kernels"), 1);
    EXPECT_EQ(text(*session, "SELECT name FROM ops WHERE phase = 'optimizer'"), "aten::add_");
    EXPECT_TRUE(hasGap(*session, "memory"));
}

TEST(KinetoNames, ModulesAndFrames) {
    using Modules = std::vector<std::pair<std::string, std::string>>;
    EXPECT_EQ(modulesOf("TOP(Net)::forward.layer1(Sequential)::forward.0(a.B)::forward"),
              (Modules{{"layer1", "Sequential"}, {"0", "a.B"}}));
    EXPECT_EQ(modulesOf("))(("), Modules{});
    EXPECT_EQ(framesOf("/a/conv.py(443): forward;/a/module.py(1): _call_impl;t.py(5): <module>"),
              (std::vector<std::string>{"t.py(5): <module>", "conv.py(443): forward"}));
    EXPECT_EQ(framesOf(";;"), std::vector<std::string>{});
}

}  // namespace
}  // namespace hw::core
