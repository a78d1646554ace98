// SPDX-License-Identifier: GPL-3.0-or-later
// A recorded curve with more events than are worth holding: read from the session's pyramid for
// whatever is looked at.
#pragma once

#include <memory>
#include <mutex>

#include "core/session/session.h"
#include "viewer/models/band_history.h"
#include "viewer/models/step_curve.h"

namespace hw::viewer {

class RecordedSeries {
public:
    /// Sessions with fewer events are loaded whole.
    static constexpr std::int64_t kManyEvents = 200'000;

    /// The allocator's curve of the device with this ordinal (-1: the host). Null where the session
    /// has none with many events.
    static std::shared_ptr<RecordedSeries> find(const core::Session& session, std::int64_t ordinal);

    /// Moments that cover [from, to] for a view so many columns wide, every peak among them; costs
    /// the same however much is recorded. Times since the start. Any thread.
    StepCurve window(core::Nanoseconds from, core::Nanoseconds to, int columns) const;

    core::Nanoseconds length() const;
    core::Bytes highest() const { return core::Bytes(row_.maximum); }
    std::int64_t events() const { return row_.samples; }
    /// When an event happened that the session's clock gives, and that is the so-many-th.
    core::Nanoseconds timeOf(std::int64_t clockNs, std::int64_t event) const;
    bool timed() const { return row_.key.axis == core::SeriesAxis::Time; }
    /// Where time 0 lies on the session's clock; until then it is where the series begins.
    void startAt(std::int64_t originNs) { origin_ = timed() ? originNs : row_.begin; }
    /// By what the moments' bytes are split; until then all of them are unknown.
    void splitBy(BandHistory history) { history_ = std::move(history); }

private:
    RecordedSeries(core::Session session, core::SeriesRow row)
        : session_(std::move(session)), row_(std::move(row)), origin_(row_.begin) {}

    mutable std::mutex mutex_;  // of the session
    core::Session session_;
    core::SeriesRow row_;
    std::int64_t origin_;
    BandHistory history_;
};

}  // namespace hw::viewer
