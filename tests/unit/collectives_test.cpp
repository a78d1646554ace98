// SPDX-License-Identifier: MIT
// What a plan may do with the collectives of a step: nothing.
#include "core/session/collectives.h"

#include "core/memory/evaluate.h"
#include "core/session/exchanges.h"
#include "core/session/session_writer.h"
#include "tests/unit/graph_builder.h"

namespace hw::core {
namespace {

/// Two tensors that are summed over all ranks, as c10d's ops are recorded: they return what they
/// were given, and write it without saying so.
TrainingGraph twoSums() {
    test::GraphBuilder builder;
    const auto data = builder.constant(8);
    const auto a = builder.one("make", {data}, 100);
    const auto b = builder.one("make", {data}, 100);
    const auto sumA = builder.view(a), sumB = builder.view(b);
    builder.one("read", {sumA, sumB}, 8);
    TrainingGraph graph = builder.build();
    graph.recorded = true;
    graph.ops[2].name = graph.ops[3].name = "c10d::allreduce_";
    EXPECT_EQ(graph.finish(), "");
    return graph;
}

std::vector<Action> computing(const std::vector<OpIndex>& ops) {
    std::vector<Action> schedule;
    for (const OpIndex op : ops) schedule.push_back(Action::compute(op));
    return schedule;
}

TEST(Collectives, KeepTheirOrder) {
    TrainingGraph graph = twoSums();
    EXPECT_TRUE(evaluate(graph, computing({0, 1, 2, 3, 4})).valid);
    EXPECT_FALSE(evaluate(graph, computing({0, 1, 3, 2, 4})).valid)
        << "another rank would wait for the first while this one waits for the second";
    EXPECT_FALSE(evaluate(graph, computing({0, 2, 1, 3, 4})).valid) << "nor may other ops pass one";
    graph.ops[2].name = graph.ops[3].name = "aten::view";
    ASSERT_EQ(graph.finish(), "");
    EXPECT_TRUE(evaluate(graph, computing({0, 1, 3, 2, 4})).valid) << "views may come in any order";
}

TEST(Collectives, RunOnce) {
    const TrainingGraph graph = twoSums();
    std::vector<Action> schedule = computing({0, 1, 2, 3, 4});
    schedule.push_back(Action::recompute(2, {0}));
    EXPECT_FALSE(evaluate(graph, schedule).valid);
    EXPECT_TRUE(graph.ops[2].once);
}

TEST(Collectives, AreExchangedWithSomebodyAndUsedSomewhere) {
    auto session = SessionWriter::inMemory();
    for (const std::int64_t id : {1, 2}) {
        StorageRow storage;
        storage.id = id, storage.allocSeq = 0;
        ASSERT_TRUE(session.insert(storage));
        TensorRow tensor;
        tensor.id = id, tensor.storage = id;
        ASSERT_TRUE(session.insert(tensor));
    }
    std::int64_t next = 0;
    const auto op = [&](const char* name, const char* args, std::vector<OpRow::Input> inputs) {
        OpRow row;
        row.id = row.seq = next, row.beginNs = 10 * next++, row.name = name, row.args = args;
        row.inputs = std::move(inputs);
        ASSERT_TRUE(session.insert(row));
    };
    op("c10d::recv_", R"({"a":[[{"t":1}],{"opaque":"Object"},3,7],"k":{}})", {{1, 0}});
    op("c10d::send", R"({"a":[[{"t":2}],{"opaque":"Object"},2,0],"k":{}})", {{2, 0}});
    op("aten::add", "", {{2, 0}});
    op("aten::add", "", {{1, 0}});
    op("c10d::allreduce_", R"({"a":[[{"t":2}],{"opaque":"Object"}],"k":{}})", {{2, 0}});
    StepRow step;
    step.firstSeq = 0, step.endSeq = 100;
    const auto exchanges = exchangesOf(session, step);
    ASSERT_TRUE(exchanges) << exchanges.error().what;
    ASSERT_EQ(exchanges->size(), 3u);
    const Exchange &received = (*exchanges)[0], &sent = (*exchanges)[1], &met = (*exchanges)[2];
    EXPECT_EQ(received.kind, Exchange::Kind::Receive);
    EXPECT_EQ(std::pair(received.peer, received.tag), std::pair(3, std::int64_t{7}));
    EXPECT_EQ(received.use, 3) << "not what is sent";
    EXPECT_EQ(received.useBeginNs, 30);
    EXPECT_EQ(sent.kind, Exchange::Kind::Send);
    EXPECT_EQ(sent.peer, 2);
    EXPECT_FALSE(sent.use);
    EXPECT_EQ(met.kind, Exchange::Kind::Meeting);
    EXPECT_FALSE(met.use);
}

TEST(Collectives, AreToldByOperationGroupAndBytes) {
    auto session = SessionWriter::inMemory();
    const auto tensor = [&](std::int64_t id, const char* dtype, const char* sizes) {
        TensorRow row;
        row.id = id, row.dtype = dtype, row.sizes = sizes;
        ASSERT_TRUE(session.insert(row));
    };
    tensor(1, "float32", "[10]");
    tensor(2, "bfloat16", "[4,5]");
    tensor(3, "float32", "[20]");
    std::int64_t next = 0;
    const auto op = [&](const char* name, const char* args, std::vector<OpRow::Output> outputs) {
        OpRow row;
        row.id = row.seq = next++, row.name = name, row.args = args, row.outputs = outputs;
        ASSERT_TRUE(session.insert(row));
    };
    op("c10d::allreduce_", R"({"a":[[{"t":1},{"t":2}],{"opaque":"Object"}],"k":{}})", {{1, false}});
    op("c10d::allreduce_", R"({"a":[[{"t":1}],{"opaque":"Object"}],"k":{}})", {{1, false}});
    op("_c10d_functional::all_gather_into_tensor", R"({"a":[{"t":1},2,"tp"],"k":{}})", {{3, true}});
    op("_c10d_functional::wait_tensor", R"({"a":[{"t":3}],"k":{}})", {{3, false}});
    op("aten::add", R"({"a":[{"t":3}],"k":{}})", {{3, false}});
    op("c10d::barrier", "", {});
    StepRow step;
    step.firstSeq = 0, step.endSeq = 100;
    const auto uses = collectivesOf(session, step);
    ASSERT_TRUE(uses) << uses.error().what;
    std::string told;
    for (const CollectiveUse& use : *uses)
        told += use.operation + " " + use.group + " " + std::to_string(use.count) + " " +
                std::to_string(use.bytes.count()) + "\n";
    EXPECT_EQ(told, "all-reduce  2 120\nall-gather tp 1 80\nwait  1 0\nbarrier  1 0\n");
}

}  // namespace
}  // namespace hw::core
