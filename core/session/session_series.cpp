// SPDX-License-Identifier: MIT
// The part of Session about memory events and series.
#include <limits>

#include "core/session/guarded.h"
#include "core/session/memory_events.h"
#include "core/session/series_reader.h"
#include "core/session/session.h"

namespace hw::core {

MemoryEventWriter& Session::memoryEventWriter() {
    if (!memoryEvents_) memoryEvents_ = std::make_unique<MemoryEventWriter>(*database_);
    return *memoryEvents_;
}

void Session::flush() {
    if (memoryEvents_) memoryEvents_->flush();
}

Status Session::insert(const MemoryEventRow& row) {
    return guarded(path_, "writing a memory event", [&] { memoryEventWriter().append(row); });
}

Status Session::flushMemoryEvents() {
    return guarded(path_, "writing memory events", [&] { flush(); });
}

Status Session::insertSamples(const SeriesKey& key, std::span<const Sample> samples) {
    return guarded(path_, "writing a series", [&] {
        SeriesWriter writer(*database_, key);
        for (const Sample& sample : samples) writer.append(sample.x, sample.value);
        writer.flush();
    });
}

Result<std::vector<MemoryEventRow>> Session::memoryEvents() {
    return guarded(path_, "reading memory events", [&] {
        flush();
        std::vector<MemoryEventRow> rows;
        constexpr auto kAll = std::numeric_limits<std::int64_t>::max();
        readMemoryEvents(*database_, std::numeric_limits<std::int64_t>::min(), kAll,
                         [&](const MemoryEventRow& row) { rows.push_back(row); });
        return rows;
    });
}

Result<std::vector<MemoryEventRow>> Session::memoryEvents(std::int64_t beginNs,
                                                          std::int64_t endNs) {
    return guarded(path_, "reading memory events", [&] {
        flush();
        std::vector<MemoryEventRow> rows;
        readMemoryEvents(*database_, beginNs, endNs,
                         [&](const MemoryEventRow& row) { rows.push_back(row); });
        return rows;
    });
}

Result<std::vector<SeriesRow>> Session::series() {
    return guarded(path_, "reading series", [&] {
        flush();
        return readSeries(*database_);
    });
}

Result<std::vector<SeriesBucket>> Session::window(std::int64_t series, std::int64_t begin,
                                                  std::int64_t end, std::int64_t width) {
    return guarded(path_, "reading a series", [&] {
        flush();
        return readWindow(*database_, series, begin, end, width);
    });
}

}  // namespace hw::core
