// SPDX-License-Identifier: GPL-3.0-or-later
// What the inspector says of tensors, ops, layers and stretches of time, checked by hand.
#include <gtest/gtest.h>

#include <QAbstractItemModelTester>
#include <algorithm>

#include "tests/models/small_document.h"
#include "tests/models/strict.h"
#include "viewer/models/inspector_model.h"
#include "viewer/models/selection_model.h"
#include "viewer/models/time_range.h"

namespace hw::viewer {
namespace {

using core::Action;
using core::Bytes;
using core::kNone;
using core::Nanoseconds;
using samples::planOf;
using samples::smallDocument;

const Selection kConvolution{Selection::Kind::Op, 0, kNone, 1};
const Selection kActivation{Selection::Kind::Tensor, 0, 1, 1};
const Selection kWeights{Selection::Kind::Tensor, kNone, 0, kNone};
const Selection kLayer{Selection::Kind::Layer, 0, kNone, 1};

/// Everything that is told of a selection, found by group and name.
class Inspected {
public:
    Inspected(const Document& document, const Selection& selection, const InspectedPlan& plan = {},
              const std::optional<TimeRange>& range = std::nullopt)
        : groups_(inspect(document, selection, plan, range)) {}

    Fact operator()(const char* group, const char* name) const {
        for (const FactGroup& each : groups_)
            if (each.title.startsWith(QLatin1String(group)))
                for (const Fact& fact : each.facts)
                    if (fact.name == QLatin1String(name)) return fact;
        return {};
    }
    std::string text(const char* group, const char* name) const {
        return (*this)(group, name).value.toStdString();
    }

private:
    std::vector<FactGroup> groups_;
};

TEST(Inspection, TellsATensorsLifeAndWhoNeedsIt) {
    const auto document = smallDocument();
    const Inspected told(*document, kActivation);
    EXPECT_EQ(told.text("tensor", "name"), "convolution");
    EXPECT_EQ(told.text("tensor", "size"), "40 bytes");
    EXPECT_EQ(told.text("tensor", "category"), "activation");
    EXPECT_EQ(told.text("tensor", "because"), "made in forward, read in forward and backward");
    EXPECT_EQ(told("tensor", "layer").target, (Target{Selection::Kind::Layer, 1}));
    EXPECT_EQ(told("tensor", "made by").target, (Target{Selection::Kind::Op, 0}));
    EXPECT_EQ(told("saved for backward because of", "backward").target,
              (Target{Selection::Kind::Op, 2}));
    EXPECT_EQ(told("read by", "forward").target, (Target{Selection::Kind::Op, 1}));
    EXPECT_EQ(told("life", "needed last by").value, QStringLiteral("#2 convolution_backward"));
    EXPECT_EQ(told.text("life", "at the peak"), "held, 17.8 % of the peak") << "40 of 225";
}

TEST(Inspection, AConstantWasThereBeforeAndNoPlanComputesIt) {
    const auto document = smallDocument();
    const PlanPointer plan =
        planOf(*document, {Action::compute(0), Action::compute(1), Action::compute(2),
                           Action::free(1), Action::free(2)});
    const Inspected told(*document, kWeights, {.plan = plan});
    EXPECT_EQ(told.text("tensor", "because"),
              "there before the step, read in forward, held when the step ends");
    EXPECT_EQ(told.text("life", "from"), "before the step");
    EXPECT_EQ(told.text("life", "until"), "the end of the step");
    EXPECT_TRUE(told.text("plan: by hand", "what it does").starts_with("nothing"));
}

TEST(Inspection, SaysWhatThePlanDoesToATensorAndToItsOp) {
    const auto document = smallDocument();
    const PlanPointer plan =
        planOf(*document,
               {Action::compute(0), Action::compute(1), Action::free(1), Action::recompute(0, {0}),
                Action::compute(2), Action::free(1), Action::free(2)});
    const InspectedPlan inspected{plan, planChanges(*document, *plan)};
    const Inspected tensor(*document, kActivation, inspected);
    EXPECT_EQ(tensor("plan", "recomputed by").target, (Target{Selection::Kind::Op, 0}));
    EXPECT_EQ(tensor.text("plan", "recomputed"), "once");
    EXPECT_EQ(tensor.text("plan", "why"),
              "convolution of conv is not kept from op 1 to its use at op 2 "
              "(convolution_backward · conv): 40 B less meanwhile");
    const Inspected op(*document, kConvolution, inspected);
    EXPECT_EQ(op.text("plan", "why"), tensor.text("plan", "why"));
    const Inspected layer(*document, kLayer, inspected);
    EXPECT_EQ(layer.text("plan", "recomputations"), "1");
    EXPECT_EQ(layer("plan", "recomputed").target, (Target{Selection::Kind::Op, 0}));
    const Inspected other(*document, {Selection::Kind::Op, 1, kNone, 1}, inspected);
    EXPECT_EQ(other.text("plan", "what it does"), "computes it once, as recorded");
}

TEST(Inspection, TellsAnOpsTensorsAndCosts) {
    const auto document = smallDocument();
    const Inspected told(*document, {Selection::Kind::Op, 1, kNone, 1});
    EXPECT_EQ(told.text("op", "name"), "aten::relu");
    EXPECT_EQ(told.text("op", "number"), "#1 of 3");
    EXPECT_EQ(told.text("op", "phase"), "forward");
    EXPECT_EQ(told.text("op", "workspace"), "25 bytes");
    EXPECT_EQ(told.text("op", "live while it runs"), "225 bytes, 100.0 % of the peak");
    EXPECT_EQ(told("reads", "convolution").target, (Target{Selection::Kind::Tensor, 1}));
    EXPECT_EQ(told("makes", "relu").target, (Target{Selection::Kind::Tensor, 2}));
}

TEST(Inspection, TellsALayerAndWithoutASelectionTheStep) {
    const auto document = smallDocument();
    const Inspected layer(*document, kLayer);
    EXPECT_EQ(layer.text("layer", "type"), "Conv2d");
    EXPECT_EQ(layer("layer", "part of").target, (Target{Selection::Kind::Layer, 0}));
    EXPECT_EQ(layer.text("layer", "at the peak"), "125 bytes, 55.6 % of the peak");
    EXPECT_EQ(layer("largest", "relu").target, (Target{Selection::Kind::Tensor, 2}));
    const Inspected step(*document, {});
    EXPECT_EQ(step.text("step", "peak"), "225 bytes");
    EXPECT_EQ(step("step", "peak at").target, (Target{Selection::Kind::Op, 1}));
    EXPECT_EQ(step("largest", "parameter").target, (Target{Selection::Kind::Tensor, 0}));
}

TEST(TimeRange, MeasuresWhatComesAndGoesInIt) {
    const auto document = smallDocument();  // ops of 3, 5 and 2 ns
    const auto figures = [&](int begin, int end) {
        return measure(*document, document->curve, {Nanoseconds(begin), Nanoseconds(end)});
    };
    const RangeFigures whole = figures(0, 10);
    EXPECT_EQ(whole.time, Nanoseconds(10));
    EXPECT_EQ(whole.allocated, Bytes(110)) << "not the weights: they were there";
    EXPECT_EQ(whole.highest, Bytes(225));
    EXPECT_EQ(whole.op, 1);
    EXPECT_EQ(figures(1, 5).allocated, Bytes(60)) << "the first op began before it";
    EXPECT_EQ(figures(0, 2).allocated, Bytes(40));
    EXPECT_EQ(figures(0, 2).highest, Bytes(140));
    EXPECT_EQ(figures(0, 2).freed, Bytes(0));
    const Inspected told(*document, {}, {}, TimeRange{Nanoseconds(0), Nanoseconds(10)});
    EXPECT_EQ(told.text("selected time", "allocated"), "110 bytes");
    EXPECT_EQ(told("selected time", "highest at").target, (Target{Selection::Kind::Op, 1}));
}

TEST(TimeRange, OfASelectionIsWhereItRunsOrLives) {
    const auto document = smallDocument();
    const auto at = [&](const Selection& selection) { return *extentOf(*document, selection); };
    EXPECT_EQ(at({Selection::Kind::Op, 1, kNone, 1}), (TimeRange{Nanoseconds(3), Nanoseconds(8)}));
    EXPECT_EQ(at(kActivation), (TimeRange{Nanoseconds(0), Nanoseconds(10)}));
    EXPECT_EQ(at(kLayer), (TimeRange{Nanoseconds(0), Nanoseconds(10)}));
    EXPECT_FALSE(extentOf(*document, {}));
}

// Whatever can be selected in a recorded session, and wherever its links lead.
TEST(InspectorModel, IsASoundModelOfEverythingInASession) {
    const DocumentPointer document = *loadDocument(SAMPLE_SESSION);
    SelectionModel selection;
    selection.setDocument(document);
    PlanPointer drawn;
    for (const PlanPointer& plan : document->plans)
        if (isPlanned(plan) && plan->recomputedOps > 0) drawn = plan;
    ASSERT_TRUE(drawn);
    const InspectedPlan plan{drawn, planChanges(*document, *drawn)};
    InspectorModel model;
    QAbstractItemModelTester tester(&model, kStrict);
    const auto check = [&] {
        model.setGroups(inspect(*document, selection.current(), plan, selection.range()));
        ASSERT_GE(model.rowCount(), 2);
        for (int group = 0; group < model.rowCount(); ++group) {
            const QModelIndex parent = model.index(group, 0);
            ASSERT_GT(model.rowCount(parent), 0);
            EXPECT_FALSE(model.target(parent));
            for (int row = 0; row < model.rowCount(parent); ++row) {
                const QModelIndex value = model.index(row, InspectorModel::Value, parent);
                EXPECT_FALSE(value.data().toString().isEmpty());
                if (!value.data(InspectorModel::kLinkRole).toBool()) continue;
                SelectionModel other;  // it leads to something that exists
                other.setDocument(document);
                other.select(model.target(value));
                EXPECT_EQ(other.current().kind, model.target(value).kind);
            }
        }
    };
    check();
    for (core::LayerIndex l = 0; l < static_cast<int>(document->graph.layers.size()); l += 5)
        selection.selectLayer(l), check();
    for (core::OpIndex op = 0; op < static_cast<int>(document->graph.ops.size()); op += 97)
        selection.selectOp(op), check();
    for (core::StorageIndex s = 0; s < static_cast<int>(document->graph.storages.size()); s += 89)
        selection.selectStorage(s), check();
    model.setGroups({});
    EXPECT_EQ(model.rowCount(), 0);
}

}  // namespace
}  // namespace hw::viewer
