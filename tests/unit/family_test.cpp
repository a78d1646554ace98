// SPDX-License-Identifier: MIT
#include "core/family/family.h"

#include "core/family/align.h"
#include "core/memory/evaluate.h"
#include "planners/largest_size.h"
#include "tests/unit/graph_builder.h"

namespace hw::core {
namespace {

using test::GraphBuilder;

/// What differs between made-up programs.
struct Program {
    std::string activation = "relu";
    std::int64_t width = 8;  // of the parameter
    bool moments = false;    // the optimizer has a state
    bool keeps = false;      // an activation stays until the end
};

/// A step on a batch of `batch` items of `length` numbers; the time of an op is 3 + 2 batch.
FamilyRecord record(std::int64_t batch, std::int64_t length = 4, const Program& program = {}) {
    GraphBuilder b;
    FamilyRecord made;
    const std::int64_t bytes = 4 * batch * length, time = 3 + 2 * batch;
    const auto input = b.constant(bytes), weight = b.constant(program.width);
    b.phase(Phase::Forward);
    const auto hidden = b.one("linear", {input, weight}, bytes, time, 10 + batch);
    const auto active = b.one(program.activation, {hidden}, bytes, time);
    const auto scores = b.one("attention", {active}, batch * length * length, time);
    b.phase(Phase::Backward);
    const auto gradient = b.one("linear_backward", {scores, active, hidden, weight}, program.width);
    b.release(scores);
    b.release(active);
    if (program.keeps)
        b.final(hidden);
    else
        b.release(hidden);
    b.phase(Phase::Optimizer);
    if (program.moments) b.inPlace("mul_", {gradient});
    b.inPlace("add_", {weight, gradient});
    b.final(weight);
    b.final(gradient);
    b.final(input);
    b.raw().storages[b.storage(weight)].category = Category::Parameter;
    made.graph = b.build();
    made.forms.resize(made.graph.tensors.size());
    made.forms[input] = {{batch, length}, {length, 1}, 0};
    made.name = "batch-" + std::to_string(batch) + ".hws";
    return made;
}

std::vector<FamilyRecord> records(const std::vector<std::int64_t>& batches) {
    std::vector<FamilyRecord> made;
    for (const std::int64_t batch : batches) made.push_back(record(batch));
    return made;
}

Bytes peak(const TrainingGraph& graph) {
    return evaluate(graph, baselineSchedule(graph)).peak;
}

std::string problem(std::vector<FamilyRecord> of, std::optional<int> vary = std::nullopt) {
    const auto made = Family::make(std::move(of), vary);
    EXPECT_FALSE(made);
    if (made) return {};
    EXPECT_FALSE(made.error().hint.empty());
    return made.error().what;
}

TEST(Family, IsTheStepAtAnySize) {
    const auto family = Family::make(records({8, 4}));
    ASSERT_TRUE(family);
    EXPECT_EQ(family->sizes(), (std::vector<std::int64_t>{4, 8}));
    EXPECT_EQ(family->dimension(), 0);
    for (const std::int64_t batch : {1, 3, 4, 8, 30}) {
        const TrainingGraph made = family->graphAt(batch), real = record(batch).graph;
        EXPECT_EQ(made.fingerprint(), real.fingerprint()) << batch;
        EXPECT_EQ(peak(made), peak(real)) << batch;
        EXPECT_EQ(made.totalTime(), real.totalTime()) << batch;
        EXPECT_EQ(family->extrapolates(batch), batch < 4 || batch > 8);
    }
    EXPECT_TRUE(family->leaveOneOut().empty()) << "one record alone tells no other size";
}

TEST(Family, CountsAConvolutionBeyondTheRecordsWithCopiesOfItsActivations) {
    const auto convolution = [](std::int64_t batch) {
        GraphBuilder b;
        FamilyRecord made;
        const auto input = b.constant(16 * batch), weight = b.constant(100);
        b.phase(Phase::Forward);
        const auto hidden = b.one("aten::convolution", {input, weight}, 32 * batch, batch, 7);
        b.phase(Phase::Backward);
        const auto gradient =
            b.one("aten::convolution_backward", {hidden, input, weight}, 100, batch, 100);
        b.final(gradient);
        b.raw().storages[b.storage(weight)].category = Category::Parameter;
        made.graph = b.build();
        made.forms.resize(made.graph.tensors.size());
        made.forms[input] = {{batch, 4}, {4, 1}, 0};
        made.name = std::to_string(batch);
        return made;
    };
    std::vector<FamilyRecord> recorded;
    recorded.push_back(convolution(2));
    recorded.push_back(convolution(4));
    const auto family = Family::make(std::move(recorded));
    ASSERT_TRUE(family);
    EXPECT_EQ(family->graphAt(4).ops[1].workspace, Bytes(100));
    EXPECT_EQ(family->graphAt(3).ops[1].workspace, Bytes(100));
    EXPECT_EQ(family->graphAt(40).ops[0].workspace, Bytes(7));
    EXPECT_EQ(family->graphAt(40).ops[1].workspace, Bytes((16 + 32) * 40));
}

TEST(Family, TellsHowFarItIsFromRecordsThatItDoesNotKnow) {
    auto given = records({4, 8, 16});
    given[2].graph.ops[0].workspace = Bytes(1000);  // another kernel
    const auto family = Family::make(given);
    ASSERT_TRUE(family);
    EXPECT_EQ(peak(family->graphAt(16)), peak(given[2].graph));
    EXPECT_EQ(family->graphAt(6).ops[0].workspace, Bytes(16)) << "between the two that agree";
    const auto rows = family->leaveOneOut();
    ASSERT_EQ(rows.size(), 3U);
    EXPECT_EQ(rows[2].size, 16);
    EXPECT_EQ(rows[2].predictedPeak, peak(record(16).graph));
    EXPECT_EQ(rows[2].recordedPeak, peak(given[2].graph));
    EXPECT_EQ(rows[0].predictedTime, rows[0].recordedTime);
}

TEST(Family, OfASequenceIsQuadratic) {
    const auto family = Family::make({record(2, 4), record(2, 8), record(2, 16)});
    ASSERT_TRUE(family);
    EXPECT_EQ(family->dimension(), 1);
    for (const std::int64_t length : {2, 6, 40})
        EXPECT_EQ(family->graphAt(length).fingerprint(), record(2, length).graph.fingerprint());
}

TEST(Family, OfSeveralDimensionsVariesOne) {
    const std::vector<FamilyRecord> given{record(2, 4), record(4, 4), record(2, 8), record(8, 4)};
    EXPECT_NE(problem(given).find("several dimensions"), std::string::npos);
    const auto batches = Family::make(given, 0);
    ASSERT_TRUE(batches);
    EXPECT_EQ(batches->sizes(), (std::vector<std::int64_t>{2, 4, 8}));
    const auto lengths = Family::make(given, 1);
    ASSERT_TRUE(lengths);
    EXPECT_EQ(lengths->sizes(), (std::vector<std::int64_t>{4, 8}));
    EXPECT_EQ(Family::make(given, 2).error().code, ErrorCode::Usage);
}

TEST(Family, NeedsRecordsOfOneProgram) {
    EXPECT_NE(problem({record(4), record(8, 4, {.activation = "gelu"})})
                  .find("op 1 is relu in the one and gelu in the other"),
              std::string::npos);
    EXPECT_NE(problem({record(4), record(8, 4, {.moments = true})}).find("op 4 is add_"),
              std::string::npos);
    EXPECT_NE(problem({record(4), record(8, 4, {.width = 16})}).find("parameter"),
              std::string::npos);
    EXPECT_NE(problem({record(4), record(8, 4, {.keeps = true})}).find("op 0 (linear) makes"),
              std::string::npos);
    EXPECT_NE(problem({record(4), record(4)}).find("one size only"), std::string::npos);
    auto shapeless = records({4, 8});
    for (FamilyRecord& each : shapeless) each.forms.assign(each.forms.size(), {});
    EXPECT_NE(problem(shapeless).find("no shapes"), std::string::npos);
    EXPECT_NE(problem(records({4})).find("one size only"), std::string::npos);
}

TEST(Align, FindsWhatIsNumberedInAnotherWay) {
    const FamilyRecord first = record(4);
    FamilyRecord second = record(8);
    std::reverse(second.graph.finalTensors.begin(), second.graph.finalTensors.end());
    const auto made = align({first.graph, first.name}, {second.graph, second.name});
    ASSERT_TRUE(made);
    for (std::size_t s = 0; s < made->storages.size(); ++s)
        EXPECT_EQ(made->storages[s], static_cast<StorageIndex>(s));
}

TEST(SizeFit, GoesThroughRecordsAndBetweenThem) {
    const std::vector<SizePoint> steps{{1, 0}, {2, 0}, {4, 100}, {8, 100}};
    const ExactFit pieces(steps, SizeCurve::Straight);
    EXPECT_FALSE(pieces.affine());
    for (const SizePoint& point : steps) EXPECT_EQ(pieces.at(point.size), point.value);
    EXPECT_EQ(pieces.at(3), 50);
    EXPECT_EQ(pieces.at(100), 100);
    EXPECT_EQ(ExactFit({{4, 10}, {8, 30}}, SizeCurve::Straight).at(1), 0) << "nothing is below 0";
    EXPECT_EQ(ExactFit({{8, 0}, {16, 100}}, SizeCurve::Straight).at(32), 300);
    EXPECT_EQ(ExactFit({{8, 0}, {16, 100}}, SizeCurve::Kernels).at(32), 200) << "another kernel";
    EXPECT_EQ(ExactFit({{8, 60}, {16, 100}}, SizeCurve::Kernels).at(32), 180);
    EXPECT_EQ(ExactFit({{4, 7}}, SizeCurve::Straight).at(9), 7);
}

TEST(SizeFit, OfTimesNeitherFallsNorStartsBelowNothing) {
    EXPECT_EQ(MeasuredFit({{4, 90}, {8, 70}}, SizeCurve::Straight).at(100), 80);
    EXPECT_EQ(MeasuredFit({{4, 10}, {8, 30}}, SizeCurve::Straight).at(16), 56) << "through 0";
    EXPECT_EQ(MeasuredFit({{1, 10}, {2, 20}, {3, 24}, {4, 36}}, SizeCurve::Straight).at(10), 84);
    EXPECT_EQ(MeasuredFit({{1, 3}, {2, 9}, {4, 33}}, SizeCurve::Quadratic).at(10), 201);
}

TEST(LargestSize, IsTheRecordedOneAtItsOwnPeakAndGrowsWithPlans) {
    std::vector<FamilyRecord> given;
    for (const std::int64_t batch : {10, 20}) {
        FamilyRecord made;
        made.graph = test::chain(12, 100 * batch);
        made.forms.resize(made.graph.tensors.size());
        made.forms.front() = {{batch}, {1}, 0};
        given.push_back(std::move(made));
    }
    planners::PlanRequest request;
    request.budget = peak(given[1].graph);
    request.timeLimitSeconds = 2;
    auto family = Family::make(given);
    ASSERT_TRUE(family);
    const StepFamilies usual{*family, {}};
    const auto found = planners::largestSizes(
        usual, {"highwater", "none", "chen-sqrt", "dtr:eqclass", "echo"}, request);
    ASSERT_TRUE(found);
    EXPECT_FALSE(found->mostOfOthers);
    const auto& rows = found->rows;
    EXPECT_EQ(rows[1].size, 20);
    EXPECT_GT(rows[0].size, 20);
    for (const auto& row : rows) {
        ASSERT_TRUE(row.size) << row.planner;
        EXPECT_LE(*row.size, *rows[0].size) << row.planner;
        EXPECT_LE(row.outcome->peak, request.budget);
        EXPECT_EQ(row.outcome->planner, row.planner);
        const Evaluation judged = evaluate(family->graphAt(*row.size), row.outcome->plan->schedule);
        EXPECT_TRUE(judged.valid) << row.planner << ": " << judged.why;
        EXPECT_EQ(judged.peak, row.outcome->peak);
    }
    request.budget = Bytes(10);
    const auto none = planners::largestSizes(usual, {"none", "highwater"}, request);
    ASSERT_TRUE(none);
    for (const auto& row : none->rows) EXPECT_FALSE(row.size) << row.planner;
    EXPECT_FALSE(planners::largestSizes(usual, {"unknown"}, request));
}

// The first step of a training makes an optimizer's states: what the others need and more.
TEST(LargestSize, IsOneAtWhichOtherKindsOfStepsHavePlans) {
    std::vector<FamilyRecord> given, first;
    for (const std::int64_t batch : {10, 20})
        for (auto* of : {&given, &first}) {
            FamilyRecord& made = of->emplace_back();
            made.graph = test::chain(12, 100 * batch);
            made.forms.resize(made.graph.tensors.size());
            made.forms.front() = {{batch}, {1}, 0};
            if (of == &first) made.graph.ops[6].workspace = Bytes(400 * batch);
        }
    const auto usual = Family::make(given), other = Family::make(first);
    ASSERT_TRUE(usual && other);
    planners::PlanRequest request;
    request.budget = Bytes(24000);
    request.timeLimitSeconds = 2;
    const std::vector<std::string> planners{"none", "highwater"};
    const auto alone = planners::largestSizes({*usual, {}}, planners, request);
    const auto both = planners::largestSizes({*usual, {*other}}, planners, request);
    ASSERT_TRUE(alone && both);
    ASSERT_TRUE(both->mostOfOthers);
    const std::int64_t most = *both->mostOfOthers;
    EXPECT_EQ(both->rows[1].size, most);
    EXPECT_LT(most, *alone->rows[1].size);
    EXPECT_LE(other->graphAt(most).floorBytes(), request.budget);
    EXPECT_EQ(both->rows[0].size, alone->rows[0].size) << "that size has plans for both";
}

TEST(Family, TellsNoTimesBeyondRecordsWhereStepsTakeAsLong) {
    auto given = records({8, 16});
    for (std::size_t i = 0; i < given[1].graph.ops.size(); ++i)
        given[1].graph.ops[i].time = given[0].graph.ops[i].time;
    const auto flat = Family::make(given), steep = Family::make(records({8, 16}));
    ASSERT_TRUE(flat && steep);
    EXPECT_TRUE(flat->tellsTimes(12));
    EXPECT_FALSE(flat->tellsTimes(100));
    EXPECT_TRUE(steep->tellsTimes(100));
    // Steps of one size that differ by more than the sizes do.
    auto noisy = records({8, 16, 16, 16});
    for (std::size_t i = 2; i < noisy.size(); ++i)
        for (Op& op : noisy[i].graph.ops) op.time = Nanoseconds(op.time.count() * 3);
    const auto unsure = Family::make(noisy);
    ASSERT_TRUE(unsure);
    EXPECT_FALSE(unsure->tellsTimes(100));
}

}  // namespace
}  // namespace hw::core
