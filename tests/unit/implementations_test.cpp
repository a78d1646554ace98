// SPDX-License-Identifier: MIT
#include "core/plan/implementations.h"

#include <fstream>

#include "core/memory/evaluate.h"
#include "core/session/access.h"
#include "core/session/load_menu.h"
#include "tests/unit/graph_builder.h"
#include "tests/unit/test_data.h"

namespace hw::core {
namespace {

// x = layer(c); y = relu(x); z = layer(y); dy = layer_backward(z, y); dx = relu_backward(dy, x).
// x is storage 1, y 2, z 3, dy 4, dx 5.
struct Relu {
    Relu() {
        const auto c = b.constant(10);
        x = b.one("layer", {c}, 100, 5);
        y = b.one("relu", {x}, 100, 2);
        z = b.one("layer", {y}, 100, 5);
        dy = b.one("layer_backward", {z, y}, 100, 10);
        b.release(z);
        b.release(y);
        dx = b.one("relu_backward", {dy, x}, 100, 3);
        b.release(x);
        b.release(dy);
        b.final(c);
        b.final(dx);
        graph = b.build();
    }
    test::GraphBuilder b;
    TensorIndex x, y, z, dy, dx;
    TrainingGraph graph;
};

std::string document(const std::string& entries) {
    return R"({"format": "highwater-menu", "version": 1, "implementations": [)" + entries + "]}";
}

Menu menuOf(const TrainingGraph& graph, const std::string& entries) {
    auto menu = parseMenu(document(entries), graph);
    EXPECT_TRUE(menu) << (menu ? "" : menu.error().what);
    return menu ? *menu : Menu{};
}

Evaluation judgedUnder(const TrainingGraph& graph, const Menu& menu,
                       const ImplementationChoice& choice) {
    const auto under = applyImplementations(graph, menu, choice);
    EXPECT_TRUE(under) << (under ? "" : under.error().what);
    return under ? evaluate(*under, baselineSchedule(*under)) : Evaluation{};
}

TEST(Implementations, AnAlgorithmChangesTimeAndWorkspaceOnly) {
    const Relu relu;
    const Menu menu = menuOf(
        relu.graph,
        R"({"op": 2, "name": "fft", "kind": "algorithm", "time_ns": 3, "workspace_bytes": 40})");
    const auto under = applyImplementations(relu.graph, menu, {{2, "fft"}});
    ASSERT_TRUE(under);
    EXPECT_EQ(under->fingerprint(), relu.graph.fingerprint());
    const Schedule schedule = baselineSchedule(relu.graph);
    const Evaluation before = evaluate(relu.graph, schedule), after = evaluate(*under, schedule);
    EXPECT_EQ((before.time - after.time).count(), 2);
    std::vector<MemoryPoint> plain, chosen;
    evaluate(relu.graph, schedule, plain);
    evaluate(*under, schedule, chosen);
    for (std::size_t i = 0; i < schedule.size(); ++i)
        EXPECT_EQ((chosen[i].during - plain[i].during).count(),
                  schedule[i].kind == ActionKind::Compute && schedule[i].target == 2 ? 40 : 0);
}

TEST(Implementations, AGradientThatReadsTheOutputLetsTheInputGo) {
    const Relu relu;
    const Menu menu = menuOf(relu.graph, R"({"op": 1, "name": "by-result",
        "kind": "output-activated", "backward": 4, "instead_of": 1, "backward_time_ns": 4})");
    const Evaluation before = evaluate(relu.graph, baselineSchedule(relu.graph));
    const Evaluation after = judgedUnder(relu.graph, menu, {{1, "by-result"}});
    ASSERT_TRUE(after.valid) << after.why;
    EXPECT_EQ(before.peak.count(), 10 + 4 * 100);  // c, x, y, z, dy
    EXPECT_EQ(after.peak.count(), 10 + 3 * 100);   // c, y, z, dy; later y stays for dx
    EXPECT_EQ((after.time - before.time).count(), 1);
    EXPECT_FALSE(evaluate(relu.graph, baselineSchedule(*applyImplementations(relu.graph, menu,
                                                                             {{1, "by-result"}})))
                     .valid)
        << "the captured gradient needs x";
}

TEST(Implementations, AnEncodedFormIsAStorageBehindTheOthers) {
    const Relu relu;
    const Menu menu = menuOf(relu.graph, R"({"op": 1, "name": "mask",
        "kind": "intermediate-activated", "backward": 4, "instead_of": 1, "bytes": 4})");
    const auto under = applyImplementations(relu.graph, menu, {{1, "mask"}});
    ASSERT_TRUE(under);
    ASSERT_EQ(under->storages.size(), relu.graph.storages.size() + 1);
    EXPECT_EQ(under->storages.back().bytes, Bytes(4));
    EXPECT_EQ(under->storages.back().creator, 1);
    EXPECT_EQ(under->storages.back().readers, ShortList<OpIndex>{4});
    const Evaluation after = judgedUnder(relu.graph, menu, {{1, "mask"}});
    ASSERT_TRUE(after.valid) << after.why;
    EXPECT_EQ(after.peak.count(), 10 + 3 * 100 + 4);  // c, y, z, dy and the mask
}

