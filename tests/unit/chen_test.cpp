// SPDX-License-Identifier: MIT
#include "planners/chen/chen.h"

#include <algorithm>
#include <cmath>

#include "core/import/import.h"
#include "core/session/session.h"
#include "planners/chen/segments.h"
#include "planners/plan_with.h"
#include "tests/graphs/networks.h"
#include "tests/graphs/tape.h"
#include "tests/unit/graph_builder.h"
#include "tests/unit/test_data.h"

namespace hw::planners {
namespace {

using namespace hw::core;

constexpr std::int64_t kLayer = 1'000'000;  // bytes; the weights of a chain are next to nothing

Bytes baselinePeak(const TrainingGraph& graph) {
    return evaluate(graph, baselineSchedule(graph)).peak;
}

Outcome planAt(const std::string& planner, const TrainingGraph& graph, Bytes budget) {
    PlanRequest request;
    request.budget = budget;
    auto outcome = planWith(planner, graph, request);
    EXPECT_TRUE(outcome) << planner << ": " << (outcome ? "" : outcome.error().what);
    return outcome ? *outcome : Outcome{};
}

Outcome planFor(const std::string& planner, const TrainingGraph& graph, double share = 1.0) {
    const auto peak = static_cast<double>(baselinePeak(graph).count());
    return planAt(planner, graph, Bytes(std::llround(peak * share)));
}

double layers(const Outcome& outcome) {
    return static_cast<double>(outcome.peak.count()) / kLayer;
}

// Times that each op of this name is computed again.
std::int64_t recomputations(const TrainingGraph& graph, const Outcome& outcome,
                            const std::string& name) {
    if (!outcome.plan) return -1;
    const Schedule& schedule = outcome.plan->schedule;
    return std::count_if(schedule.begin(), schedule.end(), [&](const Action& action) {
        return action.kind == ActionKind::Recompute && graph.ops[action.target].name == name;
    });
}

TEST(ChenSqrt, NeedsTwoSquareRootsOfAChainForOneMoreForwardPass) {
    for (const int n : {49, 100, 400, 900}) {
        const TrainingGraph graph = test::chain(n, kLayer);
        const Outcome outcome = planFor("chen-sqrt", graph);
        ASSERT_EQ(outcome.status, PlanStatus::Ok) << outcome.reason;
        // The cuts, one segment, and in flight: two gradients and the input.
        EXPECT_LE(layers(outcome), 2 * std::sqrt(n) + 5) << n;
        EXPECT_GE(layers(outcome), std::sqrt(n)) << n;
        EXPECT_LE(outcome.recomputedOps, n);
        EXPECT_GE(outcome.recomputedOps, n / 2) << n;
    }
}

TEST(ChenRecursive, NeedsTheLogarithmOfAChain) {
    for (const int n : {64, 256, 1024}) {
        const TrainingGraph graph = test::chain(n, kLayer);
        const Outcome outcome = planFor("chen-recursive", graph);
        ASSERT_EQ(outcome.status, PlanStatus::Ok) << outcome.reason;
        EXPECT_LE(layers(outcome), std::log2(n) + 8) << n;
        EXPECT_LE(static_cast<double>(outcome.recomputedOps), n * std::log2(n)) << n;
        EXPECT_GT(outcome.recomputedOps, n);
    }
}

// A random network with branches, sums, views, in-place ops and ops of several results, and its
// gradients.
TrainingGraph randomNetwork(unsigned seed, int length) {
    std::mt19937 random(seed);
    auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    bench::Tape tape(1e9);
    std::vector<TensorIndex> values{tape.input(kLayer)};  // none of them in place or a view's base
    for (int i = 0; i < length; ++i) {
        const int back = std::min(static_cast<int>(values.size()), below(8) == 0 ? 12 : 3);
        const TensorIndex x = values[values.size() - 1 - below(back)];
        bench::Operation op;
        op.name = "layer";
        op.inputs = {x, tape.parameter(1 + below(100))};
        op.results = {{kLayer / (1 + below(4))}, {8, false, false}};
        op.time = op.backwardTime = Nanoseconds(1 + below(50));
        op.savedInputs = {0, 1};
        op.savedResults = {static_cast<std::size_t>(below(2))};
        op.wanted = {0, 1};
        TensorIndex y = tape.apply(op).front();
        bench::Operation after;
        after.inputs = {y};
        after.time = after.backwardTime = Nanoseconds(1);
        after.wanted = {0};
        const int kind = below(4);
        if (kind == 0 && op.savedResults.front() == 1) {
            after.name = "relu_";
            after.savedResults = {0};
            tape.apply(after);
        } else if (kind == 1) {
            after.name = "sum";
            after.inputs.push_back(values[values.size() - 1 - below(back)]);
            after.results = {{kLayer}};
            after.wanted = {0, 1};
            after.savedInputs = {1};
            y = tape.apply(after).front();
        } else if (kind == 2) {
            after.name = "view";
            after.results = {{kLayer / 4, true}};
            y = tape.apply(after).front();
        }
        values.push_back(y);
    }
    return tape.finish(values.back());
}

TEST(ChenSqrtAndRecursive, AreNeverAboveTheBaseline) {
    unsigned lower = 0;
    for (unsigned seed = 0; seed < test::share(300); ++seed) {
        const int length = 10 + static_cast<int>(seed % 90);
        const TrainingGraph graph =
            seed % 3 == 0 ? test::randomGraph(seed, 2 * length) : randomNetwork(seed, length);
        for (const char* planner : {"chen-sqrt", "chen-recursive"}) {
            const Outcome outcome = planFor(planner, graph);
            ASSERT_EQ(outcome.status, PlanStatus::Ok) << planner << " seed " << seed;
            EXPECT_LE(outcome.peak, baselinePeak(graph)) << planner << " seed " << seed;
            lower += outcome.recomputedOps > 0 ? 1 : 0;
        }
    }
    EXPECT_GT(lower, test::share(200)) << "hardly anything was dropped at all";
}

TEST(ChenGreedyAndCheap, KeepTheBudgetOnRandomNetworks) {
    unsigned planned = 0;
    for (unsigned seed = 0; seed < test::share(60); ++seed) {
        const TrainingGraph graph = randomNetwork(seed, 10 + static_cast<int>(seed % 50));
        for (const char* planner : {"chen-greedy", "chen-cheap"}) {
            for (const double share : {0.9, 0.7, 0.5}) {
                const Outcome outcome = planFor(planner, graph, share);
                if (outcome.status != PlanStatus::Ok) continue;
                EXPECT_LE(outcome.peak, outcome.budget) << planner << " seed " << seed;
                planned += outcome.recomputedOps > 0 ? 1 : 0;
            }
        }
    }
    EXPECT_GT(planned, test::share(100)) << "hardly any plan was found";
}

TEST(ChenSqrtAndRecursive, DoNotLookAtTheBudget) {
    const TrainingGraph graph = test::chain(100, kLayer);
    for (const char* planner : {"chen-sqrt", "chen-recursive"}) {
        const Outcome roomy = planFor(planner, graph), tight = planFor(planner, graph, 0.01);
        EXPECT_EQ(tight.status, PlanStatus::Infeasible) << planner;
        EXPECT_EQ(tight.peak, roomy.peak) << planner;
    }
}

TEST(ChenGreedy, CutsLessOftenTheLargerTheSegments) {
    const TrainingGraph graph = test::chain(100, kLayer);
    const RebuildInfo info = rebuildInfo(graph);
    const chen::ForwardPass forward = chen::forwardPass(graph, info);
    EXPECT_NEAR(forward.effectiveLength, 100, 1);
    std::size_t greedy = 1000, bounded = 1000;
    for (int size = 1; size <= 60; ++size) {
        const auto after = chen::greedyCuts(forward, size * kLayer);
        const auto before = chen::boundedCuts(forward, size * kLayer);
        EXPECT_LE(after.size(), greedy);
        EXPECT_LE(before.size(), bounded);
        EXPECT_GE(before.size(), after.size());
        OpIndex from = 0;
        for (const chen::Cut& cut : before) {
            EXPECT_LE(forward.savedBytes(from, cut.after + 1), size * kLayer);
            from = cut.after + 1;
        }
        greedy = after.size(), bounded = before.size();
    }
    EXPECT_EQ(chen::greedyCuts(forward, 100 * kLayer).size(), 0U);
}

TEST(ChenGreedy, DropsNoMoreThanTheBudgetAsks) {
    const TrainingGraph graph = test::chain(100, kLayer);
    std::int64_t last = 0;
    for (const double share : {1.0, 0.9, 0.8, 0.6, 0.4, 0.3}) {
        const Outcome outcome = planFor("chen-greedy", graph, share);
        ASSERT_EQ(outcome.status, PlanStatus::Ok) << share << ": " << outcome.reason;
        EXPECT_LE(outcome.peak, outcome.budget);
        EXPECT_GE(outcome.recomputedOps, last) << share;
        // What lies above the budget, and a checkpoint in ten or so.
        EXPECT_LE(static_cast<double>(outcome.recomputedOps), 100 * (1 - share) * 1.4) << share;
        last = outcome.recomputedOps;
    }
}

TEST(ChenGreedy, SplitsSegmentsFurtherWhereOneLevelDoesNotFit) {
    const TrainingGraph graph = test::chain(256, kLayer);
    const Outcome oneLevel = planFor("chen-sqrt", graph);
    const Outcome outcome = planAt("chen-greedy", graph, Bytes(oneLevel.peak.count() * 6 / 10));
    ASSERT_EQ(outcome.status, PlanStatus::Ok) << outcome.reason;
    EXPECT_GT(outcome.recomputedOps, 256) << "more than one extra forward";
    EXPECT_LT(outcome.overhead, planFor("chen-recursive", graph).overhead);
}

// Layers of a dear op, a cheap one and one in place, as convolution, batch norm and ReLU; all three
// results are read by the backward pass.
TrainingGraph mixedChain(int length, std::int64_t dearTime, std::int64_t cheapTime) {
    test::GraphBuilder b;
    b.phase(Phase::Forward);
    std::vector<TensorIndex> saved{b.constant(kLayer)};
    const TensorIndex input = saved.front();
    for (int i = 0; i < length; ++i) {
        saved.push_back(b.one("first", {saved.back()}, kLayer, dearTime));
        saved.push_back(b.one("second", {saved.back()}, kLayer, cheapTime));
        b.inPlace("relu_", {saved.back()}, 1);
    }
    b.phase(Phase::Backward);
    TensorIndex gradient = b.one("loss_backward", {saved.back()}, kLayer, cheapTime);
    for (std::size_t i = saved.size() - 1; i > 0; --i) {
        const TensorIndex next =
            b.one("backward", {gradient, saved[i], saved[i - 1]}, kLayer, dearTime);
        b.release(gradient);
        b.release(saved[i]);
        gradient = next;
    }
    b.final(gradient);
    b.final(input);
    return b.build();
}

TEST(ChenCheap, KeepsWhatTookLongWhateverItsName) {
    const TrainingGraph firstDear = mixedChain(40, 1000, 20), secondDear = mixedChain(40, 20, 1000);
    for (const double share : {0.9, 0.7, 0.6}) {
        const Outcome a = planFor("chen-cheap", firstDear, share);
        ASSERT_EQ(a.status, PlanStatus::Ok) << a.reason;
        EXPECT_EQ(recomputations(firstDear, a, "first"), 0);
        EXPECT_GT(recomputations(firstDear, a, "second"), 0);
        EXPECT_EQ(recomputations(firstDear, a, "second"), recomputations(firstDear, a, "relu_"));
        const Outcome b = planFor("chen-cheap", secondDear, share);
        ASSERT_EQ(b.status, PlanStatus::Ok) << b.reason;
        EXPECT_EQ(recomputations(secondDear, b, "second"), 0);
        EXPECT_GT(recomputations(secondDear, b, "first"), 0);
    }
    EXPECT_EQ(planFor("chen-cheap", firstDear, 0.3).status, PlanStatus::Infeasible)
        << "the dear results alone need more";
}

TEST(ChenCheap, DropsAllThatIsCheapWhenAsked) {
    const TrainingGraph graph = mixedChain(40, 1000, 20);
    PlanRequest request;
    request.budget = baselinePeak(graph);
    request.options["all"] = "1";
    const auto outcome = planWith("chen-cheap", graph, request);
    ASSERT_TRUE(outcome);
    EXPECT_GE(recomputations(graph, *outcome, "second"), 39);
    EXPECT_EQ(recomputations(graph, *outcome, "first"), 0);
}

// In a residual network every sum is cheap by itself, but rebuilding all of them goes back to the
// first: some must stay.
TEST(ChenCheap, DoesNotRebuildRunsOfSumsFromFarBack) {
    bench::ResidualNetwork network;
    network.layers = 152;
    const TrainingGraph graph = generate(network);
    PlanRequest request;
    request.budget = baselinePeak(graph);
    request.options["all"] = "1";
    const auto outcome = planWith("chen-cheap", graph, request);
    ASSERT_TRUE(outcome);
    // Those of 64 channels and one pixel are as quick as batch norm, by the byte.
    EXPECT_LT(recomputations(graph, *outcome, "convolution"), 20);
    EXPECT_GT(recomputations(graph, *outcome, "relu"), 100);
    EXPECT_LT(outcome->peak.count(), baselinePeak(graph).count() * 7 / 10);
    EXPECT_LT(outcome->overhead, 1.12);
}

// A sum runs through the layers that no backward op reads. Where it does not stay at the cuts, a
// segment is rebuilt from the very beginning.
TEST(ChenSegments, AreRebuiltFromTheirOwnCut) {
    constexpr int kLength = 64;
    test::GraphBuilder b;
    const TensorIndex input = b.constant(kLayer);
    b.phase(Phase::Forward);
    TensorIndex stream = b.one("embed", {input}, kLayer);
    std::vector<TensorIndex> saved;
    for (int i = 0; i < kLength; ++i) {
        saved.push_back(b.one("layer", {stream}, kLayer));
        const TensorIndex sum = b.one("sum", {stream, saved.back()}, kLayer);
        b.release(stream);
        stream = sum;
    }
    b.phase(Phase::Backward);
    TensorIndex gradient = b.one("loss_backward", {stream}, kLayer);
    b.release(stream);
    for (int i = kLength; i-- > 0;) {
        const TensorIndex next = b.one("layer_backward", {gradient, saved[i]}, kLayer);
        b.release(gradient);
        b.release(saved[i]);
        gradient = next;
    }
    b.final(gradient);
    b.final(input);
    const TrainingGraph graph = b.build();
    const RebuildInfo info = rebuildInfo(graph);
    const chen::ForwardPass forward = chen::forwardPass(graph, info);
    const auto cuts = chen::equalCuts(forward, 8);
    ASSERT_EQ(cuts.size(), 7U);
    const Evaluation kept = evaluate(graph, chen::segmentSchedule(graph, info, forward, cuts));
    const Evaluation dropped =
        evaluate(graph, chen::segmentSchedule(graph, info, forward, cuts, false));
    ASSERT_TRUE(kept.valid) << kept.why;
    ASSERT_TRUE(dropped.valid) << dropped.why;
    EXPECT_LE(kept.recomputedOps, 2 * kLength);
    EXPECT_GT(dropped.recomputedOps, 2 * kept.recomputedOps);
    EXPECT_GT(kept.peak, dropped.peak);
    EXPECT_LT(kept.peak, baselinePeak(graph));
}

TEST(ChenSqrt, TakesAtMostOneMoreForwardPassOfAnLstm) {
    bench::LstmNetwork network;
    network.steps = 40;
    network.layers = 2;
    const TrainingGraph graph = generate(network);
    Nanoseconds forward;
    for (const Op& op : graph.ops)
        if (op.phase == Phase::Forward) forward += op.time;
    const Outcome outcome = planFor("chen-sqrt", graph);
    ASSERT_EQ(outcome.status, PlanStatus::Ok) << outcome.reason;
    EXPECT_GT(outcome.recomputedOps, 0);
    EXPECT_LE(outcome.time, graph.totalTime() + forward);
}

TEST(ChenSegments, KeepWhatIsLiveAcrossCutsInPlaceWritersToo) {
    const TrainingGraph graph = test::chain(81, kLayer, true);
    const Outcome outcome = planFor("chen-sqrt", graph);
    ASSERT_EQ(outcome.status, PlanStatus::Ok) << outcome.reason;
    EXPECT_LE(layers(outcome), 2 * 9 + 5);
    EXPECT_EQ(recomputations(graph, outcome, "layer"), recomputations(graph, outcome, "relu_"));
}

class ChenGreedyOnLogs : public testing::TestWithParam<std::string> {};
HW_WITH_DATA(ChenGreedyOnLogs, "simrd");

TEST_P(ChenGreedyOnLogs, HalvesARecordedNetworkForLessThanAFifth) {
    auto session = openAny(GetParam() + "/simrd/resnet32.log.gz");
    ASSERT_TRUE(session) << session.error().what;
    const auto graph = loadGraph(*session, 0);
    ASSERT_TRUE(graph) << graph.error().what;
    const Outcome outcome = planFor("chen-greedy", *graph, 0.5);
    ASSERT_EQ(outcome.status, PlanStatus::Ok) << outcome.reason;
    EXPECT_LT(outcome.overhead, 1.2);
}

}  // namespace
}  // namespace hw::planners
