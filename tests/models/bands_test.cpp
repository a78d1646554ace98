// SPDX-License-Identifier: GPL-3.0-or-later
// Bytes without categories: split, coloured and named by the line that asked for them.
#include <gtest/gtest.h>

#include <QAbstractItemModelTester>
#include <QTemporaryDir>
#include <numeric>

#include "core/import/import.h"
#include "core/session/origins.h"
#include "tests/models/small_trace.h"
#include "tests/models/strict.h"
#include "tests/models/test_graphs.h"
#include "viewer/models/address_map.h"
#include "viewer/models/inspection.h"
#include "viewer/models/live_tensor_model.h"
#include "viewer/models/recorded_curve.h"

namespace hw::viewer {
namespace {

using core::Bytes;

Bytes sum(const BandBytes& bytes) {
    return std::accumulate(bytes.begin(), bytes.end(), Bytes(0));
}

class SmallTrace : public ::testing::Test {
protected:
    void SetUp() override {
        ASSERT_TRUE(samples::writeSmallTrace(path_));
        const auto loaded = loadDocument(path_);
        ASSERT_TRUE(loaded) << loaded.error().what;
        document_ = *loaded;
    }
    std::map<QString, std::int64_t> bytesAt(std::size_t moment) const {
        std::map<QString, std::int64_t> bytes;
        const BandBytes& split = document_->curve.moments[moment].byBand;
        for (Band band = 0; band < kBandCount; ++band)
            if (split[band] > Bytes(0)) bytes[document_->bands.name(band)] = split[band].count();
        return bytes;
    }
    QTemporaryDir folder_;
    std::string path_ = folder_.filePath(QStringLiteral("small.hws")).toStdString();
    DocumentPointer document_;
};

TEST_F(SmallTrace, IsSplitByLineAtEveryMoment) {
    ASSERT_TRUE(document_->bands.byLine());
    const QString before = QStringLiteral("(before the history)");
    EXPECT_EQ(document_->bands.name(0), before) << "it lasts";
    EXPECT_EQ(document_->bands.name(1), QStringLiteral("train.py:3"));
    EXPECT_EQ(document_->bands.name(2), QStringLiteral("model.py:8"));
    using Split = std::map<QString, std::int64_t>;
    EXPECT_EQ(bytesAt(0), (Split{{before, 30}}));
    EXPECT_EQ(bytesAt(3), (Split{{before, 30}, {"model.py:8", 170}, {"train.py:3", 50}}));
    EXPECT_EQ(bytesAt(6), (Split{{before, 30}, {"train.py:3", 50}, {"data.py:5", 60}}));
    for (const Moment& moment : document_->curve.moments)
        EXPECT_EQ(sum(moment.byBand), moment.total);
}

TEST_F(SmallTrace, TheTableNamesLines) {
    const LiveSet set = liveAt(*document_, document_->curve, document_->curve.peakMoment);
    LiveTensorModel model;
    QAbstractItemModelTester tester(&model, kStrict);
    model.setSets(document_, set, nullptr);
    ASSERT_EQ(model.rowCount(), 4);
    EXPECT_EQ(itemName(*document_, model.item(0)), QStringLiteral("model.py:8 forward"));
    EXPECT_EQ(itemName(*document_, model.item(3)), QStringLiteral("(before the history)"));
    const QModelIndex place = model.index(0, LiveTensorModel::Place);
    EXPECT_EQ(place.data().toString(), QStringLiteral("model.py:8 forward"));
    EXPECT_EQ(place.data(LiveTensorModel::kBandRole).toInt(), 2);
    EXPECT_EQ(model.headerData(LiveTensorModel::Place, Qt::Horizontal, Qt::DisplayRole).toString(),
              QStringLiteral("allocated by"));
    EXPECT_FALSE(model.knowsMakers()) << "no stack goes on into torch";
}

TEST_F(SmallTrace, BlocksAreTheStoragesAtTheirAddresses) {
    const AddressMap map = recordedMap(*document_);
    ASSERT_EQ(map.blocks.size(), 5U);
    EXPECT_EQ(map.livePeak, document_->peak()) << "what was there before has an address, too";
    for (const MapBlock& block : map.blocks) {
        ASSERT_NE(block.storage, core::kNone);
        EXPECT_EQ(block.bytes, document_->graph.storages[block.storage].bytes.count());
        EXPECT_EQ(block.band, document_->bandOf(block.storage));
    }
    const auto at = [&](std::int32_t moment) {
        return std::find_if(map.blocks.begin(), map.blocks.end(), [&](const MapBlock& block) {
            return block.address == 0x2000 && block.first == moment;
        });
    };
    ASSERT_NE(at(1), map.blocks.end());
    ASSERT_NE(at(5), map.blocks.end());
    EXPECT_EQ(at(1)->end, 4);
    EXPECT_EQ(document_->kindOf(at(5)->storage), QStringLiteral("data.py:5 load"))
        << "the second one at that address";
}

TEST_F(SmallTrace, ABlockThatIsNotLoadedIsToldByItsLine) {
    Selection selection;
    selection.kind = Selection::Kind::Block;
    selection.block =
        BlockFacts{2, 0x2000, Bytes(100), core::Nanoseconds(1000), core::Nanoseconds(4000)};
    const QString told = factsAsText(inspect(*document_, selection, {}, std::nullopt));
    for (const char* fact : {"100 bytes", "0x2000", "model.py:8 forward", "/a/model.py:8"})
        EXPECT_TRUE(told.contains(QLatin1String(fact))) << fact << " in\n" << told.toStdString();
}

TEST(Traces, OfEventsAloneHaveBlocksWithoutNames) {
    QTemporaryDir folder;
    const std::string path = folder.filePath(QStringLiteral("events.hws")).toStdString();
    ASSERT_TRUE(samples::writeSmallTrace(path, false));
    const auto document = loadDocument(path);
    ASSERT_TRUE(document) << document.error().what;
    EXPECT_FALSE((*document)->bands.byLine());
    const AddressMap map = recordedMap(**document);
    ASSERT_EQ(map.blocks.size(), 4U) << "no event tells where the one before lay";
    for (const MapBlock& block : map.blocks) EXPECT_TRUE(block.onlyEvents());
    EXPECT_EQ(map.livePeak, (*document)->peak() - Bytes(30));
}

TEST(Bands, BeyondTheLargestLinesAreTheOthers) {
    QTemporaryDir folder;
    const std::string path = folder.filePath(QStringLiteral("many.hws")).toStdString();
    samples::TraceMaker trace(path);
    for (int i = 0; i < 12; ++i)
        trace.alloc(0x1000 * (i + 1), 1000 - i, trace.line("/a/model.py", "forward", i + 1));
    trace.alloc(0x100000, 2000, trace.line("/b/model.py", "forward", 1));
    trace.alloc(0x200000, 5, std::nullopt);
    ASSERT_TRUE(trace.write());
    const auto loaded = loadDocument(path);
    ASSERT_TRUE(loaded) << loaded.error().what;
    const Document& document = **loaded;
    EXPECT_EQ(document.bands.name(0), QStringLiteral("a/model.py:1 forward"))
        << "two have its name";
    EXPECT_EQ(document.bands.name(1), QStringLiteral("model.py:2"));
    EXPECT_EQ(document.bands.name(7), QStringLiteral("b/model.py:1 forward")) << "it came last";
    const BandBytes& peak = document.curve.moments[document.curve.peakMoment].byBand;
    EXPECT_EQ(peak[kUnknownBand], Bytes(5));
    EXPECT_EQ(peak[kOtherLines], Bytes(1000 * 5 - 7 - 8 - 9 - 10 - 11));
    EXPECT_EQ(document.bands.ofPlace(QStringLiteral("model.py:2 forward")), 1);
    EXPECT_EQ(document.bands.ofPlace(QStringLiteral("model.py:12 forward")), kOtherLines);
    EXPECT_EQ(document.bands.ofPlace(QString()), kUnknownBand);
}

core::RecordedMemory memoryOf(core::Category category) {
    core::RecordedMemory memory;
    memory.graph.ops.resize(1);
    memory.graph.ops[0].name = "aten::mm";
    for (const std::int64_t bytes : {60, 40}) {
        core::Storage& storage = memory.graph.storages.emplace_back();
        storage.bytes = Bytes(bytes), storage.sessionId = bytes;
    }
    memory.graph.storages[0].category = category;
    memory.moments = {{core::Nanoseconds(0), Bytes(100), 0}};
    memory.lifetimes = {{0, 0, 0}, {1, 0, 0}};
    return memory;
}

TEST(Bands, AreCategoriesWhereMostBytesHaveOne) {
    const core::RecordedMemory memory = memoryOf(core::Category::Gradient);
    const Bands bands = Bands::of(memory, core::CallStacks());
    EXPECT_FALSE(bands.byLine());
    const BandBytes split = recordedCurve(memory, bands).moments[0].byBand;
    EXPECT_EQ(split[bandOf(core::Category::Gradient)], Bytes(60));
    EXPECT_EQ(bands.of(split, core::Category::Gradient), Bytes(60));
    EXPECT_EQ(bands.name(kUnknownBand), categoryText(core::Category::Unknown));
}

TEST(Bands, AreOpsWhereNoLineIsKnown) {
    const core::RecordedMemory memory = memoryOf(core::Category::Unknown);
    const Bands bands = Bands::of(memory, core::CallStacks());
    ASSERT_TRUE(bands.byLine());
    EXPECT_EQ(bands.name(0), QStringLiteral("mm"));
    const BandBytes split = recordedCurve(memory, bands).moments[0].byBand;
    EXPECT_EQ(split[0], Bytes(100));
    EXPECT_EQ(bands.of(split, core::Category::Parameter), Bytes(0)) << "band 0 is a line here";
}

class LinesOfSnapshots : public samples::OnLogs {};
HW_WITH_DATA(LinesOfSnapshots, "torch-snapshot", "simrd");

// What `info --by line` says of the peak is what the colours show.
TEST_P(LinesOfSnapshots, HoldWhatTheListOfLinesSays) {
    for (const char* name : {"before-history", "no-free-requested", "empty-cache", "expandable"}) {
        const std::string path = GetParam() + "/torch-snapshot/" + name + ".pickle.gz";
        const auto loaded = loadDocument(path);
        ASSERT_TRUE(loaded) << loaded.error().what;
        const Document& document = **loaded;
        const auto session = core::openAny(path);
        ASSERT_TRUE(session) << session.error().what;
        const auto recorded = core::loadRecordedMemory(*session);
        const auto stacks = core::CallStacks::load(*session);
        ASSERT_TRUE(recorded && stacks);
        std::map<std::string, Bytes> listed, tabled;
        for (const core::OriginGroup& group :
             core::originsBy(core::OriginKey::Line, recorded->graph, *stacks,
                             core::originsAtPeak(*recorded, *stacks), {}))
            listed[group.name] += group.peak;
        const StepCurve& curve = document.curve;
        BandBytes banded{};
        for (const LiveItem& item : liveAt(document, curve, curve.peakMoment).items) {
            tabled[document.kindOf(item.storage).toStdString()] += item.bytes;
            banded[item.band] += item.bytes;
        }
        EXPECT_TRUE(document.bands.byLine()) << name;
        EXPECT_EQ(tabled, listed) << name;
        EXPECT_EQ(banded, curve.moments[curve.peakMoment].byBand) << name;
        const AddressMap map = recordedMap(document);
        if (!map.blocks.empty()) {
            EXPECT_EQ(map.livePeak, document.peak()) << name;
        }
    }
}

}  // namespace
}  // namespace hw::viewer
