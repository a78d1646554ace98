// SPDX-License-Identifier: GPL-3.0-or-later
// What is live at a moment, as a tree, a treemap and a table; why a plan recomputes; where blocks
// lie; tables as text.
#include <gtest/gtest.h>

#include <QAbstractItemModelTester>
#include <QFile>
#include <QTemporaryDir>
#include <algorithm>
#include <cmath>

#include "core/import/import.h"
#include "core/session/access.h"
#include "core/session/annotations.h"
#include "core/session/origins.h"
#include "core/session/recorded_memory.h"
#include "core/session/session_writer.h"
#include "core/session/shortages.h"
#include "tests/models/small_document.h"
#include "tests/models/strict.h"
#include "viewer/models/address_map.h"
#include "viewer/models/layer_model.h"
#include "viewer/models/live_tensor_model.h"
#include "viewer/models/plan_model.h"
#include "viewer/models/table_text.h"
#include "viewer/models/treemap.h"

namespace hw::viewer {
namespace {

using core::Bytes;
using samples::planOf;
using samples::smallDocument;

Bytes sum(const std::vector<LiveItem>& items) {
    Bytes total;
    for (const LiveItem& item : items) total += item.bytes;
    return total;
}

class LiveSetOnLogs : public samples::OnLogs {};
HW_WITH_LOGS(LiveSetOnLogs);

TEST_P(LiveSetOnLogs, ItemsSumToTheJudgesBytesAtEveryMoment) {
    const DocumentPointer document = *loadDocument(logPath("unet"));
    const PlanPointer plan =
        *computePlan(*document, "dtr:eqclass", Bytes(document->peak().count() / 10 * 7), 2);
    ASSERT_TRUE(plan->ok());
    for (const StepCurve* curve : {&document->curve, &plan->curve})
        for (std::size_t i = 0; i < curve->moments.size(); ++i)
            ASSERT_EQ(sum(liveAt(*document, *curve, i).items), curve->moments[i].total) << i;
}

TEST(LiveSet, TheTreeNamesLayersAndKeepsTheBytes) {
    const auto document = smallDocument();
    const LiveSet set = liveAt(*document, document->curve, document->curve.peakMoment);
    EXPECT_EQ(set.total, Bytes(225));
    const LiveNode root = liveTree(*document, set);
    EXPECT_EQ(root.bytes, Bytes(225));
    ASSERT_EQ(root.children.size(), 2U);
    EXPECT_EQ(root.children[0].name, QStringLiteral("conv")) << "(root) has no other part";
    EXPECT_EQ(root.children[0].bytes, Bytes(125));
    EXPECT_EQ(root.children[0].band, bandOf(core::Category::Temporary)) << "60 of its 125 bytes";
    ASSERT_EQ(root.children[0].children.size(), 3U);
    EXPECT_EQ(root.children[0].children[2].name, QStringLiteral("workspace of relu"));
    EXPECT_EQ(layerTail(QStringLiteral("a.layers.0"), QStringLiteral("a.layers")),
              QStringLiteral("layers.0"));
    EXPECT_EQ(layerTail(QStringLiteral("a.b"), QStringLiteral("a")), QStringLiteral("b"));
}

TEST(Treemap, AreasAreInProportionAndFillTheRoom) {
    const std::vector<double> weights{6, 6, 4, 3, 2, 2, 1};  // the paper's example
    const QRectF area(10, 20, 6, 4);
    const std::vector<QRectF> boxes = squarify(weights, area);
    ASSERT_EQ(boxes.size(), weights.size());
    for (std::size_t i = 0; i < boxes.size(); ++i) {
        EXPECT_NEAR(boxes[i].width() * boxes[i].height(), weights[i], 1e-9);
        EXPECT_TRUE(area.adjusted(-1e-9, -1e-9, 1e-9, 1e-9).contains(boxes[i]));
        for (std::size_t j = 0; j < i; ++j) {
            const QRectF shared = boxes[i].intersected(boxes[j]);
            EXPECT_LT(shared.width() * shared.height(), 1e-9);
        }
    }
    EXPECT_NEAR(boxes[0].height(), 2, 1e-9) << "the first two stand on each other";
    EXPECT_NEAR(boxes[0].width(), 3, 1e-9);
}

TEST(Treemap, CellsAreBoundedByTheAreaNotByTheItems) {
    LiveNode root;
    LiveNode group;
    for (int i = 0; i < 100'000; ++i) {
        LiveNode leaf;
        leaf.bytes = Bytes(1);
        leaf.item = i;
        group.children.push_back(leaf);
        group.bytes += leaf.bytes;
    }
    LiveNode large;
    large.bytes = Bytes(100'000'000);
    large.item = 100'000;
    root.bytes = group.bytes + large.bytes;
    root.children = {large, group};
    EXPECT_LT(layOutTreemap(root, {0, 0, 300, 200}, 17).size(), 100U);
}

class LiveTensorModelOnLogs : public samples::OnLogs {};
HW_WITH_LOGS(LiveTensorModelOnLogs);

TEST_P(LiveTensorModelOnLogs, ListsBothPeaksAndIsASoundModel) {
    const DocumentPointer document = *loadDocument(logPath("unet"));
    const PlanPointer plan =
        *computePlan(*document, "dtr:eqclass", Bytes(document->peak().count() / 10 * 7), 2);
    const LiveSet recorded = liveAt(*document, document->curve, document->curve.peakMoment);
    const LiveSet planned = liveAt(*document, plan->curve, plan->curve.peakMoment);
    LiveTensorModel model;
    QAbstractItemModelTester tester(&model, kStrict);
    model.setSets(document, recorded, &planned);
    qlonglong atRecorded = 0, atPlan = 0;
    for (int row = 0; row < model.rowCount(); ++row) {
        const qlonglong bytes = model.index(row, LiveTensorModel::Size).data(kRawRole).toLongLong();
        const QString where = model.index(row, LiveTensorModel::LiveAt).data().toString();
        if (where != QLatin1String("plan")) atRecorded += bytes;
        if (where != QLatin1String("recorded")) atPlan += bytes;
        const core::StorageIndex storage = model.item(row).storage;
        if (storage != core::kNone) {
            EXPECT_EQ(model.rowOf(storage), row);
        }
    }
    EXPECT_EQ(atRecorded, document->peak().count());
    EXPECT_EQ(atPlan, plan->peak.count());
    model.setSets(document, recorded, nullptr);
    EXPECT_EQ(model.rowCount(), static_cast<int>(recorded.items.size()));
}

TEST(LayerModel, IsATreeWhoseRowsHoldTheirParts) {
    const auto document = smallDocument();
    LayerModel model;
    QAbstractItemModelTester tester(&model, kStrict);
    model.setDocument(document);
    ASSERT_EQ(model.rowCount(), 2) << "(root) and what belongs to no layer";
    const QModelIndex root = model.index(0, 0), conv = model.index(0, 0, root);
    EXPECT_EQ(root.data().toString(), QStringLiteral("(root)"));
    EXPECT_EQ(conv.data().toString(), QStringLiteral("conv"));
    EXPECT_EQ(conv.siblingAtColumn(LayerModel::AtPeak).data().toString(), QStringLiteral("125 B"));
    EXPECT_EQ(root.siblingAtColumn(LayerModel::AtPeak).data(kRawRole).toLongLong(), 125);
    EXPECT_EQ(conv.siblingAtColumn(LayerModel::Saved).data(kRawRole).toLongLong(), 100)
        << "both are read by the backward op";
    EXPECT_EQ(conv.siblingAtColumn(LayerModel::Forward).data(kRawRole).toLongLong(), 8);
    EXPECT_EQ(conv.siblingAtColumn(LayerModel::Backward).data(kRawRole).toLongLong(), 2);
    EXPECT_EQ(model.indexOf(1), conv);
    EXPECT_EQ(model.firstOp(conv), 0);
    EXPECT_EQ(model.index(1, LayerModel::AtPeak).data(kRawRole).toLongLong(), 100);
    const QString csv = tableAsCsv(model);
    EXPECT_TRUE(csv.startsWith(QStringLiteral("layer,type,at the peak (bytes),")));
    EXPECT_TRUE(csv.contains(QStringLiteral("\r\nconv,Conv2d,125,0.5555")));
    model.setDocument(nullptr);
    EXPECT_EQ(model.rowCount(), 0);
}

TEST(LayerModel, HasTheOtherSessionsLayersOfTheSamePathBesideIts) {
    const auto document = smallDocument();
    core::TrainingGraph larger = samples::smallGraph();
    larger.storages[1].bytes = Bytes(90);  // was 40
    larger.layers.push_back({"head", "Linear", 0});
    const DocumentPointer other = *documentOf(std::move(larger), QStringLiteral("larger"));
    LayerModel model;
    QAbstractItemModelTester tester(&model, kStrict);
    model.setDocument(document, other);
    ASSERT_EQ(model.columnCount(), LayerModel::ColumnCount);
    const QModelIndex conv = model.indexOf(1);
    EXPECT_EQ(conv.siblingAtColumn(LayerModel::Other).data(kRawRole).toLongLong(), 175);
    EXPECT_EQ(conv.siblingAtColumn(LayerModel::Difference).data().toString(),
              QStringLiteral("+50 B"));
    model.setDocument(other, document);
    EXPECT_EQ(model.indexOf(1, LayerModel::Difference).data(kRawRole).toLongLong(), -50);
    model.setDocument(document);
    EXPECT_EQ(model.columnCount(), LayerModel::Other) << "none without another session";
}

TEST(LayerModel, AddsTheLayersThatOnlyTheOtherSessionHas) {
    const auto document = smallDocument();
    core::TrainingGraph grown = samples::smallGraph();
    grown.layers.push_back({"conv.extra", "Linear", 1});
    grown.layers.push_back({"conv.extra.deep", "ReLU", 2});
    grown.storages[2].layer = grown.ops[1].layer = 3;
    const DocumentPointer other = *documentOf(std::move(grown), QStringLiteral("grown"));
    LayerModel model;
    QAbstractItemModelTester tester(&model, kStrict);
    model.setDocument(document, other);
    const QModelIndex conv = model.indexOf(1);
    ASSERT_EQ(model.rowCount(conv), 1);
    const QModelIndex extra = model.index(0, 0, conv), deep = model.index(0, 0, extra);
    EXPECT_EQ(extra.data().toString(), QStringLiteral("extra"));
    EXPECT_EQ(deep.siblingAtColumn(LayerModel::Type).data().toString(), QStringLiteral("ReLU"));
    EXPECT_EQ(deep.siblingAtColumn(LayerModel::AtPeak).data(kRawRole).toLongLong(), 0);
    EXPECT_EQ(deep.siblingAtColumn(LayerModel::Other).data(kRawRole).toLongLong(), 85);
    EXPECT_EQ(extra.siblingAtColumn(LayerModel::Difference).data(kRawRole).toLongLong(), 85);
    EXPECT_TRUE(deep.data(Qt::ToolTipRole).toString().contains(QStringLiteral("only in grown")));
    EXPECT_EQ(model.layer(deep), core::kNone) << "nothing here to select";
    EXPECT_EQ(model.firstOp(deep), core::kNone);
    model.setDocument(other, document);
    EXPECT_EQ(model.rowCount(model.indexOf(1)), 1) << "of its own";
    const QModelIndex own = model.index(0, 0, model.indexOf(1));
    EXPECT_FALSE(own.siblingAtColumn(LayerModel::Other).data(kRawRole).isValid());
    EXPECT_EQ(own.siblingAtColumn(LayerModel::Difference).data(kRawRole).toLongLong(), -85);
}

TEST(PlanModel, SaysWhyAnOpIsRecomputed) {
    const auto document = smallDocument();
    using core::Action;
    const PlanPointer plan =
        planOf(*document,
               {Action::compute(0), Action::compute(1), Action::free(1), Action::recompute(0, {0}),
                Action::compute(2), Action::free(1), Action::free(2)});
    ASSERT_TRUE(core::evaluate(document->graph, plan->schedule).valid);
    const std::vector<PlanChange> changes = *planChanges(*document, *plan);
    ASSERT_EQ(changes.size(), 1U);
    ASSERT_EQ(changes[0].evictions.size(), 1U);
    const Eviction& eviction = changes[0].evictions[0];
    EXPECT_EQ(eviction.after, 1);
    EXPECT_EQ(eviction.until, 2);
    EXPECT_EQ(eviction.saved, Bytes(40));
    EXPECT_FALSE(eviction.overPeak) << "the op of the peak reads it";
    EXPECT_EQ(reasonText(*document, *plan, changes[0]),
              QStringLiteral("convolution of conv is not kept from op 1 to its use at op 2 "
                             "(convolution_backward · conv): 40 B less meanwhile"));
    PlanModel model;
    QAbstractItemModelTester tester(&model, kStrict);
    model.setPlan(document, {plan, planChanges(*document, *plan)});
    ASSERT_EQ(model.rowCount(), 1);
    EXPECT_EQ(model.index(0, 0).data().toString(), QStringLiteral("conv"));
    EXPECT_EQ(model.indexOf(0), model.index(0, 0, model.index(0, 0)));
    EXPECT_FALSE(model.indexOf(1).isValid());
    model.setPlan(document, {});
    EXPECT_EQ(model.rowCount(), 0);
}

// The gradient op reads a mask of 5 bytes, which no storage of the recorded step is.
TEST(PlanModel, NamesTheImplementationThatAnOpRunsAs) {
    const auto document = smallDocument();
    core::Implementation mask;
    mask.op = 1;
    mask.name = "mask";
    mask.kind = core::ImplementationKind::IntermediateActivated;
    mask.backward = 2;
    mask.insteadOf = 1;
    mask.bytes = Bytes(5);
    document->menu.implementations = {mask};
    using core::Action;
    PlanEntry entry;
    entry.planner = QStringLiteral("monet");
    entry.schedule = {Action::compute(0), Action::compute(1), Action::free(1),
                      Action::compute(2), Action::free(2),    Action::free(4)};
    entry.header.implementations = {{1, "other"}};
    EXPECT_FALSE(drawPlan(*document, entry)) << "nothing is known of it";
    entry.header.implementations = {{1, "mask"}};
    ASSERT_TRUE(drawPlan(*document, entry));
    ASSERT_TRUE(core::evaluate(document->graphOf(entry), entry.schedule).valid);
    ASSERT_EQ(entry.curve.moments.size(), 3U);
    EXPECT_EQ(entry.curve.peak, Bytes(100 + 40 + 60 + 25 + 5));
    for (std::size_t i = 0; i < 3; ++i)
        EXPECT_EQ(sum(liveAt(*document, entry.curve, i).items), entry.curve.moments[i].total);

    entry.measuredOps[1] = {core::Nanoseconds(7), core::Nanoseconds(0)};
    const auto plan = std::make_shared<const PlanEntry>(std::move(entry));
    PlanModel model;
    QAbstractItemModelTester tester(&model, kStrict);
    model.setPlan(document, {plan, planChanges(*document, *plan)});
    EXPECT_TRUE(model.measured());
    const QModelIndex row = model.indexOf(1);
    const auto cell = [&](PlanModel::Column column) { return row.siblingAtColumn(column); };
    EXPECT_EQ(row.data().toString(), QStringLiteral("#1 relu, mask"));
    EXPECT_EQ(cell(PlanModel::Cost).data(kRawRole).toLongLong(), 0) << "as captured";
    EXPECT_EQ(cell(PlanModel::Measured).data(kRawRole).toLongLong(), 7 - 5);
    EXPECT_EQ(cell(PlanModel::Why).data().toString(),
              QStringLiteral("runs as mask: op 2 (convolution_backward · conv) reads 5 B instead "
                             "of convolution of conv (40 B)"));
}

class PlanModelOnLogs : public samples::OnLogs {};
HW_WITH_LOGS(PlanModelOnLogs);

TEST_P(PlanModelOnLogs, AddsUpToWhatTheJudgeSaysOfThePlan) {
    const DocumentPointer document = *loadDocument(logPath("unet"));
    const PlanPointer plan =
        *computePlan(*document, "dtr:eqclass", Bytes(document->peak().count() / 10 * 7), 2);
    PlanModel model;
    QAbstractItemModelTester tester(&model, kStrict);
    model.setPlan(document, {plan, planChanges(*document, *plan)});
    qlonglong times = 0, cost = 0;
    for (int row = 0; row < model.rowCount(); ++row) {
        times += model.index(row, PlanModel::Times).data(kRawRole).toLongLong();
        cost += model.index(row, PlanModel::Cost).data(kRawRole).toLongLong();
    }
    EXPECT_EQ(times, plan->recomputedOps);
    EXPECT_EQ(cost, (plan->time - document->judged.time).count());
}

class AddressMapOnLogs : public samples::OnLogs {};
HW_WITH_LOGS(AddressMapOnLogs);

TEST_P(AddressMapOnLogs, PackedBlocksNeverShareAnAddressAtOneMoment) {
    const DocumentPointer document = *loadDocument(logPath("unet"));
    const AddressMap map = packedMap(document->graph, document->baseline, {});
    EXPECT_EQ(map.livePeak, document->peak());
    EXPECT_GE(map.span, map.livePeak);
    EXPECT_GE(map.span, map.lowerBound);
    EXPECT_TRUE(std::is_sorted(map.blocks.begin(), map.blocks.end(),
                               [](const auto& a, const auto& b) { return a.first < b.first; }));
    std::size_t collisions = 0;
    for (const MapBlock& a : map.blocks) {
        EXPECT_LE(a.offset + a.bytes, map.span.count());
        for (const MapBlock& b : map.blocks)
            collisions += &a < &b && a.first < b.end && b.first < a.end &&
                          a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
    }
    EXPECT_EQ(collisions, 0U);
}

class AddressMapOfSnapshots : public samples::OnLogs {};
HW_WITH_DATA(AddressMapOfSnapshots, "torch-snapshot", "simrd");

TEST_P(AddressMapOfSnapshots, RecordedEventsBecomeBlocksWithoutTheUnusedAddresses) {
    const auto document = loadDocument(GetParam() + "/torch-snapshot/expandable.pickle.gz");
    ASSERT_TRUE(document) << document.error().what;
    const StepCurve& curve = (*document)->curve;
    EXPECT_EQ(sum(liveAt(**document, curve, curve.peakMoment).items), curve.peak);
    const AddressMap map = recordedMap(**document);
    ASSERT_GT(map.blocks.size(), 1000U);
    EXPECT_TRUE(map.recorded);
    EXPECT_LE(map.livePeak, (*document)->peak());
    EXPECT_GE(map.span, map.livePeak);
    EXPECT_LT(map.span.count(), 2 * map.livePeak.count()) << "addresses lie terabytes apart";
    std::int64_t lowest = map.span.count();
    for (const MapBlock& block : map.blocks) {
        EXPECT_LT(block.first, block.end);
        EXPECT_LE(block.offset + block.bytes, map.span.count());
        lowest = std::min(lowest, block.offset);
    }
    EXPECT_EQ(lowest, 0);
    const AddressMap none = recordedMap(**loadDocument(logPath("unet")));
    EXPECT_TRUE(none.blocks.empty());
    EXPECT_FALSE(none.why.isEmpty());
}

// What `info --by` adds up is what the Peak view and the flame graph show.
TEST_P(AddressMapOfSnapshots, EveryByteOfThePeakIsNamed) {
    for (const char* name : {"before-history", "no-free-requested", "empty-cache", "expandable"}) {
        const std::string path = GetParam() + "/torch-snapshot/" + name + ".pickle.gz";
        const auto loaded = loadDocument(path);
        ASSERT_TRUE(loaded) << loaded.error().what;
        const Document& document = **loaded;
        const auto session = core::openAny(path);
        ASSERT_TRUE(session) << session.error().what;
        const auto devices = core::recordedDevices(*session);
        ASSERT_TRUE(devices);
        ASSERT_EQ(devices->size(), 1U);
        EXPECT_EQ(document.peak(), devices->front().peak) << name;
        const LiveSet set = liveAt(document, document.curve, document.curve.peakMoment);
        EXPECT_EQ(set.total, document.peak()) << name;
        EXPECT_EQ(sum(set.items), document.peak()) << name;
        EXPECT_EQ(liveTree(document, set).bytes, document.peak()) << name;
        for (const LiveItem& item : set.items) EXPECT_NE(item.storage, core::kNone) << name;
        std::vector<core::Origin> origins;
        for (const LiveItem& item : set.items)
            origins.push_back(
                {item.bytes, item.storage, item.op, item.layer, document.stackOf(item.storage)});
        for (const auto tree : {core::OriginTree::Program, core::OriginTree::Layer})
            EXPECT_EQ(core::originTree(tree, document.graph, document.stacks, origins).bytes,
                      document.peak())
                << name;
    }
}

TEST(RecordedDevices, AreShownOneAtATime) {
    QTemporaryDir folder;
    const std::string path = folder.filePath(QStringLiteral("two.hws")).toStdString();
    {
        auto session = core::SessionWriter::create(path);
        ASSERT_TRUE(session) << session.error().what;
        std::int64_t seq = 0;
        for (const std::int64_t device : {0, 1}) {
            ASSERT_TRUE(session->device("cuda", device));
            core::StorageRow storage;
            storage.id = device, storage.bytes = Bytes(100 + device);
            storage.device = "cuda:" + std::to_string(device), storage.allocSeq = seq;
            ASSERT_TRUE(session->insert(storage));
            for (const std::int64_t level : {100 + device, std::int64_t{0}}) {
                core::MemoryEventRow row;
                row.seq = seq++, row.timeNs = 1000 * seq, row.device = device;
                row.kind = level > 0 ? "alloc" : "free", row.allocated = level;
                ASSERT_TRUE(session->insert(row));
            }
        }
        core::Shortage shortage;
        shortage.ordinal = 0, shortage.seq = 1, shortage.timeNs = 2000;
        shortage.asked = Bytes(5000), shortage.free = Bytes(7);
        ASSERT_TRUE(session->setMeta(core::kShortagesKey, core::shortagesText({shortage})));
        for (const auto& [begin, end] : {std::pair(1000, 2000), std::pair(1500, 1800)})
            ASSERT_TRUE(
                session->insert(core::RangeRow{core::kAnnotationKind, "a stretch", 0, begin, end}));
    }
    const auto highest = loadDocument(path);
    ASSERT_TRUE(highest) << highest.error().what;
    EXPECT_EQ((*highest)->device, QStringLiteral("cuda:1"));
    EXPECT_EQ((*highest)->devices.size(), 2U);
    EXPECT_EQ((*highest)->peak(), Bytes(101));
    EXPECT_TRUE((*highest)->marks.empty()) << "they are of the other one";
    EXPECT_TRUE((*highest)->lanes.annotations.spans.empty());
    const auto other = loadDocument(path, std::nullopt, "cuda:0");
    ASSERT_TRUE(other) << other.error().what;
    EXPECT_EQ((*other)->peak(), Bytes(100));
    ASSERT_EQ((*other)->marks.size(), 1U);
    EXPECT_EQ((*other)->marks[0].at, core::Nanoseconds(1000));
    EXPECT_TRUE((*other)->marks[0].text.contains(QStringLiteral("5.00 kB")))
        << (*other)->marks[0].text.toStdString();
    ASSERT_EQ((*other)->lanes.annotations.spans.size(), 1U) << "the outermost";
    EXPECT_EQ((*other)->lanes.annotations.names[0], "a stretch");
    const auto none = loadDocument(path, std::nullopt, "cuda:2");
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().code, core::ErrorCode::Usage);
}

TEST(RecordedDevices, ATraceWithoutMemorySaysSo) {
    QTemporaryDir folder;
    const std::string path = folder.filePath(QStringLiteral("work.hws")).toStdString();
    {
        auto session = core::SessionWriter::create(path);
        ASSERT_TRUE(session) << session.error().what;
        const auto device = session->device("cuda", 0);
        ASSERT_TRUE(device);
        ASSERT_TRUE(session->describeDevice(*device, "Some GPU", 8'000'000'000));
        core::DeviceWorkRow kernel;
        kernel.device = *device, kernel.stream = 7, kernel.name = "add";
        kernel.beginNs = 500, kernel.endNs = 1500;
        ASSERT_TRUE(session->insertKernel(kernel));
        ASSERT_TRUE(session->insert(core::GapRow{{}, {}, {}, "memory", "it was not asked for"}));
    }
    const auto document = loadDocument(path);
    ASSERT_TRUE(document) << document.error().what;
    EXPECT_FALSE((*document)->hasMemory());
    EXPECT_EQ((*document)->whyNoMemory(),
              QStringLiteral("no memory was recorded: it was not asked for"));
    EXPECT_EQ((*document)->device, QStringLiteral("cuda:0 (Some GPU)"));
    EXPECT_EQ((*document)->curve.time, core::Nanoseconds(1000));
    ASSERT_EQ((*document)->lanes.streams.size(), 1U);
    EXPECT_EQ((*document)->lanes.streams[0].spans.size(), 1U);
}

TEST(Gaps, StandWhereTheStepWasInterrupted) {
    QTemporaryDir folder;
    const QString path = folder.filePath(QStringLiteral("gap.hws"));
    ASSERT_TRUE(QFile::copy(QStringLiteral(SAMPLE_SESSION), path));
    ASSERT_TRUE(QFile::setPermissions(path, QFile::ReadOwner | QFile::WriteOwner));
    const DocumentPointer whole = *loadDocument(path.toStdString());
    EXPECT_TRUE(whole->gapSpans.empty());
    const auto op = static_cast<core::OpIndex>(whole->graph.ops.size() / 2);
    {
        auto session = core::SessionWriter::open(path.toStdString());
        ASSERT_TRUE(session) << session.error().what;
        const auto begins = core::opBegins(*session, whole->graph);
        ASSERT_TRUE(begins);
        core::GapRow gap{whole->step, (*begins)[op], (*begins)[op + 3], "events", "dropped"};
        ASSERT_TRUE(session->insert(gap));
        ASSERT_TRUE(session->insert(core::GapRow{whole->step, {}, {}, "streams", "no time"}));
        core::Statement device(core::databaseOf(*session),
                               "INSERT INTO devices(process, kind, capacity_bytes)"
                               " SELECT min(id), 'cuda', 8000000000 FROM processes");
        device.step();
    }
    const DocumentPointer document = *loadDocument(path.toStdString());
    EXPECT_FALSE(whole->capacity);
    EXPECT_EQ(document->capacity, Bytes(8'000'000'000));
    EXPECT_EQ(document->gapRows.size(), 2U);
    ASSERT_EQ(document->gapSpans.size(), 1U) << "one has no time";
    const auto moment = [&](core::OpIndex wanted) {
        return *std::find_if(document->curve.moments.begin(), document->curve.moments.end(),
                             [&](const Moment& each) { return each.op == wanted; });
    };
    EXPECT_EQ(document->gapSpans[0].begin, moment(op).begin);
    EXPECT_EQ(document->gapSpans[0].end, moment(op + 2).end);
    EXPECT_EQ(document->gapSpans[0].text, QStringLiteral("events: dropped"));
}

TEST(TableText, FieldsAreQuotedAndTabsFlattened) {
    class Odd : public QAbstractTableModel {
    public:
        int rowCount(const QModelIndex& parent) const override { return parent.isValid() ? 0 : 1; }
        int columnCount(const QModelIndex& parent) const override {
            return parent.isValid() ? 0 : 2;
        }
        QVariant data(const QModelIndex& index, int role) const override {
            if (role == kRawRole && index.column() == 1) return 1.0 / 0.0;
            if (role != Qt::DisplayRole) return {};
            return index.column() == 0 ? QStringLiteral("a \"b\",\tc") : QStringLiteral("—");
        }
    };
    const Odd model;
    EXPECT_EQ(rowsAsTsv(model, {model.index(0, 0)}).split(QLatin1Char('\n'))[1],
              QStringLiteral("a \"b\", c\t—"));
    EXPECT_EQ(tableAsCsv(model).split(QStringLiteral("\r\n"))[1],
              QStringLiteral("\"a \"\"b\"\",\tc\","))
        << "what is not known is empty, not infinite";
}

}  // namespace
}  // namespace hw::viewer
