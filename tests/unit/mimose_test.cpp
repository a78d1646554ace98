// SPDX-License-Identifier: MIT
#include "planners/mimose/mimose.h"

#include <cmath>

#include "core/memory/rebuild.h"
#include "planners/mimose/collection.h"
#include "planners/mimose/layers.h"
#include "planners/mimose/sizes.h"
#include "planners/plan_with.h"
#include "tests/unit/graph_builder.h"

namespace hw::planners {
namespace {

using namespace hw::core;
using test::GraphBuilder;

std::vector<Bytes> sizes(const std::vector<std::int64_t>& counts) {
    std::vector<Bytes> result;
    for (const std::int64_t count : counts) result.emplace_back(count);
    return result;
}

TEST(MimosePolynomial, RecoversCoefficients) {
    const std::vector<double> x{16, 32, 48, 80, 100, 128};
    std::vector<double> y;
    for (const double at : x) y.push_back(4e6 + 3e4 * at + 250 * at * at);
    const Polynomial fit = fitPolynomial(x, y, 2);
    for (const double at : {8.0, 64.0, 200.0})
        EXPECT_NEAR(fit.at(at), 4e6 + 3e4 * at + 250 * at * at, 1);
    ASSERT_EQ(fit.coefficients.size(), 3U);
    EXPECT_NEAR(fit.coefficients[2] / (fit.scale * fit.scale), 250, 1e-6);
}

TEST(MimosePolynomial, TakesNoHigherOrderThanTheSizesAllow) {
    EXPECT_EQ(fitPolynomial({5, 5, 5}, {1, 2, 3}, 3).coefficients.size(), 1U);
    EXPECT_NEAR(fitPolynomial({5, 5, 5}, {1, 2, 3}, 3).at(9), 2, 1e-9);
}

TEST(MimosePolynomial, OrderIsThatOfTheData) {
    const std::vector<double> x{10, 20, 30, 45, 60, 80, 100};
    std::mt19937 random(3);
    std::normal_distribution<double> noise(0, 1);
    for (int order = 0; order <= 3; ++order) {
        std::vector<double> exact, noisy;
        for (const double at : x) {
            exact.push_back(1000 * std::pow(at, order) + 7);
            noisy.push_back(exact.back() + noise(random));
        }
        EXPECT_EQ(chooseOrder(x, exact), order);
        if (order > 0) {
            EXPECT_EQ(chooseOrder(x, noisy), order);
        }
    }
    EXPECT_LE(chooseOrder({1, 2, 3}, {1, 4, 9}), 1) << "two sizes determine no parabola";
}

// The bucket of the smallest layers that cover the excess alone; the earliest of it.
TEST(MimoseScheduler, TakesFromTheNearestBucketTheEarliestLayer) {
    const auto layers = sizes({100, 52, 96, 50, 10, 11, 95});
    EXPECT_EQ(chooseLayers(layers, Bytes(0)), LayerChoice{});
    EXPECT_EQ(chooseLayers(layers, Bytes(90)), LayerChoice{0});
    EXPECT_EQ(chooseLayers(layers, Bytes(49)), LayerChoice{1});
    EXPECT_EQ(chooseLayers(layers, Bytes(9)), LayerChoice{4});
    EXPECT_EQ(chooseLayers(layers, Bytes(140)), (LayerChoice{0, 1}));
    EXPECT_EQ(chooseLayers(layers, Bytes(150)), (LayerChoice{0, 1}))
        << "50 are left, 52 cover them";
    EXPECT_EQ(chooseLayers(layers, Bytes(191)), (LayerChoice{0, 2}));
    EXPECT_EQ(chooseLayers(layers, Bytes(9999)), (LayerChoice{0, 1, 2, 3, 4, 5, 6}));
}

TEST(MimoseScheduler, NeverTakesEmptyLayers) {
    EXPECT_EQ(chooseLayers(sizes({0, 10, 0}), Bytes(50)), LayerChoice{1});
}

TEST(MimoseScheduler, KnowsThatADroppedLayerComesBack) {
    const auto layers = sizes({100, 100, 100});
    EXPECT_EQ(layerPeak(layers, Bytes(5), {}), Bytes(305));
    EXPECT_EQ(layerPeak(layers, Bytes(5), {0}), Bytes(205));
    EXPECT_EQ(layerPeak(layers, Bytes(5), {2}), Bytes(305)) << "the last is needed at once";
    EXPECT_EQ(layerPeak(layers, Bytes(5), {0, 1, 2}), Bytes(105));
    EXPECT_EQ(layersWithin(layers, Bytes(5), Bytes(305)), LayerChoice{});
    EXPECT_EQ(layersWithin(layers, Bytes(5), Bytes(210)), LayerChoice{0});
    EXPECT_EQ(layersWithin(layers, Bytes(5), Bytes(105)), (LayerChoice{0, 1}));
    EXPECT_FALSE(layersWithin(layers, Bytes(5), Bytes(104)));
}

TEST(MimoseScheduler, EveryChoiceKeepsTheBudgetOfItsOwnEstimate) {
    std::mt19937 random(11);
    int found = 0;
    for (int round = 0; round < 300; ++round) {
        std::vector<Bytes> layers;
        for (unsigned i = 0, n = 1 + random() % 20; i < n; ++i) layers.emplace_back(random() % 100);
        const Bytes budget(static_cast<std::int64_t>(random() % 900));
        const auto choice = layersWithin(layers, Bytes(30), budget);
        if (!choice) continue;
        ++found;
        EXPECT_LE(layerPeak(layers, Bytes(30), *choice), budget);
        EXPECT_TRUE(std::is_sorted(choice->begin(), choice->end()));
    }
    EXPECT_GT(found, 100);
}

TEST(MimoseCache, SharesPlansWithSlightlySmallerSizes) {
    PlanCache cache(0.05);
    EXPECT_EQ(cache.find(100), nullptr);
    cache.insert(100, {1, 2});
    ASSERT_NE(cache.find(100), nullptr);
    ASSERT_NE(cache.find(96), nullptr);
    EXPECT_EQ(*cache.find(96), (LayerChoice{1, 2}));
    EXPECT_EQ(cache.find(101), nullptr) << "a larger input needs more";
    EXPECT_EQ(cache.find(94), nullptr) << "a much smaller one needs less";
    EXPECT_EQ(cache.hits(), 3);
    EXPECT_EQ(cache.misses(), 3);
}

// Encoder blocks over `length` tokens: each saves 8 maps of `length` and one of length².
TrainingGraph encoder(int blocks, std::int64_t length) {
    GraphBuilder b;
    b.raw().layers = {{"(root)", "Model", kNone}, {"blocks", "ModuleList", 0}};
    const auto weight = b.constant(1000);
    b.phase(Phase::Forward);
    const auto tokens = b.constant(length);
    std::vector<std::vector<TensorIndex>> saved(blocks);
    TensorIndex hidden = b.one("embed", {tokens, weight}, 4 * length);
    for (int i = 0; i < blocks; ++i) {
        const std::string path = "blocks." + std::to_string(i);
        b.raw().layers.push_back({path, "Block", 1});
        const std::size_t first = b.raw().ops.size();
        saved[i].push_back(b.one("attention", {hidden, weight}, length * length, length));
        for (int k = 0; k < 8; ++k)
            saved[i].push_back(b.one("map", {saved[i].back()}, 4 * length, length));
        const auto out = b.one("out", {saved[i].back()}, 4 * length);
        for (std::size_t op = first; op < b.raw().ops.size(); ++op) b.raw().ops[op].layer = i + 2;
        b.release(hidden);
        hidden = out;
    }
    b.phase(Phase::Backward);
    auto gradient = b.one("loss_backward", {hidden}, 4 * length);
    b.release(hidden);
    for (int i = blocks - 1; i >= 0; --i) {
        std::vector<TensorIndex> inputs = saved[i];
        inputs.push_back(gradient);
        const auto next = b.one("block_backward", inputs, 4 * length, 20 * length);
        for (const auto tensor : inputs) b.release(tensor);
        gradient = next;
    }
    b.release(gradient);
    b.final(weight), b.final(tokens);
    b.raw().storages[b.storage(weight)].category = Category::Parameter;
    for (Op& op : b.raw().ops)
        if (op.layer == kNone) op.layer = 0;
    return b.build();
}

TEST(MimoseLayers, AreTheBlocksOfTheModel) {
    const TrainingGraph graph = encoder(5, 50);
    const RebuildInfo info = rebuildInfo(graph);
    const ForwardPass forward(graph, info);
    const auto layers = mimoseLayers(graph, info, forward);
    ASSERT_EQ(layers.size(), 5U);
    EXPECT_EQ(layers[3].path, "blocks.3");
    EXPECT_EQ(layers[3].bytes, Bytes(50 * 50 + 8 * 4 * 50));
    EXPECT_EQ(layers[3].time, Nanoseconds(9 * 50));
    EXPECT_EQ(inputBytes(graph), Bytes(50));
}

TEST(MimoseLayers, AreSegmentsWithoutModules) {
    const TrainingGraph graph = test::chain(49, 1000);
    const RebuildInfo info = rebuildInfo(graph);
    const ForwardPass forward(graph, info);
    const auto layers = mimoseLayers(graph, info, forward);
    EXPECT_EQ(layers.size(), 7U);
    for (const MimoseLayer& layer : layers) EXPECT_LE(layer.bytes, Bytes(7000));
}

TEST(Mimose, PlansWithinTheBudget) {
    const TrainingGraph graph = encoder(12, 100);
    const Bytes peak = evaluate(graph, baselineSchedule(graph)).peak;
    double last = 1;
    for (const double share : {1.0, 0.8, 0.5, 0.3}) {
        PlanRequest request;
        request.budget = Bytes(std::llround(static_cast<double>(peak.count()) * share));
        const auto outcome = planWith("mimose", graph, request);
        ASSERT_TRUE(outcome) << outcome.error().what;
        ASSERT_EQ(outcome->status, PlanStatus::Ok) << share << ": " << outcome->reason;
        EXPECT_LE(outcome->peak, request.budget);
        EXPECT_TRUE(share == 1.0 || outcome->overhead > last);
        last = outcome->overhead;
    }
    PlanRequest nothing;
    nothing.budget = graph.floorBytes();
    EXPECT_EQ(planWith("mimose", graph, nothing)->status, PlanStatus::Infeasible);
}

std::vector<StepProfile> profiles(const std::vector<std::int64_t>& lengths) {
    std::vector<StepProfile> steps;
    for (const std::int64_t length : lengths) steps.push_back(profileStep(encoder(8, length)));
    return steps;
}

TEST(MimoseEstimator, PredictsSizesThatItHasNotSeen) {
    const auto estimator = MimoseEstimator::fit(profiles({20, 35, 50, 90, 120}));
    ASSERT_TRUE(estimator) << estimator.error().what;
    EXPECT_EQ(estimator->layers().size(), 8U);
    EXPECT_EQ(estimator->orderOf(0), 2);
    for (const std::int64_t length : {28, 70, 150}) {
        const StepProfile seen = profileStep(encoder(8, length));
        const auto size = static_cast<double>(length);
        EXPECT_NEAR(static_cast<double>(estimator->peakAt(size).count()),
                    static_cast<double>(seen.peak.count()),
                    0.005 * static_cast<double>(seen.peak.count()));
        EXPECT_EQ(estimator->bytesAt(size)[2], seen.layers[2].bytes);
        EXPECT_EQ(estimator->timesAt(size)[2], seen.layers[2].time);
    }
    const auto errors = leaveOneOutErrors(profiles({20, 35, 50, 90, 120}));
    ASSERT_TRUE(errors);
    ASSERT_EQ(errors->size(), 5U);
    for (const double error : *errors) EXPECT_LT(std::abs(error), 0.005);
}

TEST(MimoseEstimator, SaysWhyItCannotEstimate) {
    const auto few = MimoseEstimator::fit(profiles({20, 35, 20}));
    ASSERT_FALSE(few);
    EXPECT_NE(few.error().hint.find("--steps"), std::string::npos);
    auto mixed = profiles({20, 35, 50});
    mixed[1].layers[0].path = "another";
    EXPECT_FALSE(MimoseEstimator::fit(mixed));
    EXPECT_FALSE(MimoseEstimator::fit({}));
}

TEST(InputAwarePlanner, KeepsTheBudgetForEverySize) {
    auto estimator = MimoseEstimator::fit(profiles({20, 35, 50, 90, 120}));
    ASSERT_TRUE(estimator);
    const TrainingGraph largest = encoder(8, 120);
    const Bytes budget(evaluate(largest, baselineSchedule(largest)).peak.count() / 2);
    InputAwarePlanner planner(std::move(*estimator), budget);
    std::size_t last = 0;
    for (const std::int64_t length : {30, 60, 80, 100, 120}) {
        const auto choice = planner.choose(static_cast<double>(length));
        ASSERT_TRUE(choice) << length;
        EXPECT_GE(choice->size(), last);
        last = choice->size();
        const TrainingGraph graph = encoder(8, length);
        const Evaluation result = evaluate(graph, dropLayers(graph, *choice));
        ASSERT_TRUE(result.valid) << result.why;
        EXPECT_LE(result.peak, budget) << length;
    }
    EXPECT_GT(last, 0U);
    EXPECT_EQ(planner.choose(118), planner.choose(120));
    EXPECT_EQ(planner.cache().misses(), 5);
    EXPECT_EQ(planner.cache().hits(), 2);
}

TEST(Sizes, AreEachPlannedOnceAndJudged) {
    std::vector<ProfiledStep> steps;
    for (const std::int64_t length : {90, 20, 35, 20, 50, 120})
        steps.push_back({static_cast<std::int64_t>(steps.size()), profileStep(encoder(8, length))});
    const std::vector<ProfiledStep> first = firstOfEachSize(steps);
    std::vector<std::int64_t> ids;
    for (const ProfiledStep& one : first) ids.push_back(one.step);
    EXPECT_EQ(ids, (std::vector<std::int64_t>{0, 1, 2, 4, 5}));
    const TrainingGraph largest = encoder(8, 120);
    const Bytes peak = evaluate(largest, baselineSchedule(largest)).peak;
    EXPECT_EQ(highestPeak(steps), peak);

    const auto plan = [&](Bytes budget, const TrainingGraph& graph, double size) {
        InputAwarePlanner planner(*fitSizes(steps), budget);
        return planSize(graph, size, planner);
    };
    const Bytes half(peak.count() / 2);
    const SizePlan large = plan(half, largest, 120);
    ASSERT_TRUE(large.dropped);
    EXPECT_FALSE(large.dropped->empty());
    EXPECT_TRUE(large.within(half));
    EXPECT_FALSE(large.within(large.judged.peak - Bytes(1)));
    const auto written = writtenPlan(large, largest, half);
    ASSERT_TRUE(written) << written.error().what;
    EXPECT_EQ(written->planner, "mimose");
    EXPECT_TRUE(requireSameGraph(*written, largest));
    const Evaluation again = evaluate(largest, written->schedule);
    EXPECT_EQ(again.peak, written->predictedPeak);
    EXPECT_EQ(again.time, written->predictedTime);
    EXPECT_GT(written->overhead, 1.0);

    const SizePlan small = plan(half, encoder(8, 20), 20);
    ASSERT_TRUE(small.dropped);
    EXPECT_TRUE(small.dropped->empty());
    EXPECT_EQ(small.judged.time, encoder(8, 20).totalTime());
    const SizePlan nowhere = plan(Bytes(1), largest, 120);
    EXPECT_FALSE(nowhere.dropped);
    EXPECT_FALSE(nowhere.within(half));
    EXPECT_GT(nowhere.estimatedPeak, Bytes(0));
    SizePlan broken = large;
    broken.judged.valid = false;
    EXPECT_EQ(writtenPlan(broken, largest, half).error().code, ErrorCode::Internal);
}

// Three sizes end the collection phase: then all of them are due, and each further one at once.
TEST(Collection, PlansOnceThreeSizesAreKnown) {
    const TrainingGraph largest = encoder(8, 120);
    const Bytes peak = evaluate(largest, baselineSchedule(largest)).peak;
    const Bytes untouched(77), budget(peak.count() / 2);
    Collection seen;
    for (const std::int64_t length : {20, 50, 20}) {
        const auto kind = static_cast<std::int64_t>(seen.steps().size());
        seen.add(seenStep(kind, encoder(8, length), untouched));
        EXPECT_TRUE(seen.due(budget).steps.empty());
    }
    seen.add(seenStep(3, largest, untouched));
    EXPECT_EQ(seen.steps().back().peak, peak + untouched);
    Collection::Due due = seen.due(budget);
    ASSERT_EQ(due.steps.size(), 4U);
    ASSERT_TRUE(due.planner);
    const SizePlan plan = planSize(largest, due.steps.back().size, *due.planner);
    ASSERT_TRUE(plan.dropped);
    EXPECT_FALSE(plan.dropped->empty());
    EXPECT_LE(plan.judged.peak + untouched, budget);
    for (const auto& step : due.steps) seen.notePlanned(step.index);
    seen.add(seenStep(4, encoder(8, 80), untouched));
    due = seen.due(budget);
    ASSERT_EQ(due.steps.size(), 1U);
    EXPECT_EQ(due.steps.front().index, 4U);
}

// Steps whose layers are those of no other one are planned for themselves in the end.
TEST(Collection, WaitsNotForSizesThatNeverCome) {
    Collection seen;
    for (int blocks = 2; blocks < 2 + static_cast<int>(Collection::kPatience); ++blocks) {
        EXPECT_TRUE(seen.due(Bytes(1000)).steps.empty());
        seen.add(seenStep(blocks, encoder(blocks, 30), Bytes(0)));
    }
    const Collection::Due due = seen.due(Bytes(1000));
    EXPECT_EQ(due.steps.size(), 1U);
    EXPECT_FALSE(due.planner);
}

}  // namespace
}  // namespace hw::planners
