// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/models/step_overview.h"

#include <algorithm>
#include <map>

namespace hw::viewer {
namespace {

constexpr std::int64_t kFewest = 4;  // pieces of a step

// The curve counts events, not time: they are laid out evenly over the time of the step.
StepSummary summarize(const core::StepRow& row, const std::vector<core::SeriesBucket>& buckets,
                      std::int64_t originNs) {
    StepSummary step;
    step.step = row.id;
    step.begin = core::Nanoseconds(row.beginNs - originNs);
    step.end = core::Nanoseconds(row.endNs - originNs);
    const double nanosecondsPerEvent =
        static_cast<double>(row.endNs - row.beginNs) /
        static_cast<double>(std::max<std::int64_t>(1, row.endSeq - row.firstSeq));
    for (const core::SeriesBucket& bucket : buckets) {
        const auto offset = static_cast<std::int64_t>(
            nanosecondsPerEvent *
            static_cast<double>(std::max<std::int64_t>(0, bucket.begin - row.firstSeq)));
        step.pieces.push_back({step.begin + core::Nanoseconds(offset), core::Bytes(bucket.minimum),
                               core::Bytes(bucket.maximum)});
        step.peak = std::max(step.peak, core::Bytes(bucket.maximum));
    }
    return step;
}

}  // namespace

std::vector<StepSummary> loadOverview(const core::Session& session, std::int64_t of,
                                      std::int64_t pieces) {
    auto steps = session.steps();
    const auto series = session.series();
    if (!steps || !series) return {};
    const auto own = std::find_if(steps->begin(), steps->end(),
                                  [&](const core::StepRow& row) { return row.id == of; });
    if (own == steps->end()) return {};
    std::erase_if(*steps, [process = own->process](const core::StepRow& row) {
        return row.process != process;
    });
    std::map<std::int64_t, std::int64_t> curveOf;
    for (const core::SeriesRow& row : *series)
        if (row.key.axis == core::SeriesAxis::Seq && row.key.step && !row.key.device)
            curveOf.try_emplace(*row.key.step, row.id);
    const std::int64_t width =
        std::max(kFewest, pieces / 4 / static_cast<std::int64_t>(steps->size()));
    std::vector<StepSummary> overview;
    for (const core::StepRow& row : *steps) {
        const auto curve = curveOf.find(row.id);
        if (curve == curveOf.end()) continue;
        const auto buckets = session.window(curve->second, row.firstSeq, row.endSeq, width);
        if (buckets && !buckets->empty())
            overview.push_back(summarize(row, *buckets, steps->front().beginNs));
    }
    return overview;
}

}  // namespace hw::viewer
