// SPDX-License-Identifier: MIT
#include "core/memory/replay.h"

#include <gtest/gtest.h>

#include <map>

#include "core/memory/evaluate.h"
#include "tests/unit/graph_builder.h"

namespace hw::core {
namespace {

using test::GraphBuilder;

// Keeps its own books from what it is told, in words too.
struct Bookkeeper : ReplayListener {
    std::map<StorageIndex, Bytes> resident, forms;
    std::vector<std::string> told;
    Bytes sum;

    void tell(const std::string& what, std::int32_t target) {
        told.push_back(what + " " + std::to_string(target));
    }
    void take(const ReplayState& now, StorageIndex s) {
        EXPECT_TRUE(resident.emplace(s, now.graph().storages[s].bytes).second);
    }
    void runs(const ReplayState& now, const Action& action) {
        tell(action.recomputes() ? "again" : "first", action.target);
        for (std::size_t j = 0; j < now.graph().ops[action.target].outputs.size(); ++j)
            if (now.holds(action, j)) tell("will hold result", static_cast<std::int32_t>(j));
    }
    void made(const ReplayState& now, const Action&, StorageIndex s, std::size_t output) {
        tell("made result", static_cast<std::int32_t>(output));
        take(now, s);
    }
    void constant(const ReplayState& now, StorageIndex s) {
        tell("constant", s);
        take(now, s);
    }
    void freed(const ReplayState&, StorageIndex s) {
        tell("freed", s);
        EXPECT_EQ(resident.erase(s), 1U);
    }
    void freedStandIn(const ReplayState&, StorageIndex s, const StandIn&) {
        tell("freed encoded", s);
        EXPECT_EQ(forms.erase(s), 1U);
    }
    void replaced(const ReplayState& now, StorageIndex s, const StandIn& form) {
        tell("encoded", s);
        EXPECT_EQ(resident.erase(s), 1U);
        EXPECT_EQ(now.standIn(s)->codec, form.codec);
        forms[s] = form.bytes;
    }
    void restored(const ReplayState& now, StorageIndex s, const StandIn&) {
        tell("decoded", s);
        EXPECT_EQ(forms.erase(s), 1U);
        take(now, s);
    }
    void ends(const ReplayState& now, const Action&) {
        Bytes live;
        for (const auto& [s, bytes] : resident) live += bytes;
        for (const auto& [s, bytes] : forms) live += bytes;
        EXPECT_EQ(live, now.live()) << "after action " << now.action();
        for (StorageIndex s = 0; s < static_cast<StorageIndex>(now.graph().storages.size()); ++s) {
            EXPECT_EQ(resident.contains(s), now.resident(s));
            EXPECT_EQ(forms.contains(s), now.standIn(s) != nullptr);
        }
    }
};

// 0: x (constant), 1 and 2: both results of op 0, 3: of op 1, 4: a constant after it, 5: of op 2.
struct ReplaySample {
    TrainingGraph graph;
    StorageIndex a, b;
};
ReplaySample sample() {
    GraphBuilder build;
    const auto x = build.constant(8);
    const auto pair = build.op("pair", {x}, {16, 32});
    const auto c = build.one("c", {pair[0]}, 64);
    const auto late = build.constant(128);
    build.final(build.one("d", {pair[0], c, late}, 1));
    build.release(pair[0]), build.release(pair[1]), build.release(c);
    ReplaySample made{build.build(), 0, 0};
    made.a = made.graph.storageOf(pair[0]), made.b = made.graph.storageOf(pair[1]);
    return made;
}

TEST(Replay, TellsEveryChangeOnce) {
    const auto [graph, a, b] = sample();
    const Schedule schedule{Action::compute(0), Action::encode(b, "bits", Bytes(2)),
                            Action::compute(1), Action::free(a),
                            Action::free(b),    Action::recompute(0, {0}),
                            Action::compute(2)};
    Bookkeeper books;
    Replay replay(graph, books);
    ASSERT_TRUE(replay.run(schedule)) << replay.why();
    EXPECT_EQ(books.told, (std::vector<std::string>{
                              "constant 0", "first 0", "will hold result 0", "will hold result 1",
                              "made result 0", "made result 1", "encoded 2", "first 1",
                              "will hold result 0", "made result 0", "constant 4", "freed 1",
                              "freed encoded 2", "again 0", "will hold result 0", "made result 0",
                              "first 2", "will hold result 0", "made result 0"}));
    const Evaluation judged = evaluate(graph, schedule);
    EXPECT_EQ(replay.peak(), judged.peak);
    EXPECT_EQ(replay.peakAction(), judged.peakAction);
    EXPECT_EQ(replay.time(), judged.time);
    EXPECT_EQ(replay.recomputedOps(), 1);
}

TEST(Replay, StopsAtTheFirstImpossibleAction) {
    const auto [graph, a, b] = sample();
    const Schedule schedule{Action::compute(0), Action::free(a), Action::compute(1),
                            Action::compute(2)};
    Bookkeeper books;
    Replay replay(graph, books);
    EXPECT_FALSE(replay.run(schedule));
    EXPECT_EQ(replay.action(), 2U);
    EXPECT_NE(replay.why().find("misses storage"), std::string::npos) << replay.why();
    EXPECT_EQ(books.told.back(), "freed 1") << "nothing is told of what cannot be done";
}

TEST(Replay, BaselinesAreToldWhole) {
    for (const TrainingGraph& graph : {test::chain(12, 10), sample().graph}) {
        Bookkeeper books;
        Replay replay(graph, books);
        EXPECT_TRUE(replay.run(baselineSchedule(graph))) << replay.why();
    }
}

}  // namespace
}  // namespace hw::core
