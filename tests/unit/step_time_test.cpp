// SPDX-License-Identifier: MIT
// How long a step takes whose ranks wait for each other.
#include "core/ranks/step_time.h"

#include <gtest/gtest.h>

#include "core/memory/evaluate.h"
#include "tests/unit/graph_builder.h"

namespace hw::core {
namespace {

using Kind = Exchange::Kind;

/// A rank whose ops run one after the other, in times of their own, none with anything in memory.
struct Rank {
    Rank(int number, const std::vector<std::pair<std::string, std::int64_t>>& ops)
        : number(number) {
        test::GraphBuilder builder;
        const auto data = builder.constant(8);
        for (const auto& [name, time] : ops) builder.one(name, {data}, 1, time);
        graph = builder.build();
        for (std::size_t i = 0; i < graph.ops.size(); ++i)
            graph.ops[i].sessionId = 100 * number + static_cast<std::int64_t>(i);
        schedule = baselineSchedule(graph);
    }
    /// At its op `at`; what it brings, op `use` is the first to work on.
    void exchange(Kind kind, std::size_t at, int peer, std::optional<std::size_t> use = {}) {
        Exchange made;
        made.op = graph.ops[at].sessionId, made.kind = kind, made.peer = peer;
        if (use) made.use = graph.ops[*use].sessionId;
        exchanges.push_back(made);
    }
    RankStep told() const { return {number, &graph, &schedule, &exchanges}; }

    int number;
    TrainingGraph graph;
    Schedule schedule;
    std::vector<Exchange> exchanges;
};

TEST(StepTime, AMessageIsWaitedForWhereItIsWorkedOn) {
    Rank sender(0, {{"f", 10}, {"c10d::send", 1}, {"g", 5}});
    sender.exchange(Kind::Send, 1, 1);
    Rank receiver(1, {{"c10d::recv_", 1}, {"h", 4}, {"read", 3}});
    receiver.exchange(Kind::Receive, 0, 0, 2);
    StepTime step = simulateStep({sender.told(), receiver.told()});
    EXPECT_TRUE(step.matched);
    EXPECT_EQ(step.ranks[0].end, Nanoseconds(16));
    EXPECT_EQ(step.ranks[0].waiting, Nanoseconds(0));
    EXPECT_EQ(step.ranks[1].waiting, Nanoseconds(6)) << "from 5 to 11";
    EXPECT_EQ(step.ranks[1].end, Nanoseconds(14));
    EXPECT_EQ(step.time, Nanoseconds(16));
    EXPECT_EQ(step.decides, 0u);

    // What the receiver runs again meanwhile costs the step nothing.
    receiver.schedule = {Action::compute(0), Action::compute(1), Action::free(2),
                         Action::recompute(1, {0}), Action::compute(2)};
    step = simulateStep({sender.told(), receiver.told()});
    EXPECT_EQ(step.ranks[1].waiting, Nanoseconds(2));
    EXPECT_EQ(step.time, Nanoseconds(16));
}

TEST(StepTime, AllComeToAMeeting) {
    Rank quick(0, {{"f", 10},
                   {"_c10d_functional::all_reduce", 1},
                   {"g", 2},
                   {"_c10d_functional::wait_tensor", 500},
                   {"h", 3}});
    quick.exchange(Kind::Meeting, 1, -1, 3);
    Rank slow(1, {{"f", 30}, {"_c10d_functional::all_reduce", 1}, {"h", 3}});
    slow.exchange(Kind::Meeting, 1, -1, 2);
    const StepTime step = simulateStep({quick.told(), slow.told()});
    EXPECT_EQ(step.ranks[0].waiting, Nanoseconds(31 - 13));
    EXPECT_EQ(step.ranks[0].end, Nanoseconds(34)) << "what it waited when recorded does not count";
    EXPECT_EQ(step.time, Nanoseconds(34));
    EXPECT_EQ(step.decides, 1u);
}

TEST(StepTime, NobodyWaitsForWhatHasNoCounterpart) {
    Rank alone(0, {{"f", 10}, {"c10d::recv_", 1}, {"read", 3}});
    alone.exchange(Kind::Receive, 1, 1, 2);
    const Rank other(1, {{"f", 2}});
    StepTime step = simulateStep({alone.told(), other.told()});
    EXPECT_FALSE(step.matched);
    EXPECT_EQ(step.time, Nanoseconds(14));

    // Each receives before it sends: a step that cannot have been.
    Rank a(0, {{"c10d::recv_", 1}, {"read", 1}, {"c10d::send", 1}});
    a.exchange(Kind::Receive, 0, 1, 1), a.exchange(Kind::Send, 2, 1);
    Rank b(1, {{"c10d::recv_", 1}, {"read", 1}, {"c10d::send", 1}});
    b.exchange(Kind::Receive, 0, 0, 1), b.exchange(Kind::Send, 2, 0);
    step = simulateStep({a.told(), b.told()});
    EXPECT_FALSE(step.matched);
    EXPECT_GE(step.time, Nanoseconds(3));
}

}  // namespace
}  // namespace hw::core
