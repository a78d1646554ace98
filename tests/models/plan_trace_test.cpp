// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/models/plan_trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "tests/models/test_graphs.h"
#include "viewer/models/document.h"
#include "viewer/models/trace_marks.h"

namespace hw::viewer {

bool operator==(const TraceBar& a, const TraceBar& b) {
    return std::tie(a.row, a.begin, a.end, a.by) == std::tie(b.row, b.begin, b.end, b.by);
}
void PrintTo(const TraceBar& bar, std::ostream* out) {
    *out << "row " << bar.row << " [" << bar.begin << ", " << bar.end << ") "
         << static_cast<int>(bar.by);
}

namespace {

using core::Action;
using core::Bytes;
using core::Nanoseconds;

PlanTrace traceOf(const core::TrainingGraph& graph, const core::Schedule& schedule) {
    EXPECT_TRUE(core::evaluate(graph, schedule).valid) << core::evaluate(graph, schedule).why;
    return planTrace(graph, schedule, stepCurve(graph, schedule));
}

// `a` is dropped while `b` is made and rematerialized for the last op.
core::Schedule droppingA() {
    return {Action::compute(0), Action::compute(1), Action::free(1), Action::recompute(0, {0}),
            Action::compute(2), Action::free(1),    Action::free(2)};
}

TEST(PlanTrace, BarsStepsAndTimesOfAHandMadePlan) {
    const core::TrainingGraph graph = samples::smallGraph();
    const PlanTrace trace = traceOf(graph, droppingA());
    EXPECT_EQ(trace.rows, (std::vector<core::StorageIndex>{1, 2, 3})) << "no row for the weights";
    EXPECT_EQ(trace.bars, (std::vector<TraceBar>{{0, 0, 2, core::ActionKind::Compute},
                                                 {0, 2, 4, core::ActionKind::Recompute},
                                                 {1, 1, 4, core::ActionKind::Compute},
                                                 {2, 3, 4, core::ActionKind::Compute}}));
    EXPECT_EQ(trace.firstBar, (std::vector<std::size_t>{0, 2, 3, 4}));
    EXPECT_EQ(trace.computed, (std::vector<std::int32_t>{2, 1, 1}));
    EXPECT_EQ(trace.ops, (std::vector<core::OpIndex>{0, 1, 0, 2}));
    EXPECT_EQ(trace.recomputed, (std::vector<bool>{false, false, true, false}));
    EXPECT_EQ(trace.begin, (std::vector<Nanoseconds>{Nanoseconds(0), Nanoseconds(3), Nanoseconds(8),
                                                     Nanoseconds(11), Nanoseconds(13)}));
    EXPECT_EQ(trace.below, (std::vector<Bytes>{Bytes(0), Bytes(40), Bytes(100), Bytes(110)}));
    ASSERT_EQ(trace.phases.size(), 1U);
    EXPECT_EQ(trace.phases[0].step, 3) << "a recomputed forward op begins no phase";
    EXPECT_FALSE(trace.phasesGuessed);
    EXPECT_EQ(trace.peakStep, 1) << "100 + 40 + 60 + 25 of workspace";
    EXPECT_EQ(trace.barAt(0, 2)->by, core::ActionKind::Recompute);
    EXPECT_EQ(trace.barAt(2, 2), nullptr);
    EXPECT_EQ(trace.stepAt(Nanoseconds(7)), 1);
    EXPECT_EQ(trace.stepAt(Nanoseconds(8)), 2);
    EXPECT_EQ(trace.stepAt(Nanoseconds(1000)), 3);
}

TEST(PlanTrace, EncodedStretchesStandApart) {
    const core::TrainingGraph graph = samples::smallGraph();
    const Action encode = Action::encode(1, "mask", Bytes(5));
    const Action decode = Action::decode(1);
    const core::Schedule schedule{Action::compute(0), encode,          Action::compute(1), decode,
                                  Action::compute(2), Action::free(1), Action::free(2)};
    const PlanTrace trace = planTrace(graph, schedule, stepCurve(graph, schedule));
    ASSERT_EQ(trace.firstBar[1], 3U);
    EXPECT_EQ(trace.bars[0], (TraceBar{0, 0, 1, core::ActionKind::Compute}));
    EXPECT_EQ(trace.bars[1], (TraceBar{0, 1, 2, core::ActionKind::Encode}));
    EXPECT_EQ(trace.bars[2], (TraceBar{0, 2, 3, core::ActionKind::Compute}));
    EXPECT_EQ(trace.computed[0], 1) << "decoding computes nothing";
}

TEST(PlanTrace, WithoutPhasesTheBackwardPassBeginsAtItsFirstOp) {
    core::TrainingGraph graph = samples::smallGraph();
    for (core::Op& op : graph.ops) op.phase = core::Phase::Unknown;
    const PlanTrace trace = traceOf(graph, droppingA());
    EXPECT_TRUE(trace.phasesGuessed);
    ASSERT_EQ(trace.phases.size(), 1U);
    EXPECT_EQ(trace.phases[0].step, 3);
    EXPECT_EQ(trace.phases[0].phase, core::Phase::Backward);
}

class PlanTraceOnLogs : public samples::OnLogs {};
HW_WITH_LOGS(PlanTraceOnLogs);

// The window's other replay of a schedule, made for the timeline, says the same.
TEST_P(PlanTraceOnLogs, AgreesWithTheStepCurveOnRealPlans) {
    for (const char* log : {"unet", "resnet32"}) {
        const core::Result<DocumentPointer> document = loadDocument(logPath(log));
        ASSERT_TRUE(document) << document.error().what;
        const core::Result<PlanPointer> plan =
            computePlan(**document, "dtr:eqclass",
                        Bytes(static_cast<std::int64_t>((*document)->peak().count() * 0.5)), 5);
        ASSERT_TRUE(plan && (*plan)->ok());
        const core::TrainingGraph& graph = (*document)->graph;
        const PlanTrace trace = planTrace(graph, (*plan)->schedule, (*plan)->curve);
        std::set<std::tuple<core::StorageIndex, int, int>> drawn, expected;
        std::int64_t again = 0;
        for (const TraceBar& bar : trace.bars) {
            drawn.emplace(trace.rows[bar.row], bar.begin, bar.end);
            again += bar.by == core::ActionKind::Recompute;
        }
        for (const Lifetime& lifetime : (*plan)->curve.lifetimes)
            if (!graph.storages[lifetime.storage].isConstant())
                expected.emplace(lifetime.storage, lifetime.first, lifetime.last + 1);
        EXPECT_EQ(drawn, expected);
        EXPECT_GT(again, 0);
        EXPECT_EQ(std::count(trace.recomputed.begin(), trace.recomputed.end(), true),
                  (*plan)->recomputedOps);
        EXPECT_EQ(trace.begin.back(), (*plan)->time);
        EXPECT_EQ((*plan)->curve.moments[trace.peakStep].total, (*plan)->peak);
    }
}

TEST(TraceMarks, RowsWithRoomAreDrawnAsTheyAre) {
    const core::TrainingGraph graph = samples::smallGraph();
    const PlanTrace trace = traceOf(graph, droppingA());
    const std::vector<TraceMark> marks = visibleMarks(trace, {{true, false}, 0, 4, 0, 3, 400, 300});
    ASSERT_EQ(marks.size(), 4U);
    EXPECT_DOUBLE_EQ(marks[1].left, 200);
    EXPECT_DOUBLE_EQ(marks[1].right, 400);
    EXPECT_DOUBLE_EQ(marks[1].low, 0);
    EXPECT_DOUBLE_EQ(marks[1].high, 100);
    EXPECT_EQ(marks[1].by, core::ActionKind::Recompute);
    // By time and bytes: 13 ns across, 110 bytes up.
    const std::vector<TraceMark> scaled =
        visibleMarks(trace, {{false, true}, 0, 13e-6, 0, 110, 1300, 110});
    ASSERT_EQ(scaled.size(), 4U);
    EXPECT_NEAR(scaled[1].left, 800, 1e-6);
    EXPECT_DOUBLE_EQ(scaled[1].high, 40);
    EXPECT_DOUBLE_EQ(scaled[2].low, 40);
    EXPECT_DOUBLE_EQ(scaled[2].high, 100);
    // What is out of sight is not drawn, what reaches into it is cut.
    const std::vector<TraceMark> part = visibleMarks(trace, {{true, false}, 3, 4, 0, 2, 100, 200});
    ASSERT_EQ(part.size(), 2U);
    EXPECT_DOUBLE_EQ(part[0].left, 0);
    EXPECT_DOUBLE_EQ(part[0].right, 100);
    EXPECT_TRUE(visibleMarks(PlanTrace{}, {{}, 0, 1, 0, 1, 100, 100}).empty());
}

// A diagonal of `rows` storages, each alive for ten steps; row `again` for one more later on.
PlanTrace diagonal(std::int32_t rows, std::int32_t again) {
    PlanTrace trace;
    trace.below.emplace_back(0);
    for (std::int32_t row = 0; row < rows; ++row) {
        trace.rows.push_back(row);
        trace.below.push_back(trace.below.back() + Bytes(100));
        trace.firstBar.push_back(trace.bars.size());
        trace.bars.push_back({row, row, std::min(row + 10, rows), core::ActionKind::Compute});
        if (row == again)
            trace.bars.push_back(
                {row, row + rows / 2, row + rows / 2 + 1, core::ActionKind::Recompute});
        trace.ops.push_back(row);
        trace.begin.emplace_back(row * 1000);
    }
    trace.firstBar.push_back(trace.bars.size());
    trace.begin.emplace_back(rows * 1000);
    return trace;
}

TEST(TraceMarks, ManyRowsMergeAndNothingIsLost) {
    constexpr int kRows = 5000, kWidth = 300, kHeight = 200;
    const PlanTrace trace = diagonal(kRows, 1000);
    const std::vector<TraceMark> marks =
        visibleMarks(trace, {{true, false}, 0, kRows, 0, kRows, kWidth, kHeight});
    EXPECT_LE(marks.size(), static_cast<std::size_t>(3 * kHeight));
    int rematerialized = 0;
    for (const TraceMark& mark : marks) {
        EXPECT_GE(mark.cover, 1);
        EXPECT_LE(mark.cover, TraceMark::kWhole);
        EXPECT_GE(mark.left, 0);
        EXPECT_LE(mark.right, kWidth);
        EXPECT_GE(mark.low, 0);
        EXPECT_LE(mark.high, kHeight);
        if (mark.rematerialized == 0) continue;
        ++rematerialized;
        EXPECT_EQ(mark.left, 1000 * kWidth / kRows + kWidth / 2);
        EXPECT_EQ(mark.low, 1000 * kHeight / kRows);
    }
    EXPECT_EQ(rematerialized, 1) << "one step of one row in 25";
    std::set<std::pair<int, int>> pixels;  // no pixel is drawn twice
    for (const TraceMark& mark : marks)
        for (double y = mark.low; y < mark.high; ++y)
            for (double x = mark.left; x < mark.right; ++x)
                EXPECT_TRUE(pixels.emplace(static_cast<int>(x), static_cast<int>(y)).second);
    // Every row is somewhere: each line of pixels has something.
    std::set<int> lines;
    for (const auto& [x, y] : pixels) lines.insert(y);
    EXPECT_EQ(lines.size(), static_cast<std::size_t>(kHeight));
}

TEST(TraceMarks, StoragesWithRoomStandOutAmongManySmallOnes) {
    PlanTrace trace = diagonal(400, -1);
    for (std::size_t row = 200; row < trace.below.size(); ++row) trace.below[row] += Bytes(40000);
    const double all = static_cast<double>(trace.below.back().count());
    const std::vector<TraceMark> marks =
        visibleMarks(trace, {{true, true}, 0, 400, 0, all, 100, 100});
    const auto large = std::find_if(marks.begin(), marks.end(), [](const TraceMark& mark) {
        return mark.high - mark.low > 10;
    });
    ASSERT_NE(large, marks.end());
    EXPECT_NEAR(large->high - large->low, 40100 / all * 100, 1e-9);
    EXPECT_EQ(large->cover, TraceMark::kWhole);
}

}  // namespace
}  // namespace hw::viewer
