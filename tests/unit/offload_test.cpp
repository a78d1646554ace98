// SPDX-License-Identifier: MIT
// Copies to host memory under the judge, and what plans them.
#include <algorithm>
#include <deque>
#include <optional>
#include <random>

#include "core/memory/evaluate.h"
#include "core/memory/schedule_blocks.h"
#include "planners/offload/idle_stretches.h"
#include "planners/offload/link_bound.h"
#include "planners/offload/offload_schedule.h"
#include "planners/plan_with.h"
#include "planners/registry.h"
#include "tests/unit/graph_builder.h"
#include "tests/unit/schedule_words.h"

namespace hw::planners {
namespace {

using namespace core;
using test::GraphBuilder;

constexpr Bytes kPlenty(std::int64_t{1} << 40);

Link link(std::int64_t bytesPerNs, std::int64_t latency = 0) {
    Link made;
    made.outPerSecond = made.inPerSecond = Bytes(bytesPerNs * 1'000'000'000);
    made.latency = Nanoseconds(latency);
    return made;
}

/// a (100 bytes) is read by the last op, `between` ops of 10 ns later.
TrainingGraph idle(int between, std::int64_t bytesPerNs) {
    GraphBuilder b;
    const auto a = b.one("a", {}, 100, 10);
    auto x = b.one("x", {}, 1, 10);
    for (int i = 0; i < between; ++i) x = b.one("x", {x}, 1, 10);
    b.final(b.one("c", {a, x}, 1, 10));
    TrainingGraph graph = b.build();
    graph.link = link(bytesPerNs);
    return graph;
}

/// Copies the first storage out after action `out`, frees it before `free`, fetches it before `in`.
Schedule away(const TrainingGraph& graph, std::size_t out, std::size_t free, std::size_t in) {
    Schedule schedule;
    for (std::size_t op = 0; op < graph.ops.size(); ++op) {
        if (op == out) schedule.push_back(Action::offload(0));
        if (op == free) schedule.push_back(Action::free(0));
        if (op == in) schedule.push_back(Action::prefetch(0));
        schedule.push_back(Action::compute(static_cast<OpIndex>(op)));
    }
    return schedule;
}

TEST(Offload, CopiesBesideOpsTakeNoTime) {
    const TrainingGraph graph = idle(4, 10);  // 10 ns each way
    const Evaluation judged = evaluate(graph, away(graph, 1, 2, 5));
    ASSERT_TRUE(judged.valid) << judged.why;
    EXPECT_EQ(judged.time, graph.totalTime());
    EXPECT_EQ(judged.waited, Nanoseconds(0));
    EXPECT_EQ(judged.offloadedBytes, Bytes(100));
    EXPECT_EQ(judged.hostPeak, Bytes(100));
}

TEST(Offload, BytesAreThereUntilTheyAreFreedAndFromThePrefetchOn) {
    const TrainingGraph graph = idle(4, 10);
    std::vector<MemoryPoint> curve;
    ASSERT_TRUE(evaluate(graph, away(graph, 1, 2, 5), curve).valid);
    // a | o x | f x x x | p x c
    const std::vector<std::int64_t> after{100, 100, 101, 1, 2, 3, 4, 104, 105, 106};
    ASSERT_EQ(curve.size(), after.size());
    for (std::size_t i = 0; i < after.size(); ++i) EXPECT_EQ(curve[i].after, Bytes(after[i])) << i;
    EXPECT_EQ(curve[1].host, Bytes(100));
    EXPECT_EQ(curve[7].host, Bytes(0));
}

TEST(Offload, AFreeWaitsForItsCopyAndAReaderForItsBytes) {
    const TrainingGraph graph = idle(4, 2);  // 50 ns each way
    const Evaluation early = evaluate(graph, away(graph, 1, 2, 5));
    ASSERT_TRUE(early.valid) << early.why;
    // Out from 10 to 60, freed after the op that ends at 20; in from 90, beside an op, until 140.
    EXPECT_EQ(early.waited, Nanoseconds(40 + 40));
    EXPECT_EQ(early.time, graph.totalTime() + Nanoseconds(80));
}

TEST(Offload, ACopyInBeginsWhenTheOneBeforeItIsThrough) {
    GraphBuilder b;
    const auto a = b.one("a", {}, 100, 10), c = b.one("c", {}, 100, 10);
    const auto x = b.one("x", {}, 1, 10);
    b.final(b.one("y", {x, a, c}, 1, 10));
    TrainingGraph graph = b.build();
    graph.link = link(10, 5);  // 15 ns each
    const Evaluation judged =
        evaluate(graph, {Action::compute(0), Action::offload(0), Action::compute(1),
                         Action::offload(1), Action::free(0), Action::free(1), Action::prefetch(0),
                         Action::prefetch(1), Action::compute(2), Action::compute(3)});
    ASSERT_TRUE(judged.valid) << judged.why;
    // Out: 10 to 25, 25 to 40; in: 40 to 55, 55 to 70; x: 40 to 50; y from 70.
    EXPECT_EQ(judged.time, Nanoseconds(80));
}

TEST(Offload, ViewsSurviveHostMemoryAndVersionsDo) {
    GraphBuilder b;
    const auto a = b.one("a", {}, 100, 10);
    b.inPlace("add_", {a});
    const auto v = b.view(a);
    const auto x = b.one("x", {}, 1, 10);
    b.final(b.one("y", {v, x}, 1));
    const TrainingGraph graph = b.build();
    const Evaluation judged = evaluate(
        graph, {Action::compute(0), Action::compute(1), Action::compute(2), Action::offload(0),
                Action::free(0), Action::compute(3), Action::prefetch(0), Action::compute(4)});
    EXPECT_TRUE(judged.valid) << judged.why;
}

TEST(Offload, WhatCannotBeIsRefused) {
    GraphBuilder b;
    const auto p = b.constant(10);
    const auto a = b.one("a", {p}, 100);
    b.inPlace("add_", {a});
    b.final(b.one("c", {a, p}, 1));
    b.final(p);
    const TrainingGraph graph = b.build();
    const auto why = [&](Schedule schedule) { return evaluate(graph, schedule).why; };
    const Action c0 = Action::compute(0), c1 = Action::compute(1), c2 = Action::compute(2);
    const Action o = Action::offload(1), f = Action::free(1), in = Action::prefetch(1);
    EXPECT_NE(why({o}).find("offloaded while not resident"), std::string::npos);
    EXPECT_NE(why({c0, o, o}).find("already"), std::string::npos);
    EXPECT_NE(why({c0, in}).find("not in host memory"), std::string::npos);
    EXPECT_NE(why({c0, o, in}).find("not in host memory"), std::string::npos);
    EXPECT_NE(why({c0, o, c1}).find("copied to host memory"), std::string::npos);
    EXPECT_NE(why({c0, o, f, c1}).find("misses storage"), std::string::npos);
    EXPECT_NE(why({c0, o, f, Action::decode(1)}).find("not encoded"), std::string::npos);
    EXPECT_NE(why({c0, o, f, Action::recompute(0, {0})}).find("made again"), std::string::npos);
    EXPECT_NE(why({c0, o, f, f, c1}).find("misses storage"), std::string::npos);
    EXPECT_NE(why({c0, c1, c2, Action::offload(0), Action::free(0)}).find("at the end"),
              std::string::npos);
    EXPECT_EQ(why({c0, Action::offload(0), Action::free(0), c1, Action::prefetch(0), c2}), "");
}

/// What the clocks say, told apart from the judge: one nanosecond after the other.
struct Clocks {
    std::int64_t time = 0, peak = 0, hostPeak = 0;
};
Clocks tick(const TrainingGraph& graph, const Schedule& schedule) {
    struct Copy {
        StorageIndex storage;
        std::int64_t left;
    };
    std::deque<Copy> out, in;
    std::int64_t live = 0, host = 0;
    std::vector<bool> there(graph.storages.size()), copied(graph.storages.size());
    Clocks clocks;
    const auto bytes = [&](StorageIndex s) { return graph.storages[s].bytes.count(); };
    const auto settle = [&](std::deque<Copy>& channel) {
        while (!channel.empty() && channel.front().left == 0) channel.pop_front();
    };
    const auto pass = [&](std::deque<Copy>& channel) {
        settle(channel);
        if (!channel.empty()) --channel.front().left;
        settle(channel);
    };
    const auto wait = [&](std::int64_t ns) {
        for (; ns > 0; --ns, ++clocks.time) pass(out), pass(in);
    };
    const auto goes = [&](std::deque<Copy>& channel, StorageIndex s) {
        settle(channel);
        return std::any_of(channel.begin(), channel.end(),
                           [&](const Copy& copy) { return copy.storage == s; });
    };
    for (StorageIndex s = 0; s < static_cast<StorageIndex>(there.size()); ++s)
        if (graph.storages[s].isConstant()) there[s] = true, live += bytes(s);
    for (const Action& action : schedule) {
        const StorageIndex s = action.target;
        if (action.kind == ActionKind::Offload) {
            out.push_back({s, graph.link.outTime(graph.storages[s].bytes).count()});
            copied[s] = true;
            clocks.hostPeak = std::max(clocks.hostPeak, host += bytes(s));
        } else if (action.kind == ActionKind::Prefetch) {
            in.push_back({s, graph.link.inTime(graph.storages[s].bytes).count()});
            copied[s] = false, there[s] = true;
            live += bytes(s), host -= bytes(s);
        } else if (action.kind == ActionKind::Free) {
            while (goes(out, s) || goes(in, s)) wait(1);
            there[s] = false, live -= bytes(s);
        } else {
            const Op& op = graph.ops[s];
            for (const Use& use : op.inputs)
                while (goes(in, graph.storageOf(use.tensor))) wait(1);
            for (const OpOutput& output : op.outputs) live += bytes(graph.storageOf(output.tensor));
            clocks.peak = std::max(clocks.peak, live);
            wait(op.time.count());
        }
        clocks.peak = std::max(clocks.peak, live);
    }
    while (settle(in), !in.empty()) wait(1);
    return clocks;
}

/// A chain in which later ops read what earlier ones have made, once or more often.
TrainingGraph randomChain(std::mt19937& random, std::int64_t unit = 1) {
    const int ops = 4 + static_cast<int>(random() % 12);
    std::vector<std::vector<int>> reads(static_cast<std::size_t>(ops));
    std::vector<int> last(static_cast<std::size_t>(ops) + 1, -1);  // 0 is the constant
    for (int i = 0; i < ops; ++i) {
        std::vector<int>& inputs = reads[static_cast<std::size_t>(i)];
        inputs.push_back(i);
        if (const int other = static_cast<int>(random() % static_cast<unsigned>(i + 1));
            random() % 2 == 0 && other != i)
            inputs.push_back(other);
        for (const int input : inputs) last[static_cast<std::size_t>(input)] = i;
    }
    GraphBuilder b;
    std::vector<TensorIndex> made{b.constant(unit * (1 + random() % 50))};
    for (int i = 0; i < ops; ++i) {
        std::vector<TensorIndex> inputs;
        for (const int input : reads[static_cast<std::size_t>(i)])
            inputs.push_back(made[static_cast<std::size_t>(input)]);
        made.push_back(b.one("op", inputs, unit * (1 + random() % 100), 1 + random() % 30));
        for (std::size_t m = 0; m < made.size(); ++m)
            if (last[m] == i) b.release(made[m]);
    }
    b.final(made.back());
    TrainingGraph graph = b.build();
    graph.link = link(unit * (1 + random() % 8), random() % 4);
    return graph;
}

/// Ops forward, and as many back that read what those have made.
TrainingGraph thereAndBack(int layers) {
    constexpr std::int64_t kBytes = 1'000'000, kTime = 1'000;
    GraphBuilder b;
    std::vector<TensorIndex> forward{b.constant(kBytes)};
    for (int i = 0; i < layers; ++i)
        forward.push_back(b.one("forward", {forward.back()}, kBytes, kTime));
    TensorIndex gradient = forward.back();
    for (int i = layers - 1; i >= 0; --i) {
        const TensorIndex next =
            b.one("backward", {gradient, forward[static_cast<std::size_t>(i)]}, kBytes, 2 * kTime);
        b.release(gradient);
        if (i + 1 < layers) b.release(forward[static_cast<std::size_t>(i) + 1]);
        gradient = next;
    }
    b.final(gradient);
    return b.build();
}

TEST(Offload, TheJudgesClocksAreThoseOfASimulation) {
    std::mt19937 random(7);
    int copies = 0;
    for (int round = 0; round < 400; ++round) {
        const TrainingGraph graph = randomChain(random);
        const Schedule baseline = baselineSchedule(graph);
        const auto stretches = idleStretches(graph, baseline, Bytes(1));
        std::vector<Schedule> added(baseline.size() + 1);
        for (const IdleStretch& stretch : stretches) {
            if (random() % 2 == 0) continue;
            const std::size_t free =
                stretch.first + random() % (stretch.before - stretch.first + 1);
            const std::size_t back = free + random() % (stretch.before - free + 1);
            added[stretch.first].push_back(Action::offload(stretch.storage));
            added[free].push_back(Action::free(stretch.storage));
            added[back].push_back(Action::prefetch(stretch.storage));
            ++copies;
        }
        Schedule schedule;
        for (std::size_t a = 0; a <= baseline.size(); ++a) {
            schedule.insert(schedule.end(), added[a].begin(), added[a].end());
            if (a < baseline.size()) schedule.push_back(baseline[a]);
        }
        const Evaluation judged = evaluate(graph, schedule);
        if (!judged.valid) continue;  // one of a storage begins before its last has ended
        const Clocks clocks = tick(graph, schedule);
        EXPECT_EQ(judged.time, Nanoseconds(clocks.time))
            << round << '\n'
            << ::testing::PrintToString(test::told(schedule));
        EXPECT_EQ(judged.peak, Bytes(clocks.peak))
            << round << '\n'
            << ::testing::PrintToString(test::told(schedule));
        EXPECT_EQ(judged.hostPeak, Bytes(clocks.hostPeak))
            << round << '\n'
            << ::testing::PrintToString(test::told(schedule));
        EXPECT_EQ(judged.time - judged.waited, graph.totalTime());
    }
    EXPECT_GT(copies, 400);
}

TEST(Offload, PlansKeepBothBudgetsAndNoneIsFasterThanTheBound) {
    std::mt19937 random(11);
    int planned = 0, refused = 0;
    constexpr std::int64_t kWorthACopy = 20'000;
    for (int round = 0; round < 300; ++round) {
        const TrainingGraph graph = randomChain(random, kWorthACopy);
        const Bytes peak = evaluate(graph, baselineSchedule(graph)).peak;
        const OffloadBudgets budgets{Bytes(peak.count() * (50 + random() % 50) / 100),
                                     Bytes(peak.count() * (10 + random() % 90) / 100)};
        const auto schedule = offloadWithin(graph, baselineSchedule(graph), budgets);
        if (!schedule) {
            ++refused;
            continue;
        }
        ++planned;
        const Evaluation judged = evaluate(graph, *schedule);
        ASSERT_TRUE(judged.valid) << judged.why;
        EXPECT_LE(judged.peak, budgets.device);
        EXPECT_LE(judged.hostPeak, budgets.host);
        EXPECT_GE(judged.time, boundWithLink(graph, budgets.device, budgets.host));
    }
    EXPECT_GT(planned, 50);
    EXPECT_GT(refused, 0);
}

PlanRequest within(const TrainingGraph& graph, double share) {
    PlanRequest request;
    const Bytes peak = evaluate(graph, baselineSchedule(graph)).peak;
    request.budget = Bytes(static_cast<std::int64_t>(static_cast<double>(peak.count()) * share));
    request.workLimit = 20;
    request.hostMemory = kPlenty;
    return request;
}

TEST(Offload, AnInfinitelyFastLinkCostsNothing) {
    TrainingGraph graph = thereAndBack(24);
    graph.link = link(1'000'000'000);
    for (const char* const planner : {"highwater", "offload-only"}) {
        const auto outcome = planWith(planner, graph, within(graph, 0.6));
        ASSERT_TRUE(outcome && outcome->plan) << planner;
        EXPECT_EQ(outcome->time, graph.totalTime()) << planner;
        EXPECT_EQ(outcome->lowerBound, graph.totalTime()) << planner;
        EXPECT_GT(outcome->offloadedBytes, Bytes(0)) << planner;
    }
}

TEST(Offload, ADeadLinkCostsWhatRecomputationDoes) {
    TrainingGraph graph = thereAndBack(24);
    graph.link = link(1, 1'000'000'000'000);
    PlanRequest request = within(graph, 0.6);
    const auto both = planWith("highwater", graph, request);
    request.hostMemory.reset();
    request.workLimit = *request.workLimit / 2;
    const auto alone = planWith("highwater", graph, request);
    ASSERT_TRUE(alone && alone->plan) << alone->reason;
    ASSERT_TRUE(both && both->plan) << both->reason;
    EXPECT_EQ(both->time, alone->time);
    EXPECT_EQ(both->offloadedBytes, Bytes(0));
}

TEST(Offload, PlansWithoutHostMemoryStayWithinIt) {
    const TrainingGraph graph = thereAndBack(24);
    PlanRequest request = within(graph, 0.6);
    request.hostMemory.reset();
    const auto outcome = planWith("offload-only", graph, request);
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->status, PlanStatus::Infeasible);
    request.hostMemory = Bytes(1);
    EXPECT_FALSE(planWith("offload-only", graph, request)->plan);
}

TEST(Offload, WhatIsInHostMemoryTakesNoBlock) {
    const TrainingGraph graph = idle(4, 10);
    const Schedule schedule = away(graph, 1, 2, 5);
    const ScheduleBlocks made = scheduleBlocks(graph, schedule, {});
    // That of each op, and one more for what comes back.
    EXPECT_EQ(made.blocks.size(), graph.ops.size() + 1);
    EXPECT_EQ(made.allocations(1), 0U);
    EXPECT_EQ(made.allocations(3), 0U);
    EXPECT_EQ(made.allocations(7), 1U);
}

}  // namespace
}  // namespace hw::planners
