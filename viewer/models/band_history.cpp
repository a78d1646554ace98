// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/models/band_history.h"

#include <algorithm>

#include "viewer/models/held_storages.h"

namespace hw::viewer {

// There may be millions of changes, so they are sorted by counting.
BandHistory::BandHistory(const core::RecordedMemory& memory, const Bands& bands)
    : events_(memory.events) {
    using Held = core::RecordedMemory::Held;
    const std::size_t events = events_.size();
    std::vector<std::size_t> next(events + 1);  // by event, where its changes begin
    visitHeld(memory, [&](const Held& held) {
        for (const std::int32_t event : {held.first, held.end})
            if (const auto at = static_cast<std::size_t>(event); at < events) ++next[at + 1];
    });
    for (std::size_t event = 1; event <= events; ++event) next[event] += next[event - 1];
    changes_.resize(next.back());
    visitHeld(memory, [&](const Held& held) {
        const Band band = bands.of(held.storage, held.category);
        const auto put = [&](std::int32_t event, core::Bytes by) {
            if (const auto at = static_cast<std::size_t>(event); at < events)
                changes_[next[at]++] = {by, event, band};
        };
        put(held.first, held.bytes);
        put(held.end, core::Bytes(0) - held.bytes);
    });
    State state;
    while (state.event < events) {
        if (state.event % kEventsOfStart == 0) starts_.push_back(state);
        apply(state);
    }
}

void BandHistory::apply(State& state) const {
    const auto event = static_cast<std::int32_t>(state.event++);
    for (; state.change < changes_.size() && changes_[state.change].event == event;
         ++state.change) {
        const Change& change = changes_[state.change];
        state.bytes[change.band] += change.by;
    }
}

BandHistory::Walk::Walk(const BandHistory& history, std::int64_t place) : history_(history) {
    const auto from = std::partition_point(history.events_.begin(), history.events_.end(),
                                           [&](const auto& event) { return event.place < place; });
    const auto start = static_cast<std::size_t>(from - history.events_.begin()) / kEventsOfStart;
    if (!history.starts_.empty())
        now_ = history.starts_[std::min(start, history.starts_.size() - 1)];
}

BandHistory::Extremes BandHistory::Walk::within(std::int64_t first, std::int64_t last,
                                                core::Bytes lowest, core::Bytes highest) {
    const auto& events = history_.events_;
    if (tied_.event < now_.event && events[tied_.event].place == first) now_ = tied_;
    while (now_.event < events.size() && events[now_.event].place < first) history_.apply(now_);
    Extremes found{now_.bytes, now_.bytes};
    bool low = false, high = false;
    while (now_.event < events.size() && events[now_.event].place <= last) {
        const std::size_t event = now_.event;
        if (events[event].place == last && (event == 0 || events[event - 1].place < last))
            tied_ = now_;
        history_.apply(now_);
        const core::Bytes allocated = events[event].allocated;
        if (!low && allocated == lowest) found.lowest = now_.bytes, low = true;
        if (!high && allocated == highest) found.highest = now_.bytes, high = true;
    }
    return found;
}

}  // namespace hw::viewer