TEST(Implementations, InPlaceSharesOneStorage) {
    const Relu relu;
    const Menu menu = menuOf(relu.graph, R"({"op": 1, "name": "in-place", "kind": "in-place",
        "takes": 1, "backward": 4})");
    const auto under = applyImplementations(relu.graph, menu, {{1, "in-place"}});
    ASSERT_TRUE(under) << under.error().what;
    EXPECT_EQ(under->storageOf(relu.y), under->storageOf(relu.x));
    EXPECT_EQ(under->storages[relu.b.storage(relu.y)].bytes, Bytes(0));
    EXPECT_EQ(under->storages[1].writers, ShortList<OpIndex>{1});
    const Evaluation after = judgedUnder(relu.graph, menu, {{1, "in-place"}});
    ASSERT_TRUE(after.valid) << after.why;
    EXPECT_EQ(after.peak.count(), 10 + 3 * 100);  // c, x that is y, z, dy
}

TEST(Implementations, RefuseWhatCannotGoTogether) {
    const Relu relu;
    const Menu menu = menuOf(relu.graph, R"(
        {"op": 1, "name": "in-place", "kind": "in-place", "takes": 1},
        {"op": 1, "name": "slow-gradient", "kind": "output-activated", "backward": 4,
         "instead_of": 1, "backward_time_ns": 9},
        {"op": 4, "name": "fft", "kind": "algorithm", "time_ns": 1, "workspace_bytes": 0})");
    const auto overwritten = applyImplementations(relu.graph, menu, {{1, "in-place"}});
    ASSERT_FALSE(overwritten) << "the gradient still reads what is overwritten";
    EXPECT_EQ(overwritten.error().code, ErrorCode::BadInput);
    EXPECT_NE(overwritten.error().what.find("version"), std::string::npos);
    EXPECT_FALSE(applyImplementations(relu.graph, menu, {{1, "slow-gradient"}, {4, "fft"}}));
    const auto unknown = applyImplementations(relu.graph, menu, {{4, "winograd"}});
    ASSERT_FALSE(unknown);
    EXPECT_NE(unknown.error().what.find("'winograd' of op 4"), std::string::npos);
    EXPECT_NE(unknown.error().hint.find("fft"), std::string::npos);
    EXPECT_FALSE(applyImplementations(relu.graph, menu, {{77, "fft"}}));
}

