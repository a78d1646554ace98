// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/models/plan_store.h"

#include <gtest/gtest.h>

#include <memory>

#include "tests/models/small_document.h"

namespace hw::viewer {
namespace {

using core::Bytes;
using core::Nanoseconds;

const QString kOurs = QStringLiteral("highwater");
const QString kChen = QStringLiteral("chen-sqrt");
const QString kHand = QStringLiteral("by hand");

// A plan of which only the judge's figures matter.
std::shared_ptr<PlanEntry> entry(const QString& planner, int budget, int peak, double overhead) {
    auto plan = std::make_shared<PlanEntry>();
    plan->planner = planner;
    plan->budget = Bytes(budget);
    plan->peak = Bytes(peak);
    plan->overhead = overhead;
    return plan;
}

std::shared_ptr<PlanEntry> withoutPlan(const QString& planner, int budget,
                                       planners::PlanStatus status) {
    auto plan = entry(planner, budget, 0, 0);
    plan->status = status;
    return plan;
}

QStringList planners(const std::vector<PlanRow>& rows) {
    QStringList names;
    for (const PlanRow& row : rows) names << row.planner;
    return names;
}

// The small step needs 225 bytes and 10 ns.
class PlanStoreTest : public testing::Test {
protected:
    PlanStoreTest() {
        document_->floor = Bytes(125);
        store_.reset(document_, {});
    }
    std::shared_ptr<Document> document_ = samples::smallDocument();
    PlanStore store_;
};

TEST(PlanStore, WithoutADocumentHasNoRows) {
    const PlanStore store;
    EXPECT_TRUE(store.rows(Bytes(100)).empty());
    EXPECT_TRUE(store.frontier(kOurs).empty());
    EXPECT_EQ(store.frontierRatios().front(), 1.0);
    EXPECT_EQ(store.frontierRatios().back(), 0.2);
}

TEST_F(PlanStoreTest, ARequestIsARowUntilItsPlanArrives) {
    EXPECT_TRUE(store_.request(kOurs, Bytes(150)));
    EXPECT_FALSE(store_.request(kOurs, Bytes(150))) << "once is enough";
    EXPECT_TRUE(store_.awaits(Bytes(150)));
    EXPECT_FALSE(store_.awaits(Bytes(160)));
    ASSERT_EQ(store_.rows(Bytes(150)).size(), 1U);
    EXPECT_FALSE(store_.rows(Bytes(150))[0].plan);

    const PlanPointer plan = entry(kOurs, 150, 140, 1.2);
    store_.add(plan);
    EXPECT_FALSE(store_.awaits(Bytes(150)));
    EXPECT_EQ(store_.rows(Bytes(150))[0].plan, plan);
    EXPECT_EQ(store_.computed(kOurs, Bytes(150)), plan);
    EXPECT_FALSE(store_.request(kOurs, Bytes(150))) << "it is known";
    EXPECT_TRUE(store_.rows(Bytes(160)).empty());
}

TEST_F(PlanStoreTest, AWithdrawnRequestIsForgottenAndAPlanIsNot) {
    store_.add(entry(kOurs, 150, 140, 1.2));
    store_.request(kChen, Bytes(150));
    store_.request(kChen, Bytes(160));
    store_.withdraw(kChen, Bytes(160));
    EXPECT_FALSE(store_.awaits(Bytes(160)));
    store_.withdrawAll();
    EXPECT_FALSE(store_.awaits(Bytes(150)));
    EXPECT_TRUE(store_.computed(kOurs, Bytes(150)));
    EXPECT_TRUE(store_.request(kChen, Bytes(150)));
}

TEST_F(PlanStoreTest, RowsAreThoseOfTheBudgetThenTheLargestOfOthers) {
    const PlanPointer stored = entry(kOurs, 150, 140, 1.2), small = entry(kOurs, 130, 130, 1.5),
                      large = entry(kChen, 200, 190, 1.1), hand = entry(kHand, 150, 150, 1.3);
    document_->plans = {small, stored, large};
    store_.reset(document_, {hand, stored});
    store_.add(entry(kOurs, 150, 140, 1.2));
    const PlanPointer chen = entry(kChen, 150, 145, 1.4);
    store_.add(chen);
    const std::vector<PlanRow> rows = store_.rows(Bytes(150));
    ASSERT_EQ(planners(rows), (QStringList{kChen, kOurs, kHand, kChen, kOurs}))
        << "in the order of the planners, then what no planner of ours made";
    EXPECT_EQ(rows[0].plan, chen);
    EXPECT_EQ(rows[1].plan, stored) << "it may have been run, and is there once";
    EXPECT_EQ(rows[2].plan, hand);
    EXPECT_EQ(rows[3].plan, large);
    EXPECT_EQ(rows[4].plan, small);
}

TEST_F(PlanStoreTest, AFrontierIsOfOnePlannerFromTheLargestBudgetDown) {
    const PlanPointer small = entry(kOurs, 130, 130, 1.5), large = entry(kOurs, 200, 190, 1.1);
    store_.add(small);
    store_.add(large);
    store_.add(withoutPlan(kOurs, 126, planners::PlanStatus::Infeasible));
    store_.add(entry(kChen, 150, 145, 1.4));
    store_.request(kOurs, Bytes(140));
    EXPECT_EQ(store_.frontier(kOurs), (std::vector<PlanPointer>{large, small}));
}

TEST_F(PlanStoreTest, TheFrontierEndsAtAHighFloor) {
    const std::vector<double> ratios = store_.frontierRatios();
    EXPECT_EQ(ratios.size(), 9U);
    EXPECT_EQ(ratios.front(), 1.0);
    EXPECT_NEAR(ratios.back(), 125.0 / 225, 1e-6);
    EXPECT_GE(ratios.back(), 125.0 / 225) << "the last point is not below the floor";
}

TEST_F(PlanStoreTest, ThePlanThatFitsMayBeOfAnyBudget) {
    EXPECT_FALSE(store_.cheapest(Bytes(225)));
    const PlanPointer small = entry(kOurs, 130, 130, 1.5), large = entry(kChen, 200, 160, 1.1);
    store_.add(small);
    store_.add(large);
    EXPECT_FALSE(store_.cheapest(Bytes(129)));
    EXPECT_EQ(store_.cheapest(Bytes(159)), small);
    EXPECT_EQ(store_.cheapest(Bytes(160)), large) << "from its own peak upwards";
    const PlanPointer stored = entry(kHand, 210, 150, 1.05);
    document_->plans = {stored};
    EXPECT_EQ(store_.cheapest(Bytes(160)), stored);
}

TEST_F(PlanStoreTest, ThePreferredPlannerGoesFirstAndThenThePlanForTheVeryBudget) {
    const PlanPointer cheap = entry(kOurs, 200, 150, 1.1), dear = entry(kChen, 160, 150, 1.4),
                      same = entry(kOurs, 160, 160, 1.1004);
    store_.add(cheap);
    store_.add(dear);
    EXPECT_EQ(store_.cheapest(Bytes(160)), cheap);
    store_.add(same);
    EXPECT_EQ(store_.cheapest(Bytes(160)), same) << "less than a tenth of a percent";
    store_.prefer(kChen);
    EXPECT_EQ(store_.cheapest(Bytes(160)), dear);
    EXPECT_EQ(store_.answer(Bytes(160)).plan, dear);
    store_.prefer({});
    EXPECT_EQ(store_.cheapest(Bytes(160)), same);
}

TEST_F(PlanStoreTest, AnswersAtEveryBudget) {
    EXPECT_EQ(store_.answer(Bytes(124)).kind, Answer::Kind::Infeasible) << "below the floor";
    EXPECT_FALSE(store_.answer(Bytes(124)).plan);
    EXPECT_EQ(store_.answer(Bytes(200)).kind, Answer::Kind::Nearest);
    EXPECT_FALSE(store_.answer(Bytes(200)).plan) << "nothing is known";

    const PlanPointer near = entry(kOurs, 160, 160, 1.2);
    store_.add(near);
    store_.add(entry(kOurs, 200, 190, 1.1));
    EXPECT_EQ(store_.answer(Bytes(160)).kind, Answer::Kind::Fits);
    EXPECT_EQ(store_.answer(Bytes(160)).plan, near);
    EXPECT_EQ(store_.answer(Bytes(150)).kind, Answer::Kind::Nearest);
    EXPECT_EQ(store_.answer(Bytes(150)).plan, near) << "it needs least";

    store_.add(withoutPlan(kChen, 150, planners::PlanStatus::Infeasible));
    EXPECT_EQ(store_.answer(Bytes(140)).kind, Answer::Kind::Nearest) << "it proves nothing";
    const PlanPointer proof = withoutPlan(kOurs, 140, planners::PlanStatus::Infeasible);
    store_.add(proof);
    EXPECT_EQ(store_.answer(Bytes(140)).kind, Answer::Kind::Infeasible);
    EXPECT_EQ(store_.answer(Bytes(140)).plan, proof);
    EXPECT_EQ(store_.answer(Bytes(141)).kind, Answer::Kind::Nearest) << "more was not refuted";
}

TEST_F(PlanStoreTest, QuickPlansAnswerAndAreNoRows) {
    const PlanPointer quick = entry(kOurs, 160, 155, 1.2);
    store_.addQuick(quick);
    EXPECT_TRUE(store_.rows(Bytes(160)).empty());
    EXPECT_TRUE(store_.frontier(kOurs).empty());
    EXPECT_EQ(store_.cheapest(Bytes(160)), quick);
    EXPECT_EQ(store_.answer(Bytes(150)).plan, quick) << "the nearest";

    store_.addQuick(entry(kOurs, 170, 158, 1.3));
    EXPECT_EQ(store_.cheapest(Bytes(170)), quick) << "worse in both ways";
    const PlanPointer better = entry(kOurs, 150, 150, 1.1);
    store_.addQuick(better);
    EXPECT_EQ(store_.cheapest(Bytes(160)), better);
}

TEST_F(PlanStoreTest, RemembersBelowWhichQuickAttemptsFindNothing) {
    using planners::PlanStatus;
    store_.addQuick(withoutPlan(kOurs, 150, PlanStatus::Infeasible));
    EXPECT_EQ(store_.quickInfeasibleUpTo(), Bytes(150));
    store_.addQuick(withoutPlan(kOurs, 140, PlanStatus::TimeLimit));
    EXPECT_EQ(store_.quickInfeasibleUpTo(), Bytes(150));
    store_.addQuick(withoutPlan(kOurs, 160, PlanStatus::Cancelled));
    store_.addQuick(withoutPlan(kChen, 170, PlanStatus::Infeasible));
    EXPECT_EQ(store_.quickInfeasibleUpTo(), Bytes(150)) << "a stopped one, and another planner's";
}

TEST_F(PlanStoreTest, ABoundHoldsAtItsBudgetAndBelow) {
    EXPECT_FALSE(store_.provenBound(Bytes(150)));
    auto weak = entry(kOurs, 200, 190, 1.2), strong = entry(kOurs, 150, 150, 1.5);
    weak->lowerBound = Nanoseconds(11);
    strong->lowerBound = Nanoseconds(13);
    store_.add(weak);
    store_.add(strong);
    EXPECT_EQ(store_.provenBound(Bytes(150)), Nanoseconds(13)) << "the best of both";
    EXPECT_EQ(store_.provenBound(Bytes(151)), Nanoseconds(11));
    EXPECT_FALSE(store_.provenBound(Bytes(201)));

    auto other = entry(kHand, 200, 200, 1.05),
         reference = entry(QStringLiteral("none"), 225, 225, 1);
    other->lowerBound = reference->lowerBound = Nanoseconds(14);
    other->header.implementations[0] = "another";
    document_->plans = {other, reference};
    EXPECT_EQ(store_.provenBound(Bytes(151)), Nanoseconds(11))
        << "of captured ops, and not the recorded order's";

    EXPECT_NEAR(*store_.gap(weak), 1.2 - 1.1, 1e-9);
    EXPECT_NEAR(*store_.gap(entry(kChen, 150, 150, 1.6)), 1.6 - 1.3, 1e-9);
    EXPECT_EQ(*store_.gap(other), 0) << "its own bound, and never below it";
    EXPECT_FALSE(store_.gap(entry(kChen, 210, 150, 1.6)));
    EXPECT_FALSE(store_.gap(withoutPlan(kOurs, 150, planners::PlanStatus::Infeasible)));
}

TEST_F(PlanStoreTest, SaysWhatIsFarCheaperWithinTheBudgetOfAPlan) {
    const PlanPointer dear = entry(kChen, 150, 145, 1.4);
    store_.add(dear);
    EXPECT_FALSE(store_.farCheaper(dear));
    store_.add(entry(kOurs, 150, 151, 1.1));
    EXPECT_FALSE(store_.farCheaper(dear)) << "it does not fit";
    store_.add(entry(kOurs, 149, 149, 1.25));
    EXPECT_FALSE(store_.farCheaper(dear)) << "more than half of the extra";
    const PlanPointer file = entry(kHand, 140, 140, 1.02);
    store_.reset(document_, {file});
    store_.add(dear);
    EXPECT_EQ(store_.farCheaper(dear), file);
    EXPECT_FALSE(store_.farCheaper(entry(kChen, 150, 145, 1.06))) << "by 4 points";
}

TEST_F(PlanStoreTest, APlanOfAFileTookAsLongAsTheSamePlanComputedHere) {
    auto file = entry(kOurs, 150, 140, 1.2), computed = entry(kOurs, 150, 140, 1.2);
    EXPECT_FALSE(store_.planningSeconds(file));
    computed->solveSeconds = 2.5;
    store_.add(computed);
    EXPECT_EQ(store_.planningSeconds(file), 2.5);
    EXPECT_FALSE(store_.planningSeconds(entry(kOurs, 150, 145, 1.2))) << "another plan";
    file->solveSeconds = 7;
    EXPECT_EQ(store_.planningSeconds(file), 7);
}

TEST_F(PlanStoreTest, AnotherDocumentBeginsAnew) {
    store_.add(entry(kOurs, 150, 150, 1.2));
    store_.addQuick(entry(kOurs, 160, 140, 1.3));
    store_.addQuick(withoutPlan(kOurs, 130, planners::PlanStatus::Infeasible));
    store_.request(kChen, Bytes(150));
    store_.reset(document_, {});
    EXPECT_TRUE(store_.rows(Bytes(150)).empty());
    EXPECT_FALSE(store_.awaits(Bytes(150)));
    EXPECT_FALSE(store_.cheapest(Bytes(225)));
    EXPECT_EQ(store_.quickInfeasibleUpTo(), Bytes(0));
}

}  // namespace
}  // namespace hw::viewer
