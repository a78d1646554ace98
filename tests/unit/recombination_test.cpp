// SPDX-License-Identifier: MIT
// Recombination against the search of every choice of a plan a stage.
#include "planners/search/recombination.h"

#include <gtest/gtest.h>

#include <random>

#include "core/memory/evaluate.h"
#include "tests/unit/graph_builder.h"

namespace hw::planners {
namespace {

using namespace hw::core;

constexpr std::size_t kPlans = 3;
const auto kNeverStop = [] { return false; };

std::vector<RetentionMatrix> randomPlans(const StageModel& model, unsigned seed) {
    std::vector<RetentionMatrix> plans;
    std::mt19937 random(seed);
    for (std::size_t n = 0; n < kPlans; ++n) {
        StageJudge judge(model, Bytes(0));
        for (int change = 0; change < 8; ++change) {
            const auto i = static_cast<ItemIndex>(random() % model.itemCount());
            const StageIndex first = judge.firstStage(i), last = judge.lastStage(i);
            if (first > last) continue;
            const auto from =
                first + static_cast<StageIndex>(random() % static_cast<unsigned>(last - first + 1));
            judge.set(i, from, last, random() % 3 == 0);
        }
        judge.settle();
        judge.commit();
        plans.push_back(judge.retention());
    }
    return plans;
}

bool hasLazyViews(const StageModel& model) {
    for (OpIndex op = 0; op < static_cast<OpIndex>(model.graph->ops.size()); ++op)
        if (model.lazy(op)) return true;
    return false;
}

// Calls visit(judge) with every plan whose residents at each stage are those of one of `plans`.
template <class Visit>
void forEachCombination(const StageModel& model, Bytes budget,
                        const std::vector<RetentionMatrix>& plans, Visit visit) {
    const auto stages = static_cast<std::size_t>(model.end) + 1;
    std::vector<std::size_t> choice(stages, 0);
    StageJudge judge(model, budget);
    std::vector<std::vector<std::vector<bool>>> resident(
        plans.size(), std::vector(stages, std::vector<bool>(model.itemCount(), false)));
    for (std::size_t t = 0; t < plans.size(); ++t)
        judge.forEachRetained(plans[t], [&](ItemIndex i, StageIndex k) {
            resident[t][static_cast<std::size_t>(k)][static_cast<std::size_t>(i)] = true;
        });
    for (;;) {
        for (ItemIndex i = 0; i < static_cast<ItemIndex>(model.itemCount()); ++i)
            for (StageIndex k = judge.firstStage(i); k <= judge.lastStage(i); ++k) {
                const auto at = static_cast<std::size_t>(k);
                judge.set(i, k, k, resident[choice[at]][at][static_cast<std::size_t>(i)]);
            }
        judge.settle();
        judge.commit();
        visit(judge);
        std::size_t k = 0;
        while (k < stages && ++choice[k] == plans.size()) choice[k++] = 0;
        if (k == stages) return;
    }
}

TEST(Recombination, FindsTheBestChoiceOfResidentsForEveryStage) {
    int better = 0, compared = 0;
    for (unsigned seed = 0; seed < 120; ++seed) {
        const TrainingGraph graph = test::randomGraph(seed, 6);
        const StageModel model(graph);
        if (model.itemCount() == 0 || model.end > 7 || hasLazyViews(model)) continue;
        const std::vector<RetentionMatrix> plans = randomPlans(model, seed);
        StageJudge judge(model, Bytes(0));
        Bytes high(0), low(INT64_MAX);
        for (const RetentionMatrix& plan : plans) {
            judge.load(plan);
            high = std::max(high, judge.peak()), low = std::min(low, judge.peak());
        }
        for (const Bytes budget : {low, Bytes((low + high).count() / 2), high}) {
            Nanoseconds best(INT64_MAX), single(INT64_MAX);
            forEachCombination(model, budget, plans, [&](const StageJudge& made) {
                if (made.overflow() == Bytes(0)) best = std::min(best, made.time());
            });
            judge.setBudget(budget);
            for (const RetentionMatrix& plan : plans) {
                judge.load(plan);
                if (judge.overflow() == Bytes(0)) single = std::min(single, judge.time());
            }
            ASSERT_TRUE(recombine(judge, plans, kPlans, kNeverStop)) << "seed " << seed;
            EXPECT_EQ(judge.overflow(), Bytes(0)) << "seed " << seed;
            EXPECT_EQ(judge.time(), best) << "seed " << seed;
            EXPECT_TRUE(evaluate(graph, judge.schedule()).valid);
            better += best < single ? 1 : 0;
            ++compared;
        }
    }
    EXPECT_GT(compared, 50);
    EXPECT_GT(better, 5);  // the test has seen plans that none of the given ones had
}

TEST(Recombination, OfLargerGraphsIsNeverSlowerThanThePlans) {
    for (unsigned seed = 0; seed < 20; ++seed) {
        const TrainingGraph graph = test::randomGraph(seed, 60);
        const StageModel model(graph);
        const std::vector<RetentionMatrix> plans = randomPlans(model, seed);
        StageJudge judge(model, Bytes(0));
        for (const std::size_t width : {std::size_t{1}, std::size_t{2}, kPlans}) {
            judge.load(plans[0]);
            const Nanoseconds time = judge.time();
            judge.setBudget(judge.peak());
            ASSERT_TRUE(recombine(judge, plans, width, kNeverStop));
            EXPECT_EQ(judge.overflow(), Bytes(0));
            if (!hasLazyViews(model)) {
                EXPECT_LE(judge.time(), time) << "seed " << seed;
            }
        }
    }
}

TEST(Recombination, LeavesTheJudgeAloneWhereNothingFits) {
    const TrainingGraph graph = test::chain(12, 100);
    const StageModel model(graph);
    StageJudge judge(model, Bytes(150));
    const std::vector<RetentionMatrix> plans{judge.retention()};
    judge.trim();
    const RetentionMatrix before = judge.retention();
    EXPECT_FALSE(recombine(judge, plans, 1, kNeverStop));
    EXPECT_EQ(judge.retention(), before);
    judge.setBudget(Bytes(1'000'000));
    EXPECT_FALSE(recombine(judge, plans, 1, [] { return true; }));
    EXPECT_EQ(judge.retention(), before);
    EXPECT_FALSE(recombine(judge, {}, 1, kNeverStop));
}

}  // namespace
}  // namespace hw::planners