TEST(Menu, ComesBackAsWritten) {
    const Relu relu;
    const std::string entries = R"(
        {"op": 2, "name": "fft", "kind": "algorithm", "time_ns": 3, "workspace_bytes": 40},
        {"op": 1, "name": "by-result", "kind": "output-activated", "time_ns": 7, "backward": 4,
         "instead_of": 1, "backward_workspace_bytes": 5},
        {"op": 1, "name": "mask", "kind": "intermediate-activated", "backward": 4,
         "instead_of": 1, "bytes": 4},
        {"op": 1, "name": "in-place", "kind": "in-place", "takes": 1, "backward": 4})";
    const Menu menu = menuOf(relu.graph, entries);
    ASSERT_EQ(menu.implementations.size(), 4U);
    const auto again = parseMenu(writeMenu(menu), relu.graph);
    ASSERT_TRUE(again) << again.error().what;
    EXPECT_EQ(writeMenu(*again), writeMenu(menu));
    EXPECT_EQ(again->find(1, "by-result")->backwardWorkspace, Bytes(5));
    EXPECT_EQ(again->find(1, "in-place")->insteadOf, 1) << "what is taken, where nothing is said";
}

TEST(Menu, SaysWhatIsWrongWithIt) {
    const Relu relu;
    const std::pair<const char*, const char*> wrong[] = {
        {R"({"op": 2, "name": "a", "kind": "magic"})", "no kind 'magic'"},
        {R"({"op": 9, "name": "a", "kind": "algorithm"})", "'op' is 9, the graph has 5"},
        {R"({"op": 2, "name": "a", "kind": "algorithm", "time_ns": 3})", "states time_ns and"},
        {R"({"op": 2, "name": "a", "kind": "algorithm", "time_ns": -3, "workspace_bytes": 0})",
         "'time_ns' is no whole number"},
        {R"({"op": 2, "name": "a", "kind": "algorithm", "time_ns": 1, "workspace_bytes": 0,
             "bytes": 4})",
         "'bytes' has no meaning"},
        {R"({"op": 1, "name": "a", "kind": "output-activated", "backward": 4})",
         "'instead_of' is missing"},
        {R"({"op": 1, "name": "a", "kind": "output-activated", "backward": 4, "instead_of": 3})",
         "does not read"},
        {R"({"op": 1, "name": "a", "kind": "output-activated", "backward": 0, "instead_of": 1})",
         "does not come after"},
        {R"({"op": 1, "name": "a", "kind": "output-activated", "backward": 4, "instead_of": 1,
             "output": 3})",
         "names output 3"},
        {R"({"op": 0, "name": "a", "kind": "in-place", "takes": 0})", "overwrite a constant"},
        {R"({"op": 1, "name": "a", "kind": "in-place", "takes": 3})", "does not read"},
        {R"({"op": 2, "name": "a", "kind": "algorithm", "time_ns": 1, "workspace_bytes": 0},
            {"op": 2, "name": "a", "kind": "algorithm", "time_ns": 2, "workspace_bytes": 0})",
         "entry 1: op 2 has 'a' already"},
        {R"({"op": 2, "kind": "algorithm"})", "'name' is missing"},
        {R"({"op": 2, "name": "a", "kind": 3})", "'kind' is missing or no text"},
        {"7", "no object"},
    };
    for (const auto& [entry, part] : wrong) {
        const auto menu = parseMenu(document(entry), relu.graph);
        ASSERT_FALSE(menu) << entry;
        EXPECT_EQ(menu.error().code, ErrorCode::BadInput);
        EXPECT_NE(menu.error().what.find(part), std::string::npos) << menu.error().what;
    }
    EXPECT_FALSE(parseMenu("{", relu.graph));
    EXPECT_FALSE(parseMenu("{}", relu.graph));
    EXPECT_FALSE(parseMenu(R"({"format": "highwater-menu", "version": 6e47})", relu.graph));
    EXPECT_FALSE(parseMenu(document(R"({"op": 2, "name": "a", "kind": "algorithm",
        "time_ns": 18446744073709551615, "workspace_bytes": 0})"),
                           relu.graph));
    EXPECT_FALSE(parseMenu(R"({"format": "highwater-menu", "version": 1, "implementations": 3})",
                           relu.graph));
    const auto newer = parseMenu(R"({"format": "highwater-menu", "version": 2})", relu.graph);
    ASSERT_FALSE(newer);
    EXPECT_NE(newer.error().what.find("version 2"), std::string::npos);
    const auto foreign = parseMenu(
        R"({"format": "highwater-menu", "version": 1, "graph": "sha256:0", "implementations": []})",
        relu.graph);
    ASSERT_FALSE(foreign);
    EXPECT_NE(foreign.error().what.find("another graph"), std::string::npos);
}

