// SPDX-License-Identifier: GPL-3.0-or-later
// Blocks of memory over time and address: of a schedule's packed arena, or as they were recorded.
#pragma once

#include <QString>
#include <functional>
#include <vector>

#include "core/memory/signature.h"
#include "viewer/models/document.h"

namespace hw::viewer {

/// In memory during moments [first, end) of a curve, at drawn addresses [offset, offset + bytes).
struct MapBlock {
    std::int32_t first = 0, end = 0;
    std::int64_t offset = 0, bytes = 0;
    Band band = kUnknownBand;
    core::StorageIndex storage = core::kNone;  // kNone: workspace, not loaded, or not known
    core::OpIndex op = core::kNone;            // that made it
    std::int64_t address = 0;                  // recorded: as it was
    std::int64_t recorded = -1;                // recorded: id of its storage in the session

    /// Of which nothing but its allocation was recorded.
    bool onlyEvents() const {
        return band == kUnknownBand && storage == core::kNone && recorded < 0;
    }
};

struct AddressMap {
    std::vector<MapBlock> blocks;  // by first
    bool recorded = false;         // addresses as they were, not of a packed arena
    core::Bytes span;              // the arena; recorded: the addresses that were touched
    core::Bytes livePeak;          // most bytes of blocks at one moment
    std::int32_t peakMoment = 0;
    core::Bytes hole;                 // the longest free stretch at the peak
    core::Bytes lowerBound;           // of the arena; recorded: none, 0
    std::vector<std::int64_t> seams;  // recorded: drawn addresses at which unused ones are left out
    QString why;                      // no blocks: for what reason

    /// Share of the span that is free while the most is live, 0 to 1.
    double wasted() const { return span == core::Bytes(0) ? 0 : 1 - ratio(livePeak, span); }
};

/// The blocks of a valid schedule, packed; moments count as in its curve. `signatures` may be
/// empty: the schedule's own form.
AddressMap packedMap(const core::TrainingGraph& graph, const core::Schedule& schedule,
                     const core::Signatures& signatures,
                     const std::function<bool()>& cancelled = {});

/// The arena of a plan of the document (null: of the recorded order), with the allocations that a
/// profile run saw where there was one, as `highwater layout` has them.
AddressMap packedMap(const Document& document, const PlanEntry* plan,
                     const std::function<bool()>& cancelled = {});

/// What the session recorded: addresses of a step's storages, or of the allocator's events.
/// Without any, `why` says so.
AddressMap recordedMap(const Document& document);

}  // namespace hw::viewer
