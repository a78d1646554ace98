// SPDX-License-Identifier: MIT
// Reads series through their pyramid. Private to core/session: the border is Session::series and
// Session::window. Everything here throws DatabaseError.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/session/database.h"
#include "core/session/series.h"

namespace hw::core {

std::string_view axisName(SeriesAxis axis);  // "time_ns", "seq", "event"
SeriesAxis axisFromName(std::string_view name);

/// Samples of a block up to the first malformed one.
std::vector<Sample> decodeSeriesBlock(std::span<const std::byte> block);

std::vector<SeriesRow> readSeries(Database& database);

/// See Session::window.
std::vector<SeriesBucket> readWindow(Database& database, std::int64_t series, std::int64_t begin,
                                     std::int64_t end, std::int64_t width);

}  // namespace hw::core