TEST(Menu, IsReadFromAFileThatIsNamedInErrors) {
    const Relu relu;
    const test::TemporaryFolder folder;
    const std::string path = folder / "menu.json";
    EXPECT_FALSE(readMenuFile(path, relu.graph));
    std::ofstream(path) << "[1, 2";
    const auto broken = readMenuFile(path, relu.graph);
    ASSERT_FALSE(broken);
    EXPECT_NE(broken.error().what.find(path), std::string::npos);
    std::ofstream(path) << document("");
    EXPECT_TRUE(readMenuFile(path, relu.graph));
}

TEST(Menu, ComesFromTheSessionsTable) {
    Relu relu;
    SessionWriter session = SessionWriter::inMemory();
    const auto empty = loadMenu(session, relu.graph);
    ASSERT_TRUE(empty);
    EXPECT_TRUE(empty->empty());
    for (std::size_t i = 0; i < relu.graph.ops.size(); ++i)
        relu.graph.ops[i].sessionId = 100 + static_cast<std::int64_t>(i);
    databaseOf(session).execute(
        "INSERT INTO implementations VALUES(102, 'fft', 3, 40), (102, 'direct', 9, 0),"
        " (5, 'of another step', 1, 1)");
    const auto menu = loadMenu(session, relu.graph);
    ASSERT_TRUE(menu) << menu.error().what;
    ASSERT_EQ(menu->implementations.size(), 2U);
    ASSERT_NE(menu->find(2, "fft"), nullptr);
    EXPECT_EQ(menu->find(2, "fft")->time, Nanoseconds(3));
    EXPECT_EQ(menu->find(2, "fft")->workspace, Bytes(40));
    databaseOf(session).execute("UPDATE implementations SET workspace_bytes = -1");
    EXPECT_FALSE(loadMenu(session, relu.graph));
}

// A session that holds the step of a graph, as far as menus and signatures ask.
struct Stored {
    Stored() {
        auto& database = databaseOf(session);
        database.execute("INSERT INTO processes(id) VALUES(1)");
        database.execute("INSERT INTO steps(id, process, first_seq, end_seq) VALUES(0, 1, 0, 100)");
        relu.graph.sessionStep = 0;
        relu.graph.costs = CostSet::Measured;
        std::vector<SignatureRow> rows;
        for (std::size_t i = 0; i < relu.graph.ops.size(); ++i) {
            const auto id = 100 + static_cast<std::int64_t>(i);
            relu.graph.ops[i].sessionId = id;
            database.execute(("INSERT INTO ops(id, seq, name) VALUES(" + std::to_string(id) + ", " +
                              std::to_string(i) + ", 'op')")
                                 .c_str());
            rows.push_back({id, 0, Bytes(100), 0, 0, std::nullopt});
        }
        EXPECT_TRUE(session.replaceSignatures(rows));
    }
    Relu relu;
    SessionWriter session = SessionWriter::inMemory();
};

TEST(Menu, OfEveryKindIsStoredAndReplaced) {
    Stored stored;
    const TrainingGraph& graph = stored.relu.graph;
    const Menu menu = menuOf(
        graph,
        R"({"op": 2, "name": "fft", "kind": "algorithm", "time_ns": 3, "workspace_bytes": 40},
           {"op": 1, "name": "mask", "kind": "intermediate-activated", "backward": 4,
            "instead_of": 1, "bytes": 13, "time_ns": 2, "backward_time_ns": 5},
           {"op": 1, "name": "in-place", "kind": "in-place", "takes": 1, "time_ns": 1})");
    ASSERT_TRUE(storeMenu(stored.session, graph, menu, {}));
    const auto read = loadMenu(stored.session, graph);
    ASSERT_TRUE(read) << read.error().what;
    EXPECT_EQ(writeMenu(*read), writeMenu(menu));
    TrainingGraph other = graph;
    other.sessionStep = 1;
    for (Op& op : other.ops) op.sessionId += 1000;
    EXPECT_TRUE(loadMenu(stored.session, other)->empty());
    ASSERT_TRUE(storeMenu(stored.session, graph, {}, {}));
    EXPECT_TRUE(loadMenu(stored.session, graph)->empty());
    databaseOf(stored.session).execute("UPDATE menus SET document = '{}'");
    const auto broken = loadMenu(stored.session, graph);
    ASSERT_FALSE(broken);
    EXPECT_EQ(broken.error().code, ErrorCode::BadInput);
}

