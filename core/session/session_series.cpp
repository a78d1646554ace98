// SPDX-License-Identifier: MIT
// The parts of Session and SessionWriter about memory events and series.
#include <limits>

#include "core/session/guarded.h"
#include "core/session/memory_events.h"
#include "core/session/series_reader.h"
#include "core/session/session_writer.h"

namespace hw::core {

MemoryEventWriter& SessionWriter::memoryEventWriter() {
    if (!memoryEvents_) memoryEvents_ = std::make_unique<MemoryEventWriter>(*database_);
    return *memoryEvents_;
}

void SessionWriter::writeGathered() const {
    if (memoryEvents_) memoryEvents_->flush();
}

Status SessionWriter::insert(const MemoryEventRow& row) {
    return guarded(path_, "writing a memory event", [&] { memoryEventWriter().append(row); });
}

Status SessionWriter::flushMemoryEvents() {
    return guarded(path_, "writing memory events", [&] { writeGathered(); });
}

Status SessionWriter::insertSamples(const SeriesKey& key, std::span<const Sample> samples) {
    return guarded(path_, "writing a series", [&] {
        SeriesWriter writer(*database_, key);
        for (const Sample& sample : samples) writer.append(sample.x, sample.value);
        writer.flush();
    });
}

Status Session::visitMemoryEvents(const std::function<void(const MemoryEventRow&)>& visit) const {
    return guarded(path_, "reading memory events", [&] {
        writeGathered();
        readMemoryEvents(*database_, std::numeric_limits<std::int64_t>::min(),
                         std::numeric_limits<std::int64_t>::max(), visit);
    });
}

Result<std::vector<MemoryEventRow>> Session::memoryEvents() const {
    return memoryEvents(std::numeric_limits<std::int64_t>::min(),
                        std::numeric_limits<std::int64_t>::max());
}

Result<std::vector<MemoryEventRow>> Session::memoryEvents(std::int64_t beginNs,
                                                          std::int64_t endNs) const {
    return guarded(path_, "reading memory events", [&] {
        writeGathered();
        std::vector<MemoryEventRow> rows;
        readMemoryEvents(*database_, beginNs, endNs,
                         [&](const MemoryEventRow& row) { rows.push_back(row); });
        return rows;
    });
}

Status Session::visitSamples(std::int64_t series,
                             const std::function<void(const Sample&)>& visit) const {
    return guarded(path_, "reading a series", [&] {
        writeGathered();
        Statement from(*database_,
                       "SELECT data FROM series_blocks WHERE series = ? ORDER BY block");
        for (from.bind(1, series); from.step();)
            for (const Sample& sample : decodeSeriesBlock(from.blob(0))) visit(sample);
    });
}

Result<std::vector<SeriesRow>> Session::series() const {
    return guarded(path_, "reading series", [&] {
        writeGathered();
        return readSeries(*database_);
    });
}

Result<std::vector<SeriesBucket>> Session::window(std::int64_t series, std::int64_t begin,
                                                  std::int64_t end, std::int64_t width) const {
    return guarded(path_, "reading a series", [&] {
        writeGathered();
        return readWindow(*database_, series, begin, end, width);
    });
}

}  // namespace hw::core
