// SPDX-License-Identifier: MIT
// The expected figures of the public samples come from Python's own json.
#include "core/import/kineto.h"

#include <fstream>

#include "core/session/device_work.h"
#include "core/session/recorded_memory.h"
#include "tests/unit/memory_rows.h"

namespace hw::core {
namespace {

using test::figure;
using test::hasGap;
using test::text;

TEST(PublicKineto, ResNet50Of2021) {
    const char* file = "kineto/resnet50-train.pt.trace.json.gz";
    SKIP_WITHOUT_TEST_DATA(file);
    auto session = openAny(test::testData(file));
    ASSERT_TRUE(session) << session.error().what;
    EXPECT_EQ(figure(*session, "SELECT count(*) FROM ops"), 23622);
    EXPECT_EQ(figure(*session, "SELECT count(*) FROM memory_events"), 12838);
    EXPECT_EQ(figure(*session, "SELECT count(*) FROM kernels"), 8772);
    EXPECT_EQ(figure(*session, "SELECT count(*) FROM copies"), 324);
    EXPECT_EQ(figure(*session, "SELECT count(*) FROM layers"), 229);
    EXPECT_EQ(figure(*session, "SELECT count(*) FROM ops WHERE phase = 'backward'"), 8652)
        << "all ops of the autograd thread";
    EXPECT_GT(figure(*session, "SELECT count(*) FROM ops WHERE phase = 'forward'"), 5000);
    EXPECT_GT(figure(*session, "SELECT count(*) FROM ops WHERE phase = 'optimizer'"), 1000);
    EXPECT_EQ(figure(*session, "SELECT sum(bytes) FROM memory_events"), 19267840);
    for (const char* gap : {"tensors", "levels", "lifetimes", "layers"})
        EXPECT_TRUE(hasGap(*session, gap)) << gap;

    const auto memory = loadRecordedMemory(*session);
    ASSERT_TRUE(memory) << memory.error().what;
    EXPECT_EQ(memory->device, "cuda:0");
    ASSERT_EQ(memory->moments.size(), 8220u);
    EXPECT_EQ(memory->moments.back().allocated, Bytes(0)) << "all that was allocated is freed";
    const std::int64_t begin = figure(*session, "SELECT min(begin_ns) FROM ops");
    EXPECT_EQ(memory->moments.back().begin.count() + begin, 1623142624491931000)
        << "the time of the device's last [memory] event";
    Bytes peak;
    for (const auto& moment : memory->moments) peak = std::max(peak, moment.allocated);
    EXPECT_EQ(peak, Bytes(2791636480));
    EXPECT_EQ(session->lastStep().error().code, ErrorCode::BadInput);
}

TEST(PublicKineto, WithAddressesAndTotals) {
    const char* file = "kineto/v100-rank1-memory.json.gz";
    SKIP_WITHOUT_TEST_DATA(file);
    auto session = openAny(test::testData(file));
    ASSERT_TRUE(session) << session.error().what;
    EXPECT_EQ(figure(*session, "SELECT count(*) FROM ops"), 56680);
    EXPECT_EQ(figure(*session, "SELECT count(*) FROM memory_events"), 28010);
    EXPECT_EQ(figure(*session, "SELECT count(*) FROM kernels"), 19370);
    EXPECT_EQ(figure(*session, "SELECT count(*) FROM copies"), 2920);
    EXPECT_EQ(figure(*session, "SELECT count(*) FROM storages"), 14005);
    EXPECT_EQ(figure(*session, "SELECT count(*) FROM storages WHERE free_seq > alloc_seq"), 14005);
    EXPECT_EQ(figure(*session, "SELECT max(allocated_bytes) FROM memory_events"), 6629508096);
    EXPECT_EQ(figure(*session, "SELECT rank FROM processes"), 1);
    EXPECT_EQ(text(*session, "SELECT name FROM devices WHERE kind = 'cuda' AND ordinal = 1"),
              "Tesla V100-SXM2-32GB");
    EXPECT_EQ(figure(*session, "SELECT count(*) FROM ops WHERE phase = 'backward'"), 40050);
    EXPECT_FALSE(hasGap(*session, "levels"));
    EXPECT_FALSE(hasGap(*session, "lifetimes"));

    const std::int64_t origin = loadRecordedMemory(*session)->originNs;
    const auto work = loadDeviceWork(*session, 1, origin);
    ASSERT_TRUE(work) << work.error().what;
    ASSERT_EQ(work->streams.size(), 2u);
    EXPECT_EQ(work->streams[0].id, 7);
    EXPECT_EQ(work->streams[0].spans.size(), 17350u + 2920) << "kernels and copies";
    EXPECT_EQ(work->streams[1].id, 14);
    EXPECT_EQ(work->streams[1].spans.size(), 2020u) << "the all-reduces";
    for (const auto& span : work->streams[1].spans) {
        ASSERT_TRUE(work->names[span.name].starts_with("ncclKernel"));
        ASSERT_LT(span.begin, span.end);
    }
    EXPECT_TRUE(loadDeviceWork(*session, 0, origin)->streams.empty());
}

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
