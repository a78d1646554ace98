// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

#include "core/memory/evaluate.h"
#include "core/session/access.h"
#include "core/session/memory_chunk.h"
#include "core/session/series_reader.h"
#include "core/session/series_writer.h"
#include "core/session/session_writer.h"
#include "tests/unit/step_rows.h"
#include "tests/unit/test_data.h"

namespace hw::core {
namespace {

std::vector<Sample> randomSamples(std::size_t count, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<Sample> samples;
    Sample sample;
    for (std::size_t i = 0; i < count; ++i) {
        sample.x += static_cast<std::int64_t>(random() % 4);  // equal times occur
        sample.value += static_cast<std::int64_t>(random() % 2001) - 1000;
        if (!samples.empty() && samples.back().value == sample.value) ++sample.value;
        samples.push_back(sample);
    }
    return samples;
}

/// What a window of buckets must say, from the samples themselves.
void expectExact(const std::vector<SeriesBucket>& buckets, const std::vector<Sample>& samples,
                 std::int64_t begin, std::int64_t end, std::int64_t width) {
    ASSERT_FALSE(buckets.empty());
    EXPECT_LE(static_cast<std::int64_t>(buckets.size()), 4 * width + 8);
    EXPECT_LE(buckets.front().begin, std::max(begin, samples.front().x));
    std::size_t next = 0;
    while (samples[next].x < buckets.front().begin) ++next;
    // Samples of one time may lie on both sides of a border: every one is in the bucket or beside
    // it.
    std::int64_t highest = std::numeric_limits<std::int64_t>::min(), shownHighest = highest;
    std::int64_t lowest = std::numeric_limits<std::int64_t>::max(), shownLowest = lowest;
    for (const SeriesBucket& bucket : buckets) {
        EXPECT_LE(bucket.begin, bucket.end);
        EXPECT_GE(bucket.argmax, bucket.begin);
        EXPECT_LE(bucket.argmax, bucket.end);
        shownHighest = std::max(shownHighest, bucket.maximum);
        shownLowest = std::min(shownLowest, bucket.minimum);
        EXPECT_TRUE(std::any_of(samples.begin(), samples.end(), [&](const Sample& sample) {
            return sample.x == bucket.argmax && sample.value == bucket.maximum;
        }));
    }
    for (const Sample& sample : samples)
        if (sample.x >= std::max(begin, buckets.front().begin) && sample.x < end)
            highest = std::max(highest, sample.value), lowest = std::min(lowest, sample.value);
    EXPECT_GE(shownHighest, highest) << "a peak is lost";
    EXPECT_LE(shownLowest, lowest);
}

TEST(Series, AWindowHoldsEveryPeak) {
    for (const std::size_t count : {1u, 63u, 64u, 65u, 5000u, 40000u}) {
        SessionWriter session = SessionWriter::inMemory();
        const auto samples = randomSamples(count, 7);
        ASSERT_TRUE(session.insertSamples({"s", "bytes", SeriesAxis::Time, {}, {}}, samples));
        const auto series = session.series();
        ASSERT_TRUE(series);
        ASSERT_EQ(series->size(), 1u);
        const SeriesRow& row = series->front();
        EXPECT_EQ(row.samples, static_cast<std::int64_t>(count));
        EXPECT_EQ(row.end, samples.back().x);
        const auto highest =
            std::max_element(samples.begin(), samples.end(),
                             [](const Sample& a, const Sample& b) { return a.value < b.value; });
        EXPECT_EQ(row.maximum, highest->value);
        EXPECT_EQ(row.argmax, highest->x);
        std::mt19937 random(3);
        for (int trial = 0; trial < 50; ++trial) {
            const auto span = samples.back().x + 1;
            std::int64_t begin = static_cast<std::int64_t>(random()) % span;
            std::int64_t end = static_cast<std::int64_t>(random()) % span;
            if (begin > end) std::swap(begin, end);
            const std::int64_t width = trial % 2 == 0 ? 100 : 7;
            const auto window = session.window(row.id, begin, ++end, width);
            ASSERT_TRUE(window);
            if (end <= samples.front().x) {
                EXPECT_TRUE(window->empty());
            } else {
                expectExact(*window, samples, begin, end, width);
            }
        }
        const auto after = session.window(row.id, row.end + 10, row.end + 20, 5);
        ASSERT_TRUE(after);
        ASSERT_FALSE(after->empty()) << "the last value holds";
        EXPECT_EQ(after->back().end, row.end);
        EXPECT_TRUE(session.window(row.id, -10, 0, 5)->empty() || samples.front().x == 0);
    }
}

TEST(Series, ASmallWindowShowsSingleSamples) {
    SessionWriter session = SessionWriter::inMemory();
    const auto samples = randomSamples(20000, 11);
    ASSERT_TRUE(session.insertSamples({"s", "bytes", SeriesAxis::Seq, {}, {}}, samples));
    const std::int64_t begin = samples[9000].x + 1, end = samples[9050].x;
    const auto window = session.window(1, begin, end, 100);
    ASSERT_TRUE(window);
    std::vector<std::int64_t> values;
    for (const SeriesBucket& bucket : *window) values.push_back(bucket.maximum);
    std::vector<std::int64_t> expected;
    for (const Sample& sample : samples) {
        if (sample.x >= end) break;
        if (sample.x <= begin && !expected.empty()) expected.back() = sample.value;
        if (sample.x <= begin && expected.empty()) expected.push_back(sample.value);
        if (sample.x > begin) expected.push_back(sample.value);
    }
    // At the left edge all samples of the time that holds are shown.
    ASSERT_GE(values.size(), expected.size());
    EXPECT_TRUE(std::equal(expected.rbegin(), expected.rend(), values.rbegin()));
}

TEST(Series, ContinuedPieceByPieceItIsTheSame) {
    const auto samples = randomSamples(30000, 5);
    SessionWriter once = SessionWriter::inMemory(), pieces = SessionWriter::inMemory();
    const SeriesKey key{"s", "bytes", SeriesAxis::Time, {}, {}};
    ASSERT_TRUE(once.insertSamples(key, samples));
    std::mt19937 random(1);
    for (std::size_t i = 0; i < samples.size();) {
        const std::size_t size = std::min<std::size_t>(random() % 900, samples.size() - i);
        ASSERT_TRUE(pieces.insertSamples(key, std::span(samples).subspan(i, size)));
        i += size;
    }
    const auto dump = [](const Session& session) {
        std::vector<std::int64_t> cells;
        Statement from(databaseOf(session), "SELECT * FROM series_buckets ORDER BY 1, 2, 3");
        while (from.step())
            for (int c = 0; c < 9; ++c) cells.push_back(from.integer(c));
        Statement blocks(databaseOf(session), "SELECT block, count, data FROM series_blocks");
        while (blocks.step()) {
            cells.push_back(blocks.integer(1));
            for (const std::byte b : blocks.blob(2)) cells.push_back(static_cast<int>(b));
        }
        return cells;
    };
    EXPECT_EQ(dump(once), dump(pieces));
}

TEST(Series, WhatChangesNothingIsLeftOutAndTimeNeverFalls) {
    SessionWriter session = SessionWriter::inMemory();
    const std::vector<Sample> samples{{5, 1}, {6, 1}, {7, 2}, {3, 4}, {9, 4}};
    ASSERT_TRUE(session.insertSamples({"s", "bytes", SeriesAxis::Time, {}, {}}, samples));
    EXPECT_EQ(session.series()->front().samples, 3);
    EXPECT_EQ(session.window(1, 0, 100, 10)->back().begin, 7);
}

TEST(Series, AStepHasItsCurveOfLiveBytes) {
    SessionWriter session = SessionWriter::inMemory();
    ASSERT_TRUE(test::writeSmallStep(session, 0));
    const auto series = session.series();
    ASSERT_TRUE(series);
    ASSERT_EQ(series->size(), 1u);
    EXPECT_EQ(series->front().key.name, "step 0 live");
    const auto graph = loadGraph(session, 0);
    ASSERT_TRUE(graph) << graph.error().what;
    EXPECT_EQ(Bytes(series->front().maximum), evaluate(*graph, baselineSchedule(*graph)).peak);
    EXPECT_EQ(series->front().argmax, 12);
}

MemoryEventRow randomEvent(std::mt19937& random, std::int64_t at) {
    static const char* const kKinds[] = {"alloc", "free_requested", "free_completed",
                                         "segment_alloc"};
    MemoryEventRow row;
    row.timeNs = at * 10 - static_cast<std::int64_t>(random() % 30);
    row.kind = kKinds[random() % 4];
    row.device = static_cast<std::int64_t>(random() % 3) - 1;
    row.bytes = Bytes(static_cast<std::int64_t>(random() % 100000) - 50000);
    if (random() % 4 != 0) row.address = static_cast<std::int64_t>(random()) << 20;
    if (random() % 3 != 0) row.allocated = static_cast<std::int64_t>(random());
    if (random() % 3 == 0) row.reserved = std::numeric_limits<std::int64_t>::max();
    if (random() % 3 == 0) row.seq = at * 2;
    if (random() % 3 == 0) row.op = static_cast<std::int64_t>(random());
    return row;
}

void expectSame(const MemoryEventRow& a, const MemoryEventRow& b) {
    EXPECT_EQ(a.timeNs, b.timeNs);
    EXPECT_EQ(a.kind, b.kind);
    EXPECT_EQ(a.device, b.device);
    EXPECT_EQ(a.bytes, b.bytes);
    EXPECT_EQ(a.address, b.address);
    EXPECT_EQ(a.allocated, b.allocated);
    EXPECT_EQ(a.reserved, b.reserved);
    EXPECT_EQ(a.seq, b.seq);
    EXPECT_EQ(a.op, b.op);
}

TEST(MemoryEvents, ComeBackAsTheyWere) {
    test::TemporaryFolder folder;
    std::mt19937 random(2);
    std::vector<MemoryEventRow> events;
    for (std::int64_t i = 0; i < 20000; ++i) events.push_back(randomEvent(random, i));
    {
        auto session = SessionWriter::create(folder / "s.hws");
        ASSERT_TRUE(session);
        for (std::size_t i = 0; i < events.size(); ++i) {
            if (i % 3000 == 0) {
                ASSERT_TRUE(session->begin());
            }
            ASSERT_TRUE(session->insert(events[i]));
            if (i % 3000 == 2999) {
                ASSERT_TRUE(session->commit());
            }
        }
        ASSERT_TRUE(session->commit());
    }
    {  // a second writer continues
        auto session = SessionWriter::open(folder / "s.hws");
        ASSERT_TRUE(session);
        for (std::int64_t i = 20000; i < 20010; ++i) {
            events.push_back(randomEvent(random, i));
            ASSERT_TRUE(session->insert(events.back()));
        }
    }
    auto session = Session::open(folder / "s.hws");
    ASSERT_TRUE(session);
    const auto read = session->memoryEvents();
    ASSERT_TRUE(read) << read.error().what;
    ASSERT_EQ(read->size(), events.size());
    for (std::size_t i = 0; i < events.size(); ++i) expectSame((*read)[i], events[i]);
    EXPECT_EQ(session->counts()->events, 20010);
    EXPECT_EQ(session->series()->size(), 6u);

    const auto window = session->memoryEvents(50000, 60000);
    ASSERT_TRUE(window);
    const auto within = std::count_if(events.begin(), events.end(), [](const auto& event) {
        return event.timeNs >= 50000 && event.timeNs < 60000;
    });
    EXPECT_EQ(static_cast<std::ptrdiff_t>(window->size()), within);
}

TEST(MemoryEvents, WithoutTotalsOrTimesTheyAreCounted) {
    SessionWriter session = SessionWriter::inMemory();
    for (const auto& [kind, bytes] : {std::pair{"segment_alloc", 2048},
                                      {"alloc", 512},
                                      {"alloc", 1024},
                                      {"free_requested", 512},
                                      {"free_completed", 512}}) {
        MemoryEventRow row;
        row.kind = kind, row.bytes = Bytes(bytes);
        ASSERT_TRUE(session.insert(row));
    }
    const auto series = session.series();
    ASSERT_TRUE(series);
    EXPECT_EQ(series->front().key.axis, SeriesAxis::Event);
    EXPECT_EQ(series->front().maximum, 1536);
    EXPECT_EQ(series->front().argmax, 2);
    EXPECT_EQ(session.window(1, 4, 5, 10)->back().maximum, 1024);
    EXPECT_EQ(series->back().maximum, 2048) << "reserved";
}

TEST(MemoryEvents, AMalformedBlockIsRefused) {
    MemoryChunkEncoder encoder;
    std::mt19937 random(4);
    for (std::int64_t i = 0; i < 50; ++i) encoder.append(randomEvent(random, i));
    const std::vector<std::byte> blob = encoder.blob();
    const auto nothing = [](const MemoryEventRow&) {};
    EXPECT_TRUE(decodeMemoryChunk(blob, nothing));
    for (std::size_t cut = 0; cut < blob.size(); ++cut)
        EXPECT_FALSE(decodeMemoryChunk(std::span(blob).first(cut), nothing));
    for (int trial = 0; trial < 2000; ++trial) {
        auto flipped = blob;
        flipped[random() % flipped.size()] ^= static_cast<std::byte>(1 << random() % 8);
        std::size_t taken = 0;
        decodeMemoryChunk(flipped, [&](const MemoryEventRow&) { ++taken; });
        EXPECT_LE(taken, blob.size());
    }
}

}  // namespace
}  // namespace hw::core
