// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/models/selection_model.h"

#include <gtest/gtest.h>

#include <QSignalSpy>
#include <algorithm>

#include "tests/models/small_document.h"

namespace hw::viewer {
namespace {

using core::kNone;
using core::Nanoseconds;

TEST(SelectionModel, SelectsNothingWithoutADocument) {
    SelectionModel model;
    QSignalSpy moved(&model, &SelectionModel::selectionChanged);
    QSignalSpy ranged(&model, &SelectionModel::rangeChanged);
    model.selectOp(0);
    model.selectStorage(0);
    model.selectLayer(0);
    model.stepOp(1);
    model.selectRange(TimeRange{Nanoseconds(1), Nanoseconds(2)});
    model.stretchRange(1);
    EXPECT_EQ(model.current(), Selection{});
    EXPECT_FALSE(model.range());
    EXPECT_EQ(moved.count() + ranged.count(), 0);
}

class SelectionModelTest : public testing::Test {
protected:
    SelectionModelTest() { model_.setDocument(samples::smallDocument()); }
    SelectionModel model_;
    QSignalSpy moved_{&model_, &SelectionModel::selectionChanged};
    QSignalSpy ranged_{&model_, &SelectionModel::rangeChanged};
};

TEST_F(SelectionModelTest, WhatIsSelectedBringsWhatBelongsToIt) {
    model_.selectOp(1);
    EXPECT_EQ(model_.current(), (Selection{Selection::Kind::Op, 1, kNone, 1}));
    model_.selectStorage(3);
    EXPECT_EQ(model_.current(), (Selection{Selection::Kind::Tensor, 2, 3, 1}));
    model_.selectLayer(1);
    EXPECT_EQ(model_.current(), (Selection{Selection::Kind::Layer, 0, kNone, 1}));
    EXPECT_EQ(model_.op(), 0) << "its first op";
    EXPECT_EQ(moved_.count(), 3);
    model_.selectLayer(1);
    EXPECT_EQ(moved_.count(), 3) << "nothing changed";
    model_.selectOp(kNone);
    EXPECT_EQ(model_.current(), Selection{});
    EXPECT_EQ(moved_.count(), 4);
}

TEST_F(SelectionModelTest, WhatIsNotInTheDocumentChangesNothing) {
    model_.selectOp(1);
    const Selection before = model_.current();
    model_.selectOp(3);
    model_.selectOp(-2);
    model_.selectStorage(4);
    model_.selectStorage(kNone);
    model_.selectLayer(2);
    model_.selectLayer(kNone);
    model_.select(Target{});
    EXPECT_EQ(model_.current(), before);
    EXPECT_EQ(moved_.count(), 1);
}

TEST_F(SelectionModelTest, ATargetOrAnEarlierSelectionIsSelected) {
    model_.select(Target{Selection::Kind::Tensor, 1});
    const Selection tensor = model_.current();
    EXPECT_EQ(tensor.storage, 1);
    model_.select(Target{Selection::Kind::Layer, 1});
    EXPECT_EQ(model_.current().kind, Selection::Kind::Layer);
    model_.select(Target{Selection::Kind::Op, 2});
    EXPECT_EQ(model_.op(), 2);
    model_.select(tensor);
    EXPECT_EQ(model_.current(), tensor);
    EXPECT_EQ(moved_.count(), 4);
}

TEST_F(SelectionModelTest, ARangeIsStretchedOpByOp) {
    model_.selectOp(0);
    model_.stretchRange(1);
    EXPECT_EQ(*model_.range(), (TimeRange{Nanoseconds(0), Nanoseconds(8)}));
    model_.stretchRange(1);
    EXPECT_EQ(*model_.range(), (TimeRange{Nanoseconds(0), Nanoseconds(10)}));
    model_.stretchRange(-1);
    EXPECT_EQ(*model_.range(), (TimeRange{Nanoseconds(0), Nanoseconds(8)})) << "from its start";
    EXPECT_EQ(ranged_.count(), 3);

    // A range of another origin is begun again, where the selection is.
    model_.selectRange(TimeRange{Nanoseconds(1), Nanoseconds(2)});
    model_.stretchRange(1);
    EXPECT_EQ(*model_.range(), (TimeRange{Nanoseconds(3), Nanoseconds(10)}));
    model_.selectRange(std::nullopt);
    EXPECT_FALSE(model_.range());
    EXPECT_EQ(ranged_.count(), 6);
    model_.selectRange(std::nullopt);
    EXPECT_EQ(ranged_.count(), 6) << "nothing changed";
}

TEST_F(SelectionModelTest, ARangeBeginsAtThePeakWhereNothingIsSelected) {
    model_.stretchRange(-1);
    EXPECT_EQ(*model_.range(), (TimeRange{Nanoseconds(0), Nanoseconds(8)}));
}

TEST_F(SelectionModelTest, NothingIsSelectedOfAnotherDocument) {
    model_.selectStorage(1);
    model_.selectRange(TimeRange{Nanoseconds(1), Nanoseconds(2)});
    moved_.clear();
    ranged_.clear();
    model_.setDocument(samples::smallDocument());
    EXPECT_EQ(model_.current(), Selection{});
    EXPECT_FALSE(model_.range());
    EXPECT_EQ(moved_.count() + ranged_.count(), 0) << "the document's own signal says so";
}

class SelectionOnLogs : public samples::OnLogs {
protected:
    void open(const std::string& log) {
        const auto loaded = loadDocument(logPath(log));
        ASSERT_TRUE(loaded);
        document_ = *loaded;
        model_.setDocument(document_);
    }
    DocumentPointer document_;
    SelectionModel model_;
};
HW_WITH_LOGS(SelectionOnLogs);

TEST_P(SelectionOnLogs, StaysWithinTheStep) {
    model_.stepOp(1);
    EXPECT_EQ(model_.op(), kNone);
    open("resnet32");
    QSignalSpy moved(&model_, &SelectionModel::selectionChanged);
    model_.stepOp(1);
    EXPECT_EQ(model_.op(), document_->curve.moments[document_->curve.peakMoment].op)
        << "the first step lands on the peak";
    model_.selectOp(0);
    model_.stepOp(-1);
    EXPECT_EQ(model_.op(), 0);
    model_.selectOp(static_cast<core::OpIndex>(document_->graph.ops.size()));
    EXPECT_EQ(model_.op(), 0);
    EXPECT_EQ(moved.count(), 2);
}

TEST_P(SelectionOnLogs, ATensorBringsItsLayerAndItsOp) {
    model_.selectStorage(0);
    EXPECT_EQ(model_.current(), Selection{});
    open("unet");
    const core::TrainingGraph& graph = document_->graph;
    const auto made = std::find_if(graph.storages.begin(), graph.storages.end(),
                                   [](const core::Storage& s) { return !s.isConstant(); });
    model_.selectStorage(static_cast<core::StorageIndex>(made - graph.storages.begin()));
    EXPECT_EQ(model_.current().kind, Selection::Kind::Tensor);
    EXPECT_EQ(model_.op(), made->creator);
    model_.selectLayer(0);
    EXPECT_EQ(model_.current().kind, Selection::Kind::Tensor) << "the log has no layers";
    model_.selectOp(kNone);
    EXPECT_EQ(model_.current(), Selection{});
    model_.selectRange(TimeRange{Nanoseconds(1), Nanoseconds(2)});
    EXPECT_TRUE(model_.range());
    open("unet");
    EXPECT_FALSE(model_.range()) << "another document";
}

}  // namespace
}  // namespace hw::viewer
