// SPDX-License-Identifier: GPL-3.0-or-later
// A snapshot of so many events that only its curve is read as a whole.
#include <gtest/gtest.h>

#include <QTemporaryDir>

#include "core/session/session_writer.h"
#include "viewer/models/address_map.h"
#include "viewer/models/document.h"
#include "viewer/models/live_set.h"
#include "viewer/models/recorded_series.h"

namespace hw::viewer {
namespace {

constexpr std::int64_t kBlocks = RecordedSeries::kManyEvents / 2 + 2000;
constexpr std::int64_t kHeld = 40, kBytes = 1000;  // blocks that are there at a time, bytes of each
constexpr std::int64_t kEven = 8, kOdd = 9;        // lines that ask for every other block

// Blocks come, each freeing the one that came kHeld before; in the middle lies a large one.
bool writeSnapshot(const std::string& path) {
    auto session = core::SessionWriter::create(path);
    if (!session || !session->begin()) return false;
    bool good = true;
    for (const std::int64_t line : {kEven, kOdd}) {
        good =
            good && session->insert(core::SourceFrameRow{line, "/a/model.py", "step", line, false});
        good = good && session->insert(core::StackRow{line, {}, line});
    }
    std::int64_t seq = 0, held = 0;
    std::vector<core::StorageRow> storages;
    const auto event = [&](const char* kind, std::int64_t block, std::int64_t bytes) {
        core::MemoryEventRow row;
        row.seq = seq, row.timeNs = 1'000'000 + seq * 100, row.kind = kind;
        row.address = (block % (kHeld + 1)) << 20, row.bytes = core::Bytes(bytes);
        row.allocated = held;
        good = good && session->insert(row);
        ++seq;
    };
    for (std::int64_t block = 0; block < kBlocks; ++block) {
        const std::int64_t bytes = block == kBlocks / 2 ? kBytes * 50 : kBytes;
        core::StorageRow storage;
        storage.id = block + 1, storage.bytes = core::Bytes(bytes),
        storage.device = "";  // of the only one
        storage.allocSeq = seq;
        storage.address = (block % (kHeld + 1)) << 20;
        storage.stack = block % 2 == 0 ? kEven : kOdd;
        storages.push_back(storage);
        held += bytes;
        event("alloc", block, bytes);
        if (block < kHeld) continue;
        core::StorageRow& old = storages[static_cast<std::size_t>(block - kHeld)];
        old.freeSeq = seq;
        held -= old.bytes.count();
        event("free_completed", block - kHeld, -old.bytes.count());
    }
    for (const core::StorageRow& storage : storages) good = good && session->insert(storage);
    return good && session->commit();
}

class LargeSnapshot : public ::testing::Test {
protected:
    void SetUp() override {
        const std::string path = folder_.filePath(QStringLiteral("large.hws")).toStdString();
        ASSERT_TRUE(writeSnapshot(path));
        auto loaded = loadDocument(path);
        ASSERT_TRUE(loaded) << loaded.error().what;
        document_ = *loaded;
    }
    QTemporaryDir folder_;
    DocumentPointer document_;
};

TEST_F(LargeSnapshot, KnowsWhatIsLiveAtThePeak) {
    ASSERT_TRUE(document_->knowsPeakOnly());
    EXPECT_EQ(document_->storages, kBlocks);
    const std::int64_t peak = (kHeld + 50) * kBytes;
    EXPECT_EQ(document_->peak(), core::Bytes(peak));
    const LiveSet set = liveAt(*document_, document_->curve, document_->curve.peakMoment);
    ASSERT_EQ(set.items.size(), static_cast<std::size_t>(kHeld + 1));
    EXPECT_EQ(set.items.front().bytes, core::Bytes(kBytes * 50)) << "the largest first";
    core::Bytes sum;
    for (const LiveItem& item : set.items) {
        EXPECT_NE(item.storage, core::kNone) << item.name.toStdString();
        sum += item.bytes;
    }
    EXPECT_EQ(sum, core::Bytes(peak));
}

TEST_F(LargeSnapshot, HasAnAddressMap) {
    const AddressMap map = recordedMap(*document_);
    ASSERT_EQ(map.blocks.size(), static_cast<std::size_t>(kBlocks)) << map.why.toStdString();
    EXPECT_EQ(map.livePeak, document_->peak());
    const auto moments = static_cast<std::int32_t>(document_->curve.moments.size());
    for (const MapBlock& block : map.blocks) {
        ASSERT_GE(block.first, 0);
        ASSERT_LT(block.first, block.end);
        ASSERT_LE(block.first, moments);
    }
    EXPECT_GT(map.blocks.back().first, moments / 2) << "over all of the time";
}

// Each moment's bands are those of an event that has its bytes, however closely one looks.
TEST_F(LargeSnapshot, IsSplitByLineInEveryWindow) {
    ASSERT_TRUE(document_->bands.byLine());
    ASSERT_EQ(kBlocks / 2 % 2, 0) << "the large block is of an even one";
    EXPECT_EQ(document_->bands.name(0), QStringLiteral("model.py:8"));
    EXPECT_EQ(document_->bands.name(1), QStringLiteral("model.py:9"));
    const core::Nanoseconds whole = document_->series->length(), middle(whole.count() / 2 - 3000),
                            end(whole.count() / 2 + 3000);
    for (const StepCurve& curve :
         {document_->curve, document_->series->window(core::Nanoseconds(0), whole, 300),
          document_->series->window(middle, end, 300)}) {
        ASSERT_GT(curve.moments.size(), 10U);
        for (const Moment& moment : curve.moments) {
            const core::Bytes even = moment.byBand[0], odd = moment.byBand[1];
            ASSERT_EQ(even + odd, moment.total);
            const std::int64_t large = moment.total > core::Bytes((kHeld + 1) * kBytes) ? 49 : 0;
            ASSERT_LE(std::abs(even.count() - large * kBytes - odd.count()), kBytes);
        }
        const BandBytes& peak = curve.moments[curve.peakMoment].byBand;
        EXPECT_EQ(peak[0], core::Bytes((kHeld / 2 + 50) * kBytes));
        EXPECT_EQ(peak[1], core::Bytes(kHeld / 2 * kBytes));
    }
}

TEST_F(LargeSnapshot, ItsBlocksHaveTheirLines) {
    const AddressMap map = recordedMap(*document_);
    std::size_t loaded = 0;
    for (const MapBlock& block : map.blocks) {
        ASSERT_EQ(block.band, block.recorded % 2 == 1 ? 0 : 1) << "ids count from 1";
        ASSERT_EQ(document_->bands.placeOf(block.recorded),
                  block.band == 0 ? QStringLiteral("model.py:8 step")
                                  : QStringLiteral("model.py:9 step"));
        loaded += block.storage != core::kNone;
    }
    EXPECT_EQ(loaded, static_cast<std::size_t>(kHeld + 1)) << "those of the peak";
}

}  // namespace
}  // namespace hw::viewer
