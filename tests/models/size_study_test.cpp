// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/models/size_study.h"

#include <gtest/gtest.h>

#include <QAbstractItemModelTester>

#include "core/memory/evaluate.h"
#include "tests/models/test_graphs.h"
#include "viewer/models/size_model.h"
#include "viewer/models/table_text.h"

namespace hw::viewer {
namespace {

// A chain of layers, each of which saves `bytes` for backward and makes them from its input.
core::TrainingGraph chain(std::int64_t bytes) {
    using namespace core;
    constexpr int kLayers = 6;
    TrainingGraph graph;
    graph.layers = {{"(root)", "", kNone}};
    const auto storage = [&](std::int64_t size, Category category) {
        graph.storages.emplace_back();
        graph.storages.back().bytes = Bytes(size);
        graph.storages.back().category = category;
        graph.tensors.push_back(
            {static_cast<StorageIndex>(graph.storages.size()) - 1, kNone, kNone});
        return static_cast<TensorIndex>(graph.tensors.size()) - 1;
    };
    const auto op = [&](const char* name, ShortList<Use> inputs, TensorIndex output, Phase phase,
                        LayerIndex layer) {
        Op made;
        made.name = name;
        made.inputs = std::move(inputs);
        made.outputs = {{output, true}};
        made.time = Nanoseconds(bytes);
        made.phase = phase;
        made.layer = layer;
        graph.ops.push_back(made);
        graph.events.push_back({Event::Kind::Compute, static_cast<int>(graph.ops.size()) - 1});
    };
    const TensorIndex input = storage(bytes, Category::Input);
    graph.events.push_back({Event::Kind::Constant, input});
    std::vector<TensorIndex> inner, outer{input};
    for (int i = 0; i < kLayers; ++i) {
        graph.layers.push_back({"layer" + std::to_string(i), "Block", 0});
        inner.push_back(storage(4 * bytes, Category::Activation));
        op("aten::exp", {{outer.back(), 0}}, inner.back(), Phase::Forward, i + 1);
        outer.push_back(storage(bytes, Category::Activation));
        op("aten::sum", {{inner.back(), 0}}, outer.back(), Phase::Forward, i + 1);
    }
    TensorIndex gradient = storage(bytes, Category::Gradient);
    op("aten::ones_like", {{outer.back(), 0}}, gradient, Phase::Backward, kLayers);
    for (int i = kLayers - 1; i >= 0; --i) {
        const TensorIndex next = storage(bytes, Category::Gradient);
        op("aten::mul", {{gradient, 0}, {inner[i], 0}}, next, Phase::Backward, i + 1);
        graph.events.push_back({Event::Kind::Release, inner[i]});
        graph.events.push_back({Event::Kind::Release, gradient});
        graph.events.push_back({Event::Kind::Release, outer[i + 1]});
        gradient = next;
    }
    graph.finalTensors = {input, gradient};
    graph.finish();
    return graph;
}

SizeSamples samples(const std::vector<std::int64_t>& sizes) {
    SizeSamples made;
    for (const std::int64_t size : sizes) {
        SizeSamples::Step step{static_cast<std::int64_t>(made.steps.size()), chain(size), {}, {}};
        step.profile = planners::profileStep(step.graph);
        step.time = step.graph.totalTime();
        made.steps.push_back(std::move(step));
    }
    return made;
}

TEST(SizeStudy, LargeSizesDropLayersSmallOnesNone) {
    const SizeSamples recorded = samples({1000, 2000, 3000, 4000, 5000, 6000});
    const core::Bytes small = recorded.steps.front().profile.peak,
                      large = recorded.steps.back().profile.peak;
    const SizeStudy study = studySizes(recorded, core::Bytes(large.count() * 7 / 10));
    ASSERT_EQ(study.rows.size(), 6U) << study.why.toStdString();
    EXPECT_GT(large, small);
    EXPECT_EQ(study.rows.front().droppedLayers, 0);
    EXPECT_EQ(study.rows.front().plannedTime, study.rows.front().recordedTime);
    EXPECT_GT(study.rows.back().droppedLayers, 0);
    EXPECT_GT(study.rows.back().plannedTime, study.rows.back().recordedTime);
    EXPECT_LT(study.rows.back().plannedPeak, large);
    for (const SizeRow& row : study.rows)
        EXPECT_NEAR(ratio(row.estimatedPeak, row.recordedPeak), 1, 0.02) << row.bytes;
    EXPECT_EQ(study.curve.front().first, study.rows.front().bytes);
    EXPECT_EQ(study.curve.back().first, study.rows.back().bytes);

    SizeModel model;
    const QAbstractItemModelTester tester(&model,
                                          QAbstractItemModelTester::FailureReportingMode::Fatal);
    model.setStudy(study, SizeUnit::fitting(large));
    ASSERT_EQ(model.rowCount(), 6);
    EXPECT_EQ(model.index(5, SizeModel::RecordedPeak).data(kRawRole).toLongLong(), large.count());
    EXPECT_EQ(model.index(0, SizeModel::ExtraTime).data().toString(), QStringLiteral("+0.00 %"));
}

TEST(SizeStudy, OneSizeIsNotEnough) {
    const SizeStudy study = studySizes(samples({1000, 1000, 1000}), core::Bytes(1));
    EXPECT_TRUE(study.rows.empty());
    EXPECT_TRUE(study.why.contains(QStringLiteral("three")));
}

}  // namespace
}  // namespace hw::viewer
