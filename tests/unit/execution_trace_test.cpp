// SPDX-License-Identifier: MIT
#include "core/import/execution_trace.h"

#include <fstream>

#include "core/memory/evaluate.h"
#include "tests/unit/expected.h"

namespace hw::core {
namespace {

using test::figure;
using test::hasGap;
using test::text;

/// Of the public file; those of the sample lie beside it.
nlohmann::json figuresOf(const std::string& file) {
    if (test::dataName(file).starts_with("Samples")) return test::expectedOf(file);
    // 38 nodes, 28 with a schema; 16 of them call no op, and two aten::mul make their own result
    // of 10485760 floats.
    return {{"nodes_with_schema", 28},
            {"matched", 28},
            {"ops", 18},
            {"storages", 12},
            {"peak_at_least", 2 * 41943040},
            {"first_op_after", 1689360788000000000}};
}

class ExecutionTraceFile : public testing::TestWithParam<std::string> {};

TEST_P(ExecutionTraceFile, IsAStepToPlan) {
    const nlohmann::json expected = figuresOf(GetParam());
    auto session = openAny(GetParam());
    ASSERT_TRUE(session) << session.error().what;
    const auto graph = loadGraph(*session, 0);
    ASSERT_TRUE(graph) << graph.error().what;
    EXPECT_EQ(graph->ops.size(), expected["ops"].get<std::size_t>());
    EXPECT_EQ(graph->storages.size(), expected["storages"].get<std::size_t>());
    EXPECT_EQ(graph->totalTime(), Nanoseconds(1000) * static_cast<std::int64_t>(graph->ops.size()))
        << "no times: 1 us each";
    const Evaluation baseline = evaluate(*graph, baselineSchedule(*graph));
    ASSERT_TRUE(baseline.valid) << baseline.why;
    EXPECT_GE(baseline.peak.count(), expected["peak_at_least"].get<std::int64_t>());
    for (const char* gap : {"lifetimes", "times", "workspace"})
        EXPECT_TRUE(hasGap(*session, gap)) << gap;
}

TEST_P(ExecutionTraceFile, JoinsTheProfilersTimes) {
    const nlohmann::json expected = figuresOf(GetParam());
    std::string times = GetParam();
    times.replace(times.rfind("_et."), 4, "_trace.");
    SessionWriter session = SessionWriter::inMemory();
    const auto summary = importFile(GetParam(), "auto", session, times);
    ASSERT_TRUE(summary) << summary.error().what;
    ASSERT_TRUE(summary->join);
    EXPECT_EQ(summary->join->matched, expected["matched"].get<std::int64_t>());
    EXPECT_EQ(summary->join->ops, expected["nodes_with_schema"].get<std::int64_t>());
    EXPECT_FALSE(hasGap(session, "times"));
    EXPECT_GT(figure(session, "SELECT min(begin_ns) FROM ops"),
              expected["first_op_after"].get<std::int64_t>());
    SessionWriter other = SessionWriter::inMemory();
    EXPECT_EQ(importFile(times, "auto", other, times).error().code, ErrorCode::Usage);
}
INSTANTIATE_TEST_SUITE_P(
    Data, ExecutionTraceFile,
    testing::ValuesIn(test::dataFiles({"execution-trace/training_et.json.gz",
                                       "execution-trace/benchmark_simple_add_et.json.gz"})),
    test::dataNameOf);

class ExecutionTrace : public testing::Test {
protected:
    Result<Session> import(const std::string& nodes) {
        std::ofstream(folder_ / "et.json", std::ios::binary)
            << R"({"schema": "1.1.1-chakra.0.0.4", "pid": 5, "junk": [[{"a": [1]}]], "nodes": [)"
            << nodes << "]}";
        return openAny(folder_ / "et.json");
    }
    test::TemporaryFolder folder_;
};

std::string node(int id, int parent, const std::string& name, const std::string& schema,
                 const std::string& inputs, const std::string& outputs) {
    const auto side = [](const std::string& tensors) {
        std::string types;
        for (std::size_t at = tensors.find("\"cpu\""); at != std::string::npos;
             at = tensors.find("\"cpu\"", at + 1))
            types += types.empty() ? "\"Tensor(float)\"" : ",\"Tensor(float)\"";
        return R"({"values":[)" + tensors + R"(],"types":[)" + types + R"(],"shapes":[[4]]})";
    };
    return R"({"id":)" + std::to_string(id) + R"(,"name":")" + name + R"(","ctrl_deps":)" +
           std::to_string(parent) + R"(,"inputs":)" + side(inputs) + R"(,"outputs":)" +
           side(outputs) + R"(,"attrs":[{"name":"rf_id","type":"uint64","value":)" +
           std::to_string(id) + R"(},{"name":"op_schema","type":"string","value":")" + schema +
           R"("}]})";
}

TEST_F(ExecutionTrace, WritesViewsAndIdsThatAreGivenAgain) {
    auto session = import(
        node(2, 1, "aten::relu", "aten::relu(Tensor self) -> Tensor", R"([1,10,0,4,4,"cpu"])",
             R"([2,11,0,4,4,"cpu"])") +
        "," +
        node(3, 1, "aten::view", "aten::view(Tensor(a) self, SymInt[] size) -> Tensor(a)",
             R"([2,11,0,4,4,"cpu"])", R"([3,11,0,4,4,"cpu"])") +
        "," +
        node(4, 1, "aten::add_",
             "aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)",
             R"([3,11,0,4,4,"cpu"],[1,10,0,4,4,"cpu"])", R"([3,11,0,4,4,"cpu"])") +
        "," +
        node(5, 1, "aten::empty", "aten::empty(SymInt[] size) -> Tensor", "",
             R"([2,11,0,8,4,"cpu"])"));
    ASSERT_TRUE(session) << session.error().what;
    const auto graph = loadGraph(*session, 0);
    ASSERT_TRUE(graph) << graph.error().what;
    ASSERT_EQ(graph->ops.size(), 4u);
    EXPECT_EQ(graph->storages.size(), 3u) << "storage 11 was freed and given again";
    EXPECT_TRUE(graph->ops[1].viewOnly);
    ASSERT_EQ(graph->ops[2].writes.size(), 1u);
    EXPECT_FALSE(graph->ops[2].outputs[0].makesStorage);
    EXPECT_TRUE(graph->ops[3].outputs[0].makesStorage);
    EXPECT_TRUE(evaluate(*graph, baselineSchedule(*graph)).valid);
}

TEST_F(ExecutionTrace, RefusesWhatHasNoOps) {
    EXPECT_EQ(import("").error().code, ErrorCode::BadInput);
    EXPECT_EQ(import("1, [2], {}").error().code, ErrorCode::BadInput);
    EXPECT_FALSE(import(node(2, 3, "aten::a", "aten::a()", "", "") + "," +
                        node(3, 2, "aten::b", "aten::b()", "", "")))
        << "each is the other's parent";
    EXPECT_FALSE(import(
        node(2, 1, "aten::a", "aten::a(Tensor x)", R"([1,2,0,9223372036854775807,4,"cpu"])", "")));
    EXPECT_FALSE(import(node(2, 1, "aten::a", "aten::a(Tensor x)", R"([1,2,0,-4,4,"cpu"])", "")));
}

}  // namespace
}  // namespace hw::core
