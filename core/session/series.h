// SPDX-License-Identifier: MIT
// Numeric series of a session, such as live bytes over time: step functions over one axis. A view
// of any width reads about as many buckets as it has pixels, however long the series is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hw::core {

/// What x counts: nanoseconds, seqs of the session's event axis, or memory events from 0 (for
/// sources that tell no times).
enum class SeriesAxis : std::uint8_t { Time, Seq, Event };

struct SeriesKey {
    std::string name;  // unique in the session
    std::string unit = "bytes";
    SeriesAxis axis = SeriesAxis::Time;
    std::optional<std::int64_t> step, device;  // what it belongs to, if it belongs to one
};

struct Sample {
    std::int64_t x = 0, value = 0;
};

struct SeriesRow {
    std::int64_t id = 0;
    SeriesKey key;
    std::int64_t begin = 0, end = 0;  // x of the first and the last sample
    std::int64_t minimum = 0, maximum = 0, argmax = 0;
    std::int64_t samples = 0;
};

/// Extremes of the samples with begin <= x <= end, and an x where the maximum is reached. The last
/// of its values holds until the next bucket begins.
struct SeriesBucket {
    std::int64_t begin = 0, end = 0;
    std::int64_t minimum = 0, maximum = 0, argmax = 0;
};

}  // namespace hw::core
