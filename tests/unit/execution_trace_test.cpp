// SPDX-License-Identifier: MIT
#include "core/import/execution_trace.h"

#include <fstream>

#include "core/memory/evaluate.h"
#include "tests/unit/memory_rows.h"

namespace hw::core {
namespace {

using test::figure;
using test::hasGap;
using test::text;

constexpr const char* kPublic = "execution-trace/benchmark_simple_add_et.json.gz";
constexpr const char* kPublicTimes = "execution-trace/benchmark_simple_add_trace.json.gz";

TEST(PublicExecutionTrace, IsAStepToPlan) {
    SKIP_WITHOUT_TEST_DATA(kPublic);
    auto session = openAny(test::testData(kPublic));
    ASSERT_TRUE(session) << session.error().what;
    // 38 nodes, 28 with a schema; 16 of them call no op, and two aten::mul make their own result.
    const auto graph = loadGraph(*session, 0);
    ASSERT_TRUE(graph) << graph.error().what;
    EXPECT_EQ(graph->ops.size(), 18u);
    EXPECT_EQ(graph->storages.size(), 12u);
    EXPECT_EQ(graph->totalTime(), Nanoseconds(18'000)) << "no times: 1 us each";
    const Evaluation baseline = evaluate(*graph, baselineSchedule(*graph));
    ASSERT_TRUE(baseline.valid) << baseline.why;
    EXPECT_GE(baseline.peak, Bytes(2 * 41943040)) << "aten::mul of 10485760 floats";
    for (const char* gap : {"lifetimes", "times", "workspace"})
        EXPECT_TRUE(hasGap(*session, gap)) << gap;
}

TEST(PublicExecutionTrace, JoinsTheProfilersTimes) {
    SKIP_WITHOUT_TEST_DATA(kPublic);
    SessionWriter session = SessionWriter::inMemory();
    const auto summary =
        importFile(test::testData(kPublic), "auto", session, test::testData(kPublicTimes));
    ASSERT_TRUE(summary) << summary.error().what;
    ASSERT_TRUE(summary->join);
    EXPECT_EQ(summary->join->matched, 28);
    EXPECT_EQ(summary->join->ops, 28);
    EXPECT_FALSE(hasGap(session, "times"));
    EXPECT_GT(figure(session, "SELECT min(begin_ns) FROM ops"), 1689360788000000000);
    SessionWriter other = SessionWriter::inMemory();
    EXPECT_EQ(importFile(test::testData(kPublicTimes), "auto", other, test::testData(kPublicTimes))
                  .error()
                  .code,
              ErrorCode::Usage);
}

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
