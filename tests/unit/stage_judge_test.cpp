// SPDX-License-Identifier: MIT
// The incremental judge against the plain one.
#include "core/memory/stage_judge.h"

#include <gtest/gtest.h>

#include <random>

#include "core/import/import.h"
#include "core/memory/evaluate.h"
#include "tests/unit/graph_builder.h"
#include "tests/unit/test_data.h"

namespace hw {
namespace {

using namespace hw::core;

// Both judges agree on the schedule that the matrix stands for.
void expectAgreement(const StageJudge& judge) {
    const Evaluation plain = evaluate(*judge.model().graph, judge.schedule());
    ASSERT_TRUE(plain.valid) << plain.why;
    ASSERT_EQ(plain.peak, judge.peak());
    ASSERT_EQ(plain.time, judge.time());
}

void changeRandomly(StageJudge& judge, std::mt19937& random) {
    const StageModel& model = judge.model();
    const auto i = static_cast<ItemIndex>(random() % model.itemCount());
    const StageIndex first = judge.firstStage(i), last = judge.lastStage(i);
    if (first > last) return;
    const auto span = static_cast<unsigned>(last - first + 1);
    StageIndex from = first + static_cast<StageIndex>(random() % span);
    StageIndex to = first + static_cast<StageIndex>(random() % span);
    if (from > to) std::swap(from, to);
    judge.set(i, from, to, random() % 3 == 0);
}

TEST(StageJudge, AgreesWithThePlainJudgeOnRandomSchedules) {
    for (unsigned seed = 0; seed < 300; ++seed) {
        const TrainingGraph graph =
            test::randomGraph(seed, 10 + static_cast<int>(seed) % 60, seed % 2 == 1);
        const StageModel model(graph);
        if (model.itemCount() == 0) continue;
        StageJudge judge(model, Bytes(400));
        std::mt19937 random(seed);
        ASSERT_NO_FATAL_FAILURE(expectAgreement(judge)) << "seed " << seed;
        for (int round = 0; round < 30; ++round) {
            for (unsigned n = 0; n <= random() % 3; ++n) changeRandomly(judge, random);
            judge.settle();
            judge.commit();
            ASSERT_NO_FATAL_FAILURE(expectAgreement(judge)) << "seed " << seed << ", " << round;
        }
    }
}

TEST(StageJudge, RebuildsUntilAnOpWritesThatMustNotRunAgain) {
    test::GraphBuilder b;
    const auto data = b.constant(8);
    const auto saved = b.one("forward", {data}, 100), other = b.one("forward", {data}, 10);
    const auto high = b.one("high", {saved}, 300);
    const auto loss = b.one("loss", {high}, 8);
    b.release(high);
    b.inPlace("backward_", {saved, other}, 1, 2);
    b.final(b.one("gradient", {saved, other, loss}, 8));
    const TrainingGraph graph = b.build();
    const StageModel model(graph);
    const ItemIndex item = model.itemOf[graph.storageOf(saved)];
    ASSERT_NE(item, kNone);
    const StageIndex backward = model.stageOf[4];
    EXPECT_EQ(model.neededUntil[item], backward);  // from there on it stays
    EXPECT_EQ(model.staysFrom(graph.storageOf(saved)), backward);

    StageJudge judge(model, Bytes(0));
    const Bytes kept = judge.peak();
    judge.set(item, backward, backward, false);
    judge.settle();
    judge.commit();
    EXPECT_EQ(judge.recomputed(backward), std::vector<OpIndex>{0});
    EXPECT_LT(judge.peak(), kept);
    expectAgreement(judge);
}

// Views of views, some of which another storage ties to their place.
TrainingGraph graphOfViews(unsigned seed) {
    std::mt19937 random(seed);
    test::GraphBuilder b;
    std::vector<TensorIndex> made{b.constant(5)};
    const auto any = [&] { return made[random() % made.size()]; };
    for (int i = 0; i < 25; ++i) {
        const TensorIndex first = any(), second = any();
        const unsigned kind = random() % 4;
        if (kind == 0)
            made.push_back(b.one("make", {first, second}, 1 + random() % 100, 1 + random() % 9));
        else if (kind == 1)
            made.push_back(b.view(first, 1, {second}));
        else
            made.push_back(b.view(first, 1 + random() % 3));
    }
    b.final(made.back());
    return b.build();
}

TEST(StageJudge, ViewsWaitForTheViewsThatTheyLookThrough) {
    for (unsigned seed = 0; seed < 200; ++seed) {
        const TrainingGraph graph = graphOfViews(seed);
        const StageModel model(graph);
        StageJudge judge(model, Bytes(400));
        ASSERT_NO_FATAL_FAILURE(expectAgreement(judge)) << "seed " << seed;
        std::mt19937 random(seed);
        for (int round = 0; round < 30 && model.itemCount() > 0; ++round) {
            changeRandomly(judge, random);
            judge.settle();
            judge.commit();
            ASSERT_NO_FATAL_FAILURE(expectAgreement(judge)) << "seed " << seed << ", " << round;
        }
    }
}

// It reads bytes where the program asks for them.
TEST(StageJudge, AnOpWithoutResultsKeepsItsPlace) {
    test::GraphBuilder b;
    const auto loss = b.one("loss", {b.constant(8)}, 100);
    b.one("backward", {loss}, 10);
    b.op("item", {loss}, {});
    b.one("step", {b.constant(8)}, 10);
    const TrainingGraph graph = b.build();
    const StageModel model(graph);
    StageJudge judge(model, Bytes(400));
    std::vector<OpIndex> order;
    for (const Action& action : judge.schedule())
        if (action.kind == ActionKind::Compute) order.push_back(action.target);
    EXPECT_EQ(order, (std::vector<OpIndex>{0, 1, 2, 3}));
}

TEST(StageJudge, RollbackRestoresEverything) {
    for (unsigned seed = 0; seed < 100; ++seed) {
        const TrainingGraph graph = test::randomGraph(seed, 40);
        const StageModel model(graph);
        if (model.itemCount() == 0) continue;
        StageJudge judge(model, Bytes(300));
        std::mt19937 random(seed);
        for (int round = 0; round < 30; ++round) {
            const auto time = judge.time();
            const auto peak = judge.peak();
            const auto overflow = judge.overflow();
            for (int n = 0; n < 3; ++n) changeRandomly(judge, random);
            judge.settle();
            for (int n = 0; n < 2; ++n) changeRandomly(judge, random);
            if (round % 3 != 0) judge.settle();
            judge.rollback();
            ASSERT_EQ(judge.time(), time);
            ASSERT_EQ(judge.peak(), peak);
            ASSERT_EQ(judge.overflow(), overflow);
            ASSERT_NO_FATAL_FAILURE(expectAgreement(judge)) << "seed " << seed << ", " << round;
            changeRandomly(judge, random);
            judge.settle();
            judge.commit();
        }
    }
}

TEST(StageJudge, StopsOnlyWhereTheEnergyWillBeAboveTheLimit) {
    int stopped = 0, within = 0;
    for (unsigned seed = 0; seed < 200; ++seed) {
        const TrainingGraph graph =
            seed % 2 == 0 ? test::randomGraph(seed, 40) : graphOfViews(seed);
        const StageModel model(graph);
        if (model.itemCount() == 0) continue;
        StageJudge judge(model, Bytes(300));
        std::mt19937 random(seed);
        const Energy energy{1.0, 0.5};
        for (int round = 0; round < 30; ++round) {
            const auto before = judge.retention();
            std::mt19937 again = random;
            changeRandomly(judge, random);
            judge.settle();
            const double whole = judge.energy(energy);
            judge.rollback();
            changeRandomly(judge, again);
            const double limit = whole + static_cast<double>(random() % 40) - 20;
            const double told = judge.settle(energy, limit);
            if (whole <= limit) {
                ++within;
                ASSERT_EQ(told, whole);
                ASSERT_NO_FATAL_FAILURE(expectAgreement(judge)) << "seed " << seed;
            } else {
                ++stopped;
                ASSERT_GT(told, limit);
                ASSERT_LE(told, whole);
                judge.rollback();
                ASSERT_EQ(judge.retention(), before);
                ASSERT_NO_FATAL_FAILURE(expectAgreement(judge)) << "seed " << seed;
            }
            judge.commit();
        }
    }
    EXPECT_GT(stopped, 500);
    EXPECT_GT(within, 500);
}

TEST(StageJudge, OverflowIsWhatExceedsTheBudget) {
    const TrainingGraph graph = test::chain(20, 100);
    const StageModel model(graph);
    StageJudge judge(model, Bytes(500));
    Bytes sum;
    for (StageIndex k = 0; k <= model.end; ++k)
        sum += std::max(Bytes(0), judge.stagePeak(k) - Bytes(500));
    EXPECT_EQ(judge.overflow(), sum);
    EXPECT_GT(sum, Bytes(0));
    judge.setBudget(judge.peak());
    EXPECT_EQ(judge.overflow(), Bytes(0));
}

TEST(StageJudge, TrimmingNeverRaisesTimeOrPeak) {
    for (unsigned seed = 0; seed < 100; ++seed) {
        const TrainingGraph graph = test::randomGraph(seed, 50);
        const StageModel model(graph);
        if (model.itemCount() == 0) continue;
        StageJudge judge(model, Bytes(300));
        std::mt19937 random(seed);
        for (int n = 0; n < 20; ++n) changeRandomly(judge, random);
        judge.settle();
        const auto time = judge.time();
        const auto peak = judge.peak();
        judge.trim();
        EXPECT_LE(judge.time(), time);
        EXPECT_LE(judge.peak(), peak);
        ASSERT_NO_FATAL_FAILURE(expectAgreement(judge)) << "seed " << seed;
    }
}

TEST(StageJudge, AStageBetweenGivenResidentsIsThePlansOwn) {
    for (unsigned seed = 0; seed < 100; ++seed) {
        const TrainingGraph graph = test::randomGraph(seed, 50);
        const StageModel model(graph);
        if (model.itemCount() == 0) continue;
        StageJudge judge(model, Bytes(300));
        std::mt19937 random(seed);
        for (int n = 0; n < 20; ++n) changeRandomly(judge, random);
        judge.settle();
        judge.commit();
        std::vector<std::vector<std::uint64_t>> sets(
            static_cast<std::size_t>(model.end) + 2,
            std::vector<std::uint64_t>((model.itemCount() + 63) / 64, 0));
        std::vector<Bytes> bytes(sets.size());
        judge.forEachRetained(judge.retention(), [&](ItemIndex i, StageIndex k) {
            sets[static_cast<std::size_t>(k)][static_cast<std::size_t>(i >> 6)] |= std::uint64_t{1}
                                                                                   << (i & 63);
            bytes[static_cast<std::size_t>(k)] += model.bytes[i];
        });
        for (StageIndex k = 0; k <= model.end; ++k) {
            const auto at = static_cast<std::size_t>(k);
            const StageJudge::Outcome outcome = judge.between(k, sets[at], sets[at + 1]);
            ASSERT_EQ(bytes[at] + outcome.height, judge.stagePeak(k)) << seed << ", " << k;
            ASSERT_GE(outcome.cost, judge.stageCost(k)) << seed << ", " << k;
        }
        ASSERT_NO_FATAL_FAILURE(expectAgreement(judge)) << "seed " << seed;
    }
}

TEST(StageJudge, ReadsBackItsOwnSchedule) {
    for (unsigned seed = 0; seed < 100; ++seed) {
        const TrainingGraph graph = test::randomGraph(seed, 50);
        const StageModel model(graph);
        if (model.itemCount() == 0) continue;
        StageJudge judge(model, Bytes(300));
        std::mt19937 random(seed);
        for (int n = 0; n < 20; ++n) changeRandomly(judge, random);
        judge.settle();
        judge.trim();
        StageJudge other(model, Bytes(300));
        other.load(judge.schedule());
        ASSERT_EQ(other.retention(), judge.retention()) << "seed " << seed;
        ASSERT_EQ(other.time(), judge.time()) << "seed " << seed;
    }
}

TEST(StageJudge, AgreesOnRealGraphs) {
    for (const std::string& log : test::simrdLogs()) {
        SCOPED_TRACE(log);
        auto session = openAny(log);
        ASSERT_TRUE(session);
        const auto graph = loadGraph(*session, 0);
        ASSERT_TRUE(graph);
        const StageModel model(*graph);
        StageJudge judge(model, Bytes(0));
        std::mt19937 random(1);
        for (int round = 0; round < 20; ++round) {
            for (int n = 0; n < 20; ++n) changeRandomly(judge, random);
            judge.settle();
        }
        expectAgreement(judge);
    }
}

}  // namespace
}  // namespace hw