TEST(Menu, BringsTheAllocationsOfWhatIsChosen) {
    Stored stored;
    const TrainingGraph& graph = stored.relu.graph;
    const Menu menu =
        menuOf(graph,
               R"({"op": 1, "name": "mask", "kind": "intermediate-activated", "backward": 4,
            "instead_of": 1, "bytes": 13})");
    OpSignature withMask;
    withMask.allocations = {{Bytes(100), 0, 0, std::nullopt, nullptr},
                            {Bytes(50), std::nullopt, 1, 2, nullptr},
                            {Bytes(13), 1, 3, std::nullopt, nullptr}};
    withMask.events = 4;
    ASSERT_TRUE(storeMenu(stored.session, graph, menu, {{1, "mask", 1, withMask}}));
    // The gradient op's are not known.
    EXPECT_TRUE(loadSignaturesUnder(stored.session, graph, menu)->empty());
    ASSERT_TRUE(
        storeMenu(stored.session, graph, menu, {{1, "mask", 1, withMask}, {1, "mask", 4, {}}}));
    const auto under = loadSignaturesUnder(stored.session, graph, menu);
    ASSERT_TRUE(under) << under.error().what;
    ASSERT_EQ(under->size(), graph.ops.size());
    ASSERT_EQ((*under)[1].allocations.size(), 3U);
    EXPECT_EQ((*under)[1].allocations[1].endEvent, 2);
    EXPECT_EQ((*under)[1].allocations[2].output, 1);
    EXPECT_EQ((*under)[1].events, 4);
    EXPECT_TRUE((*under)[4].allocations.empty());
    EXPECT_EQ((*under)[0].allocations.size(), 1U);
    EXPECT_EQ(loadSignaturesUnder(stored.session, graph, {})->at(1).allocations.size(), 1U);
    databaseOf(stored.session).execute("UPDATE implementation_signatures SET output = 7");
    EXPECT_FALSE(loadSignaturesUnder(stored.session, graph, menu));
}

TEST(GraphUnder, LooksInTheMenuThenInThePlan) {
    const Relu relu;
    const Menu menu = menuOf(
        relu.graph,
        R"({"op": 2, "name": "fft", "kind": "algorithm", "time_ns": 3, "workspace_bytes": 40})");
    Plan plan;
    plan.fingerprint = relu.graph.fingerprint();
    plan.implementations = {{2, "fft"}};
    const auto nowhere = graphUnder(plan, relu.graph, {});
    ASSERT_FALSE(nowhere);
    EXPECT_EQ(nowhere.error().code, ErrorCode::BadInput);
    plan.chosen = menuOf(
        relu.graph,
        R"({"op": 2, "name": "fft", "kind": "algorithm", "time_ns": 1, "workspace_bytes": 0})");
    EXPECT_EQ(graphUnder(plan, relu.graph, {})->ops[2].time, Nanoseconds(1));
    EXPECT_EQ(graphUnder(plan, relu.graph, menu)->ops[2].time, Nanoseconds(3));
    plan.chosen.implementations.front().op = static_cast<OpIndex>(relu.graph.ops.size());
    EXPECT_FALSE(graphUnder(plan, relu.graph, {}));  // of no op of the graph
    plan.fingerprint = "sha256:0";
    EXPECT_FALSE(graphUnder(plan, relu.graph, menu));
}

}  // namespace
}  // namespace hw::core
