// SPDX-License-Identifier: GPL-3.0-or-later
// The bytes of each band over the events of a trace whose storages are not loaded.
#pragma once

#include <cstdint>
#include <vector>

#include "viewer/models/bands.h"

namespace hw::viewer {

class BandHistory {
    /// Between two events.
    struct State {
        std::size_t event = 0, change = 0;  // the next ones
        BandBytes bytes{};
    };

public:
    BandHistory() = default;  // nothing is known
    BandHistory(const core::RecordedMemory& memory, const Bands& bands);

    struct Extremes {
        BandBytes lowest{}, highest{};
    };

    /// Goes through a stretch of the events once, from its beginning.
    class Walk {
    public:
        /// `place`: as in RecordedMemory::Event.
        Walk(const BandHistory& history, std::int64_t place);
        /// The bands of those events with first <= place <= last at which so many bytes are
        /// allocated. Places never decrease from one call to the next.
        Extremes within(std::int64_t first, std::int64_t last, core::Bytes lowest,
                        core::Bytes highest);

    private:
        const BandHistory& history_;
        State now_, tied_;  // tied_: before the events at the last place, which two calls may share
    };

private:
    struct Change {
        core::Bytes by;
        std::int32_t event = 0;
        Band band = kUnknownBand;
    };
    static constexpr std::size_t kEventsOfStart = 4096;
    void apply(State& state) const;  // the next event

    std::vector<core::RecordedMemory::Event> events_;
    std::vector<Change> changes_;  // by event
    std::vector<State> starts_;    // of every kEventsOfStart-th event, so that no walk is long
};

}  // namespace hw::viewer
