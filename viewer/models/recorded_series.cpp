// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/models/recorded_series.h"

#include <algorithm>

namespace hw::viewer {
namespace {

constexpr std::int64_t kEventNs = 1'000'000;  // an event without a time counts as a millisecond

void push(StepCurve& curve, core::Nanoseconds begin, core::Nanoseconds end, std::int64_t bytes,
          const BandBytes& byBand) {
    if (end <= begin && !curve.moments.empty() && bytes <= curve.moments.back().total.count())
        return;
    Moment moment{begin, end, curve.moments.size(), core::kNone, false, core::Bytes(bytes), byBand};
    fitTo(moment.total, moment.byBand);
    if (moment.total > curve.peak)
        curve.peak = moment.total, curve.peakMoment = curve.moments.size();
    curve.moments.push_back(moment);
}

}  // namespace

std::shared_ptr<RecordedSeries> RecordedSeries::find(const core::Session& session,
                                                     std::int64_t ordinal) {
    const auto all = session.series();
    if (!all) return nullptr;
    const core::SeriesRow* best = nullptr;
    for (const core::SeriesRow& row : *all) {
        if (row.samples < kManyEvents || row.key.step || row.key.axis == core::SeriesAxis::Seq ||
            !row.key.name.ends_with(" allocated") || row.key.device.value_or(-1) != ordinal)
            continue;
        if (!best || row.maximum > best->maximum) best = &row;
    }
    if (!best) return nullptr;
    auto own = core::Session::open(session.path());
    if (!own) return nullptr;
    return std::shared_ptr<RecordedSeries>(new RecordedSeries(std::move(*own), *best));
}

core::Nanoseconds RecordedSeries::length() const {
    return core::Nanoseconds((row_.end - origin_) * (timed() ? 1 : kEventNs));
}

core::Nanoseconds RecordedSeries::timeOf(std::int64_t clockNs, std::int64_t event) const {
    const core::Nanoseconds time(timed() ? clockNs - origin_ : event * kEventNs);
    return std::clamp(time, core::Nanoseconds(0), length());
}

StepCurve RecordedSeries::window(core::Nanoseconds from, core::Nanoseconds to, int columns) const {
    const std::int64_t unit = timed() ? 1 : kEventNs;
    const std::int64_t first = origin_ + from.count() / unit;
    const std::int64_t last = std::min(origin_ + to.count() / unit + 1, row_.end + 1);
    StepCurve curve;
    curve.time = length();
    const std::scoped_lock lock(mutex_);
    const auto buckets = session_.window(row_.id, first, std::max(last, first + 1), columns);
    if (!buckets) return curve;
    const auto at = [&](std::int64_t x) {
        return core::Nanoseconds(
            std::clamp<std::int64_t>((x - origin_) * unit, 0, curve.time.count()));
    };
    BandHistory::Walk walk(history_, buckets->empty() ? first : buckets->front().begin);
    for (std::size_t i = 0; i < buckets->size(); ++i) {
        const core::SeriesBucket& bucket = (*buckets)[i];
        const std::int64_t next = i + 1 < buckets->size() ? (*buckets)[i + 1].begin : row_.end;
        const auto [lowest, highest] = walk.within(
            bucket.begin, bucket.end, core::Bytes(bucket.minimum), core::Bytes(bucket.maximum));
        const auto low = [&](std::int64_t from, std::int64_t to) {
            push(curve, at(from), at(to), bucket.minimum, lowest);
        };
        const auto high = [&](std::int64_t from, std::int64_t to) {
            push(curve, at(from), at(to), bucket.maximum, highest);
        };
        if (bucket.minimum == bucket.maximum) {
            high(bucket.begin, next);
        } else if (bucket.argmax > bucket.begin) {
            low(bucket.begin, bucket.argmax);
            high(bucket.argmax, next);
        } else {
            const std::int64_t middle = bucket.begin + (next - bucket.begin) / 2;
            high(bucket.begin, middle);
            low(middle, next);
        }
    }
    return curve;
}

}  // namespace hw::viewer
