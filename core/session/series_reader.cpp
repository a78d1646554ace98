// SPDX-License-Identifier: MIT
#include "core/session/series_reader.h"

#include <algorithm>

#include "core/base/varint.h"
#include "core/session/series_writer.h"

namespace hw::core {
namespace {

SeriesBucket shown(const PyramidBucket& bucket) {
    return {bucket.begin, bucket.end, bucket.minimum, bucket.maximum, bucket.argmax};
}

class WindowReader {
public:
    WindowReader(Database& database, std::int64_t series, std::int64_t begin, std::int64_t end)
        : database_(database),
          buckets_(database,
                   "SELECT begin, end, minimum, maximum, argmax, count FROM series_buckets"
                   " WHERE series = ?1 AND level = ?2 AND bucket >= ?3 AND bucket <= ?4"
                   " ORDER BY bucket"),
          series_(series),
          begin_(begin),
          end_(end) {}

    std::vector<SeriesBucket> read(std::int64_t width) {
        std::int64_t level = topLevel();
        if (level < 0) return {};
        std::int64_t first = 0, last = lastBucket(level);
        for (;; --level) {
            narrow(level, first, last);
            if (last < first) return {};
            if (last - first + 1 >= width) return bucketsOf(level, first, last);
            if (level == 0) return samplesOf(first, last, width);
            first *= kFanOut;
            last = last * kFanOut + kFanOut - 1;
        }
    }

private:
    std::int64_t topLevel() {
        Statement from(database_,
                       "SELECT level FROM series_buckets WHERE series = ?"
                       " ORDER BY level DESC LIMIT 1");
        from.bind(1, series_);
        return from.step() ? from.integer(0) : -1;
    }

    std::int64_t lastBucket(std::int64_t level) {
        Statement from(database_,
                       "SELECT bucket FROM series_buckets WHERE series = ? AND level = ?"
                       " ORDER BY bucket DESC LIMIT 1");
        from.bind(1, series_).bind(2, level);
        return from.step() ? from.integer(0) : -1;
    }

    // Of [first, last] the buckets that matter: from the last one that begins before the window to
    // the last one that begins within it. Only the ends of the range can be out of it: they are the
    // children of one bucket each.
    void narrow(std::int64_t level, std::int64_t& first, std::int64_t& last) {
        const std::int64_t edge = std::min(first + kFanOut - 1, last);
        std::int64_t at = first;
        for (bind(level, first, edge); buckets_.step(); ++at)
            if (buckets_.integer(0) < begin_) first = at;
        const std::int64_t from = std::max(first, last - kFanOut + 1);
        last = first - 1;
        at = from;
        for (bind(level, from, from + kFanOut - 1); buckets_.step(); ++at)
            if (buckets_.integer(0) < end_) last = at;
        if (last < first && from > first) last = from - 1;
        buckets_.reset();
    }

    void bind(std::int64_t level, std::int64_t first, std::int64_t last) {
        buckets_.reset();
        buckets_.bind(1, series_).bind(2, level).bind(3, first).bind(4, last);
    }

    std::vector<SeriesBucket> bucketsOf(std::int64_t level, std::int64_t first, std::int64_t last) {
        std::vector<SeriesBucket> found;
        for (bind(level, first, last); buckets_.step();)
            found.push_back({buckets_.integer(0), buckets_.integer(1), buckets_.integer(2),
                             buckets_.integer(3), buckets_.integer(4)});
        return found;
    }

    // Fewer buckets than the view is wide: the samples themselves, and the one that holds when the
    // window begins.
    std::vector<SeriesBucket> samplesOf(std::int64_t first, std::int64_t last, std::int64_t width) {
        Statement from(database_,
                       "SELECT data FROM series_blocks WHERE series = ? AND block >= ?"
                       " AND block <= ? ORDER BY block");
        from.bind(1, series_).bind(2, first * kBucketSamples / kBlockSamples);
        from.bind(3, last * kBucketSamples / kBlockSamples);
        std::vector<PyramidBucket> found;
        while (from.step())
            for (const Sample& sample : decodeSeriesBlock(from.blob(0))) {
                if (sample.x >= end_) break;
                if (sample.x <= begin_ && !found.empty() && found.back().begin < sample.x)
                    found.clear();
                found.push_back({sample.x, sample.x, sample.value, sample.value, sample.x, 1});
            }
        const auto size = static_cast<std::int64_t>(found.size());
        const std::int64_t group = size <= kFanOut * width ? 1 : (size + width - 1) / width;
        std::vector<SeriesBucket> result;
        for (std::int64_t i = 0; i < size; i += group) {
            PyramidBucket merged;
            for (std::int64_t k = i; k < std::min(i + group, size); ++k) merged.add(found[k]);
            result.push_back(shown(merged));
        }
        return result;
    }

    Database& database_;
    Statement buckets_;
    std::int64_t series_, begin_, end_;
};

}  // namespace

std::string_view axisName(SeriesAxis axis) {
    switch (axis) {
        case SeriesAxis::Time:
            return "time_ns";
        case SeriesAxis::Seq:
            return "seq";
        case SeriesAxis::Event:
            break;
    }
    return "event";
}

SeriesAxis axisFromName(std::string_view name) {
    if (name == "time_ns") return SeriesAxis::Time;
    return name == "seq" ? SeriesAxis::Seq : SeriesAxis::Event;
}

std::vector<Sample> decodeSeriesBlock(std::span<const std::byte> block) {
    std::vector<Sample> samples;
    VarintReader in(block);
    Sample sample;
    while (!in.atEnd()) {
        sample.x = in.difference(sample.x);
        sample.value = in.difference(sample.value);
        if (!in.good()) break;
        samples.push_back(sample);
    }
    return samples;
}

std::vector<SeriesRow> readSeries(Database& database) {
    // The highest level has one bucket, or few: its extremes are those of the series.
    Statement from(database, "SELECT id, name, unit, axis, step, device FROM series ORDER BY id");
    Statement top(database,
                  "SELECT begin, end, minimum, maximum, argmax, count FROM series_buckets"
                  " WHERE series = ?1 AND level = (SELECT max(level) FROM series_buckets"
                  " WHERE series = ?1) ORDER BY bucket");
    std::vector<SeriesRow> rows;
    while (from.step()) {
        SeriesRow& row = rows.emplace_back();
        row.id = from.integer(0);
        row.key = {from.text(1), from.text(2), axisFromName(from.text(3)), from.optionalInteger(4),
                   from.optionalInteger(5)};
        PyramidBucket all;
        for (top.bind(1, row.id); top.step();)
            all.add({top.integer(0), top.integer(1), top.integer(2), top.integer(3), top.integer(4),
                     top.integer(5)});
        top.reset();
        row.begin = all.begin, row.end = all.end, row.samples = all.count;
        row.minimum = all.minimum, row.maximum = all.maximum, row.argmax = all.argmax;
    }
    return rows;
}

std::vector<SeriesBucket> readWindow(Database& database, std::int64_t series, std::int64_t begin,
                                     std::int64_t end, std::int64_t width) {
    return WindowReader(database, series, begin, end).read(std::max<std::int64_t>(width, 1));
}

}  // namespace hw::core
