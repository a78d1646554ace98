// SPDX-License-Identifier: MIT
#include "core/memory/restore_early.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/memory/evaluate.h"
#include "planners/registry.h"
#include "tests/unit/graph_builder.h"
#include "tests/unit/schedule_words.h"

namespace hw::core {
namespace {

using namespace planners;
using test::told;

/// a, made from w by way of m, is there at the end: the plan frees it after op 2 and makes it again
/// after the last op, whose temporary has as many bytes as are named.
struct Ends {
    explicit Ends(std::int64_t temporary) {
        test::GraphBuilder builder;
        const auto w = builder.constant(8);
        const auto m = builder.one("e", {w}, 10);
        a = builder.one("f", {m}, 100);
        const auto b = builder.one("g", {a}, 150);
        const auto c = builder.one("h", {b}, 20);
        builder.release(b);
        const auto d = builder.one("h", {c}, temporary);
        builder.one("h", {d}, 1);
        builder.release(d);
        builder.release(m);
        builder.final(a);
        graph = builder.build();
        const StorageIndex freed = graph.storageOf(m);
        schedule = {Action::compute(0),
                    Action::compute(1),
                    Action::free(freed),
                    Action::compute(2),
                    Action::free(graph.storageOf(a)),
                    Action::compute(3),
                    Action::free(graph.storageOf(b)),
                    Action::compute(4),
                    Action::compute(5),
                    Action::free(graph.storageOf(d)),
                    Action::recompute(0, {0}),
                    Action::recompute(1, {0}),
                    Action::free(freed)};
    }
    TensorIndex a;
    TrainingGraph graph;
    Schedule schedule;
};

TEST(RestoreEarly, ComesAsSoonAsThereIsRoom) {
    const Ends ends(1);  // once b is gone: the peak is at op 2
    ASSERT_TRUE(evaluate(ends.graph, ends.schedule).valid)
        << evaluate(ends.graph, ends.schedule).why;
    const auto words = told(restoreEarly(ends.graph, ends.schedule));
    const std::vector<std::string> expected{"c0",   "c1",   "f1", "c2", "f2", "c3", "f3",
                                            "r0,0", "r1,0", "f1", "c4", "c5", "f5"};
    EXPECT_EQ(words, expected);
}

TEST(RestoreEarly, StaysWhereNoBytesAreLeftEarlier) {
    const Ends ends(230);  // the temporary goes after the last op only
    ASSERT_TRUE(evaluate(ends.graph, ends.schedule).valid);
    EXPECT_EQ(told(restoreEarly(ends.graph, ends.schedule)), told(ends.schedule));
}

// Between the op and its end another plan action has made something again: what comes after it is
// as early as can be.
TEST(RestoreEarly, FollowsWhatElseIsMadeAgain) {
    Ends ends(1);
    ends.schedule.insert(ends.schedule.begin() + 8,
                         {Action::recompute(0, {0}), Action::free(ends.graph.storageOf(1))});
    ASSERT_TRUE(evaluate(ends.graph, ends.schedule).valid)
        << evaluate(ends.graph, ends.schedule).why;
    const auto words = told(restoreEarly(ends.graph, ends.schedule));
    const std::vector<std::string> expected{"c0",   "c1", "f1",   "c2",   "f2", "c3", "f3", "c4",
                                            "r0,0", "f1", "r0,0", "r1,0", "f1", "c5", "f5"};
    EXPECT_EQ(words, expected);
}

// The time stays, the peak does not rise, and the schedule does the same.
TEST(RestoreEarly, CostsNothing) {
    std::size_t moved = 0;
    const auto planner = makePlanner("dtr:lru");
    for (unsigned seed = 0; seed < 300; ++seed) {
        SCOPED_TRACE(seed);
        TrainingGraph graph = test::randomGraph(seed, 40);
        graph.ops[30].workspace = Bytes(1500);  // the peak: what lasts has room after it
        PlanRequest request;
        request.budget = Bytes(evaluate(graph, baselineSchedule(graph)).peak.count() * 8 / 10);
        const Proposal proposal = (*planner)->plan(graph, request, {});
        if (proposal.status != PlanStatus::Ok) continue;
        const Evaluation before = evaluate(graph, proposal.schedule);
        ASSERT_TRUE(before.valid) << before.why;
        const Schedule early = restoreEarly(graph, proposal.schedule);
        moved += test::expectRearranged(graph, proposal.schedule, early);
        EXPECT_LE(evaluate(graph, early).peak, before.peak);
    }
    EXPECT_GT(moved, 20u);
}

}  // namespace
}  // namespace hw::core
