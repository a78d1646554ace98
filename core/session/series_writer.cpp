// SPDX-License-Identifier: MIT
#include "core/session/series_writer.h"

#include <algorithm>

#include "core/session/series_reader.h"

namespace hw::core {
namespace {

std::int64_t capacity(std::size_t level) {
    std::int64_t samples = kBucketSamples;
    for (; level > 0; --level) samples *= kFanOut;
    return samples;
}

}  // namespace

void PyramidBucket::add(const PyramidBucket& later) {
    if (later.count == 0) return;
    if (count == 0) {
        *this = later;
        return;
    }
    end = later.end;
    minimum = std::min(minimum, later.minimum);
    if (later.maximum > maximum) maximum = later.maximum, argmax = later.argmax;
    count += later.count;
}

SeriesWriter::SeriesWriter(Database& database, const SeriesKey& key)
    : bucketInsert_(
          database.kept("INSERT OR REPLACE INTO series_buckets(series, level, bucket, begin, end,"
                        " minimum, maximum, argmax, count) VALUES(?,?,?,?,?,?,?,?,?)")),
      blockInsert_(database.kept(
          "INSERT OR REPLACE INTO series_blocks(series, block, count, data) VALUES(?,?,?,?)")) {
    find(database, key);
    resume(database);
}

void SeriesWriter::find(Database& database, const SeriesKey& key) {
    Statement& known = database.kept("SELECT id, axis FROM series WHERE name = ?");
    if (known.bind(1, key.name).step()) {
        series_ = known.integer(0);
        axis_ = axisFromName(known.text(1));
        return known.reset();
    }
    Statement& insert =
        database.kept("INSERT INTO series(name, unit, axis, step, device) VALUES(?,?,?,?,?)");
    insert.bind(1, key.name).bind(2, key.unit).bind(3, axisName(key.axis));
    insert.bind(4, key.step).bind(5, key.device).execute();
    series_ = database.lastInsertId();
    axis_ = key.axis;
}

PyramidBucket SeriesWriter::stored(Database& database, std::size_t level, std::int64_t index) {
    Statement from(database,
                   "SELECT begin, end, minimum, maximum, argmax, count FROM series_buckets"
                   " WHERE series = ? AND level = ? AND bucket = ?");
    from.bind(1, series_).bind(2, static_cast<std::int64_t>(level)).bind(3, index);
    if (!from.step()) return {};
    return {from.integer(0), from.integer(1), from.integer(2),
            from.integer(3), from.integer(4), from.integer(5)};
}

std::optional<std::int64_t> SeriesWriter::lastBucket(Database& database) const {
    Statement& last =
        database.kept("SELECT max(bucket) FROM series_buckets WHERE series = ? AND level = 0");
    const bool any = last.bind(1, series_).step();
    const std::optional<std::int64_t> bucket = any ? last.optionalInteger(0) : std::nullopt;
    last.reset();
    return bucket;
}

// A level's open bucket is made of the whole buckets below; how many there are follows from level
// 0.
void SeriesWriter::resume(Database& database) {
    levels_.emplace_back();
    const std::optional<std::int64_t> last = lastBucket(database);
    if (!last) return;
    Level& finest = levels_.front();
    finest.index = *last;
    finest.open = stored(database, 0, finest.index);
    if (finest.open.count == kBucketSamples) ++finest.index, finest.open = {};
    for (std::int64_t whole = finest.index; whole > 0; whole /= kFanOut) {
        Level level;
        level.index = whole / kFanOut;
        for (std::int64_t i = level.index * kFanOut; i < whole; ++i)
            level.open.add(stored(database, levels_.size() - 1, i));
        levels_.push_back(level);
    }
    Statement block(database,
                    "SELECT block, count, data FROM series_blocks WHERE series = ?"
                    " ORDER BY block DESC LIMIT 1");
    block.bind(1, series_);
    if (!block.step()) throw DatabaseError{0, "a series has buckets and no samples"};
    blockIndex_ = block.integer(0);
    blockCount_ = block.integer(1);
    block_.raw(block.blob(2));
    const auto samples = decodeSeriesBlock(block.blob(2));
    if (static_cast<std::int64_t>(samples.size()) != blockCount_)
        throw DatabaseError{0, "the samples of a series are damaged"};
    lastX_ = samples.back().x;
    lastValue_ = samples.back().value;
    if (blockCount_ == kBlockSamples) ++blockIndex_, blockCount_ = 0, block_.clear();
}

void SeriesWriter::append(std::int64_t x, std::int64_t value) {
    if (lastValue_ == value) return;
    if (lastValue_) x = std::max(x, lastX_);
    // The first sample of a block stands for itself: a block can be read alone.
    block_.difference(x, blockCount_ == 0 ? 0 : lastX_);
    block_.difference(value, blockCount_ == 0 ? 0 : *lastValue_);
    lastX_ = x;
    lastValue_ = value;
    changed_ = true;
    PyramidBucket& open = levels_.front().open;
    open.add({x, x, value, value, x, 1});
    if (open.count == kBucketSamples) close(0);
    if (++blockCount_ == kBlockSamples) {
        writeBlock();
        ++blockIndex_, blockCount_ = 0;
        block_.clear();
    }
}

void SeriesWriter::close(std::size_t level) {
    const PyramidBucket full = levels_[level].open;
    write(level, levels_[level].index++, full);
    levels_[level].open = {};
    if (level + 1 == levels_.size()) levels_.emplace_back();
    PyramidBucket& above = levels_[level + 1].open;
    above.add(full);
    if (above.count == capacity(level + 1)) close(level + 1);
}

void SeriesWriter::flush() {
    if (!changed_) return;
    changed_ = false;
    if (blockCount_ > 0) writeBlock();
    PyramidBucket partial;
    for (std::size_t level = 0; level < levels_.size(); ++level) {
        PyramidBucket whole = levels_[level].open;
        whole.add(partial);
        if (whole.count > 0) write(level, levels_[level].index, whole);
        partial = whole;
    }
}

void SeriesWriter::write(std::size_t level, std::int64_t index, const PyramidBucket& bucket) {
    bucketInsert_.bind(1, series_).bind(2, static_cast<std::int64_t>(level)).bind(3, index);
    bucketInsert_.bind(4, bucket.begin).bind(5, bucket.end).bind(6, bucket.minimum);
    bucketInsert_.bind(7, bucket.maximum).bind(8, bucket.argmax).bind(9, bucket.count).execute();
}

void SeriesWriter::writeBlock() {
    blockInsert_.bind(1, series_).bind(2, blockIndex_).bind(3, blockCount_);
    blockInsert_.bindBlob(4, block_.bytes()).execute();
}

}  // namespace hw::core
