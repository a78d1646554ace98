// SPDX-License-Identifier: GPL-3.0-or-later
// Bands: the parts into which bytes are split for colour. By category; of a trace that tells no
// categories by the line of the program that asked for the bytes.
#pragma once

#include <QString>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/graph/training_graph.h"
#include "core/session/call_stacks.h"
#include "core/session/recorded_memory.h"

namespace hw::viewer {

/// By category: its number. By line: 0 to kLineBands - 1 are the lines that hold most, at the peak
/// and all along, what lasts first; all others are kOtherLines, and bytes without a known line are
/// kUnknownBand.
using Band = std::uint8_t;
constexpr Band bandOf(core::Category category) {
    return static_cast<Band>(category);
}
inline constexpr Band kUnknownBand = bandOf(core::Category::Unknown);
inline constexpr Band kLineBands = kUnknownBand;
inline constexpr Band kOtherLines = kUnknownBand + 1, kBandCount = kOtherLines + 1;
static_assert(kUnknownBand + 1 == core::kCategoryCount, "lines take the numbers before it");

using BandBytes = std::array<core::Bytes, kBandCount>;

/// Adds what storages do not account for to the unknown bytes; where they claim more than `total`,
/// they are cut.
void fitTo(core::Bytes total, BandBytes& bytes);

/// How one document's bytes are split, and what the parts are called.
class Bands {
public:
    Bands() = default;  // by category
    /// By line where storages with a category hold less than half of what is known of the peak, and
    /// lines or ops are known.
    static Bands of(const core::RecordedMemory& memory, const core::CallStacks& stacks);

    bool byLine() const { return !places_.empty(); }
    Band of(const core::Storage& storage) const { return of(storage.sessionId, storage.category); }
    /// The same of a storage that need not be loaded, by its id in the session.
    Band of(std::int64_t storage, core::Category category) const;
    /// By line: of a place as placeOf() says it.
    Band ofPlace(const QString& place) const;
    /// By line: what asked for a storage, "model.py:41 forward", or the op, "mm"; empty where that
    /// is not known.
    QString placeOf(std::int64_t storage) const;
    /// "activation", "model.py:41", "other lines".
    QString name(Band band) const;
    /// Of these bytes the part of a category; none where they are split by line.
    core::Bytes of(const BandBytes& bytes, core::Category category) const;
    /// What lasts comes first, so that a stack has it at the bottom.
    std::vector<Band> fromTheBottom() const;

private:
    friend class PlaceFinder;
    struct Place {
        QString text, label;  // label: as short as a legend needs it
    };
    static constexpr std::int32_t kNowhere = -1;
    std::int32_t placeIndex(std::int64_t storage) const;

    std::vector<Place> places_;  // those with a band of their own first
    std::vector<std::pair<std::int64_t, std::int32_t>> placeOf_;  // by session id of a storage
    bool unknownOnTop_ = false;                                   // what is unknown comes and goes
};

}  // namespace hw::viewer
