// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/models/document.h"

#include <gtest/gtest.h>

#include <QTemporaryDir>

#include "core/plan/plan.h"
#include "planners/plan_with.h"
#include "tests/models/test_graphs.h"
#include "viewer/models/recorded_curve.h"

namespace hw::viewer {
namespace {

TEST(Document, MissingAndForeignFilesSaySo) {
    const auto missing = loadDocument("/nonexistent/file.hws");
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code, core::ErrorCode::BadInput);
    EXPECT_NE(missing.error().what.find("file.hws"), std::string::npos);
}

class DocumentOnLogs : public samples::OnLogs {};
HW_WITH_LOGS(DocumentOnLogs);

TEST_P(DocumentOnLogs, LoadsALogAndAPlanForIt) {
    core::Result<DocumentPointer> document = loadDocument(logPath("resnet32"));
    ASSERT_TRUE(document) << document.error().what;
    EXPECT_EQ((*document)->peak().count(), expected("resnet32", "memory"));
    EXPECT_EQ((*document)->judged.time.count(), expected("resnet32", "compute"));
    EXPECT_EQ((*document)->size.name, "GB");
    EXPECT_EQ((*document)->name, "resnet32.log.gz");
    EXPECT_LE((*document)->floor, (*document)->peak());
    EXPECT_FALSE((*document)->peakPlace().isEmpty());
    EXPECT_EQ((*document)->curve.peak, (*document)->peak());

    planners::PlanRequest request;
    request.budget = core::Bytes(static_cast<std::int64_t>((*document)->peak().count() * 0.6));
    const auto outcome = planners::planWith("dtr:eqclass", (*document)->graph, request);
    ASSERT_TRUE(outcome && outcome->plan);
    QTemporaryDir folder;
    const std::string file = folder.filePath("a.plan.json").toStdString();
    ASSERT_TRUE(core::writePlanFile(*outcome->plan, file));
    core::Result<PlanPointer> plan = loadPlan(**document, file);
    ASSERT_TRUE(plan) << plan.error().what;
    EXPECT_EQ((*plan)->planner, "dtr:eqclass");
    EXPECT_EQ((*plan)->peak, outcome->peak);
    EXPECT_EQ((*plan)->time, outcome->time);
    EXPECT_EQ((*plan)->curve.peak, outcome->peak);
    EXPECT_LE((*plan)->peak, request.budget);
    EXPECT_GT((*plan)->recomputedOps, 0);

    core::Result<DocumentPointer> other = loadDocument(logPath("unet"));
    ASSERT_TRUE(other);
    const auto foreign = loadPlan(**other, file);
    ASSERT_FALSE(foreign);
    EXPECT_EQ(foreign.error().code, core::ErrorCode::BadInput);
}

TEST(RecordedCurve, StacksWhatStoragesAccountFor) {
    core::RecordedMemory memory;
    const auto storage = [&](std::int64_t bytes, core::Category category) {
        core::Storage& made = memory.graph.storages.emplace_back();
        made.bytes = core::Bytes(bytes), made.category = category;
    };
    storage(100, core::Category::Activation);
    storage(40, core::Category::Temporary);
    storage(900, core::Category::Gradient);  // more than the allocator counts
    const std::int64_t levels[] = {1000, 1100, 1140, 1100, 800};
    for (int i = 0; i < 5; ++i)
        memory.moments.push_back({core::Nanoseconds(10 * i), core::Bytes(levels[i]), core::kNone});
    memory.lifetimes = {{0, 1, 3}, {1, 2, 2}, {2, 4, 4}};
    const StepCurve curve = recordedCurve(memory, Bands());
    ASSERT_EQ(curve.moments.size(), 5U);
    const auto bytes = [&](std::size_t moment, core::Category category) {
        return curve.moments[moment].byBand[bandOf(category)].count();
    };
    EXPECT_EQ(bytes(0, core::Category::Unknown), 1000);
    EXPECT_EQ(bytes(2, core::Category::Activation), 100);
    EXPECT_EQ(bytes(2, core::Category::Temporary), 40);
    EXPECT_EQ(bytes(2, core::Category::Unknown), 1000);
    EXPECT_EQ(bytes(3, core::Category::Temporary), 0);
    EXPECT_EQ(bytes(4, core::Category::Gradient), 800);
    for (const Moment& moment : curve.moments) {
        core::Bytes sum;
        for (const core::Bytes part : moment.byBand) sum += part;
        EXPECT_EQ(sum, moment.total);
    }
    EXPECT_EQ(curve.peakMoment, 2U);
}

TEST_P(DocumentOnLogs, ABoundHoldsForTheCostsThatItWasProvenWith) {
    const auto document = loadDocument(logPath("resnet32"));
    ASSERT_TRUE(document);
    planners::PlanRequest request;
    request.budget = core::Bytes(static_cast<std::int64_t>((*document)->peak().count() * 0.6));
    auto outcome = planners::planWith("dtr:eqclass", (*document)->graph, request);
    ASSERT_TRUE(outcome && outcome->plan);
    core::Plan plan = *outcome->plan;
    plan.lowerBound = (*document)->judged.time;
    QTemporaryDir folder;
    const std::string file = folder.filePath("a.plan.json").toStdString();
    ASSERT_TRUE(core::writePlanFile(plan, file));
    const auto same = loadPlan(**document, file);
    ASSERT_TRUE(same && (*same)->lowerBound);
    EXPECT_EQ(*(*same)->lowerBound, (*document)->judged.time);

    plan.predictedTime += core::Nanoseconds(1000);  // as if planned before costs were measured
    ASSERT_TRUE(core::writePlanFile(plan, file));
    const auto other = loadPlan(**document, file);
    ASSERT_TRUE(other);
    EXPECT_FALSE((*other)->lowerBound);
}

TEST_P(DocumentOnLogs, UnknownStepIsRefused) {
    const auto document = loadDocument(logPath("resnet32"), 4711);
    ASSERT_FALSE(document);
    EXPECT_EQ(document.error().code, core::ErrorCode::BadInput);
}

}  // namespace
}  // namespace hw::viewer
