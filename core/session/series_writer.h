// SPDX-License-Identifier: MIT
// Writes a numeric series and its min/max/argmax pyramid. Private to core/session: the border is
// Session::insertSamples and Session::insert(MemoryEventRow).
//
// A series is a step function: a sample holds until the next one, so a sample that changes nothing
// is left out. Level 0 of the pyramid has a bucket for every kBucketSamples samples, each further
// level one for every kFanOut buckets of the level below. The samples themselves lie beside it in
// blocks of kBlockSamples, as differences.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/varint.h"
#include "core/session/database.h"
#include "core/session/series.h"

namespace hw::core {

inline constexpr std::int64_t kBucketSamples = 64;
inline constexpr std::int64_t kFanOut = 4;
inline constexpr std::int64_t kBlockSamples = 4096;  // whole buckets of level 0

/// A bucket as it lies in the file.
struct PyramidBucket {
    std::int64_t begin = 0, end = 0;  // x of its first and its last sample
    std::int64_t minimum = 0, maximum = 0, argmax = 0;
    std::int64_t count = 0;  // samples; 0: an empty bucket

    void add(const PyramidBucket& later);
};

class SeriesWriter {
public:
    /// Continues the series of that name, or makes it. Throws DatabaseError.
    SeriesWriter(Database& database, const SeriesKey& key);

    /// x below the last one counts as the last one: a series only goes forward. Throws
    /// DatabaseError.
    void append(std::int64_t x, std::int64_t value);
    /// Writes the buckets that are not full yet, so that readers see every sample so far.
    void flush();

    std::optional<std::int64_t> lastValue() const { return lastValue_; }
    SeriesAxis axis() const { return axis_; }

private:
    struct Level {
        PyramidBucket open;      // of whole buckets of the level below
        std::int64_t index = 0;  // the open bucket's number
    };
    void find(Database& database, const SeriesKey& key);
    void resume(Database& database);
    std::optional<std::int64_t> lastBucket(Database& database) const;
    PyramidBucket stored(Database& database, std::size_t level, std::int64_t index);
    void close(std::size_t level);
    void write(std::size_t level, std::int64_t index, const PyramidBucket& bucket);
    void writeBlock();

    std::int64_t series_ = 0;
    SeriesAxis axis_ = SeriesAxis::Time;
    Statement &bucketInsert_, &blockInsert_;  // kept by the database, which stays
    std::vector<Level> levels_;
    VarintWriter block_;
    std::int64_t blockIndex_ = 0, blockCount_ = 0;
    std::int64_t lastX_ = 0;
    std::optional<std::int64_t> lastValue_;
    bool changed_ = false;
};

}  // namespace hw::core
