// SPDX-License-Identifier: MIT
// Logs of the DTR simulator against the figures beside them: of the public logs, those of its own
// reference runs.
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/import/import.h"
#include "core/memory/evaluate.h"
#include "tests/unit/expected.h"

namespace hw {
namespace {

using namespace hw::core;
using nlohmann::json;

class SimrdLog : public testing::TestWithParam<std::string> {
protected:
    void SetUp() override {
        expected_ = test::expectedOf(GetParam());
        auto session = openAny(GetParam());
        ASSERT_TRUE(session) << session.error().what;
        auto graph = loadGraph(*session, 0);
        ASSERT_TRUE(graph) << graph.error().what;
        graph_ = std::move(*graph);
    }
    json expected_;
    TrainingGraph graph_;
};

TEST_P(SimrdLog, BaselineIsTheReference) {
    const Evaluation baseline = evaluate(graph_, baselineSchedule(graph_));
    ASSERT_TRUE(baseline.valid) << baseline.why;
    EXPECT_EQ(baseline.peak.count(), expected_["base"]["memory"].get<std::int64_t>());
    EXPECT_EQ(baseline.time.count(), expected_["base"]["compute"].get<std::int64_t>());
    EXPECT_EQ(graph_.constantBytes().count(), expected_["base"]["const"].get<std::int64_t>());
}

INSTANTIATE_TEST_SUITE_P(Data, SimrdLog, testing::ValuesIn(test::simrdLogs()), test::dataNameOf);

// --- small logs of our own

Result<Session> fromText(const test::TemporaryFolder& folder, const std::string& text) {
    const std::string path = folder / "small.log";
    std::ofstream(path) << text;
    return openAny(path);
}

constexpr const char* kSmall = R"({"INSTRUCTION":"CONSTANT","NAME":"w"}
{"INSTRUCTION":"MEMORY","NAME":"w","MEMORY":"8"}
{"INSTRUCTION":"ANNOTATE","ANNOTATION":"START"}
{"INSTRUCTION":"CONSTANT","NAME":"x"}
{"INSTRUCTION":"MEMORY","NAME":"x","MEMORY":"100"}
{"INSTRUCTION":"CALL","NAME":"relu","ARGS":["x"],"RESULT":["y"],"TIME":"7"}
{"INSTRUCTION":"MEMORY","NAME":"y","MEMORY":"100"}
{"INSTRUCTION":"ALIAS","NAME":"y","ALIAS":"-1"}
{"INSTRUCTION":"CALL","NAME":"view","ARGS":["y"],"RESULT":["v"],"TIME":"1"}
{"INSTRUCTION":"MEMORY","NAME":"v","MEMORY":"100"}
{"INSTRUCTION":"ALIAS","NAME":"v","ALIAS":"0"}
{"INSTRUCTION":"RELEASE","NAME":"y"}
{"INSTRUCTION":"MUTATE","NAME":"add_","ARGS":["v","x"],"MUTATE":[0],"TIME":"5"}
{"INSTRUCTION":"RELEASE","NAME":"undefined"}
)";

TEST(SimrdImport, FollowsTheLog) {
    test::TemporaryFolder folder;
    auto session = fromText(folder, kSmall);
    ASSERT_TRUE(session) << session.error().what;
    const auto graph = loadGraph(*session, 0);
    ASSERT_TRUE(graph) << graph.error().what;
    EXPECT_EQ(graph->ops.size(), 3u);
    EXPECT_EQ(graph->storages.size(), 3u)
        << "x, y and the fresh output of the mutation; w came before START";
    EXPECT_TRUE(graph->ops[1].viewOnly);
    const Evaluation baseline = evaluate(*graph, baselineSchedule(*graph));
    ASSERT_TRUE(baseline.valid) << baseline.why;
    EXPECT_EQ(baseline.peak, Bytes(300)) << "y lives while its view does";
    EXPECT_EQ(baseline.time, Nanoseconds(13));
    EXPECT_EQ(graph->finalTensors.size(), 2u);
}

TEST(SimrdImport, NamesTheLineThatIsWrong) {
    test::TemporaryFolder folder;
    auto broken = [&](const std::string& from, const std::string& to) {
        std::string text = kSmall;
        text.replace(text.find(from), from.size(), to);
        const auto session = fromText(folder, text);
        if (session) return std::string("accepted");
        EXPECT_EQ(session.error().code, ErrorCode::BadInput);
        return session.error().what;
    };
    EXPECT_NE(broken("\"MEMORY\":\"8\"", "\"MEMORY\":\"-8\"").find("line 2"), std::string::npos);
    EXPECT_NE(broken("\"ARGS\":[\"x\"]", "\"ARGS\":[\"z\"]").find("'z'"), std::string::npos);
    EXPECT_NE(broken("\"ALIAS\":\"0\"", "\"ALIAS\":\"3\"").find("alias"), std::string::npos);
    EXPECT_NE(broken("\"TIME\":\"7\"", "\"TIME\":\"7x\"").find("'7x'"), std::string::npos);
    EXPECT_NE(
        broken("\"TIME\":\"7\"", "\"TIME\":\"9223372036854775807\"").find("times that add up"),
        std::string::npos);
    EXPECT_NE(broken("\"NAME\":\"y\",\"MEMORY\":\"100\"",
                     "\"NAME\":\"y\",\"MEMORY\":\"72057594037927936\"")
                  .find("sizes that add up"),
              std::string::npos);
    EXPECT_NE(broken("\"MUTATE\",", "\"MYSTERY\",").find("MYSTERY"), std::string::npos);
}

TEST(SimrdImport, EveryCutOfALogIsRefusedOrWhole) {
    test::TemporaryFolder folder;
    const std::string text = kSmall;
    for (std::size_t length = 1; length < text.size(); length += 11) {
        auto session = fromText(folder, text.substr(0, length));
        if (!session) {
            EXPECT_EQ(session.error().code, ErrorCode::BadInput);
        } else {
            EXPECT_TRUE(loadGraph(*session, 0)) << "cut at " << length;
        }
    }
}

TEST(Import, RefusesWhatItDoesNotKnow) {
    test::TemporaryFolder folder;
    EXPECT_EQ(openAny(folder / "missing").error().code, ErrorCode::BadInput);
    EXPECT_EQ(fromText(folder, "").error().code, ErrorCode::BadInput);
    EXPECT_EQ(fromText(folder, std::string(5000, '\0')).error().code, ErrorCode::BadInput);
    EXPECT_EQ(fromText(folder, "{\"traceEvents\":[{\"ph\":\"X\"").error().code,
              ErrorCode::BadInput);
    SessionWriter session = SessionWriter::inMemory();
    EXPECT_EQ(importFile(folder / "missing", "tarot", session).error().code, ErrorCode::Usage);
}

}  // namespace
}  // namespace hw
