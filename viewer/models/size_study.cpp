// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/models/size_study.h"

#include <QObject>
#include <algorithm>

#include "core/import/import.h"
#include "planners/mimose/sizes.h"

namespace hw::viewer {
namespace {

constexpr int kCurvePoints = 96;

bool sameLayers(const planners::StepProfile& a, const planners::StepProfile& b) {
    return std::equal(a.layers.begin(), a.layers.end(), b.layers.begin(), b.layers.end(),
                      [](const auto& x, const auto& y) { return x.path == y.path; });
}

SizeRow rowOf(const SizeSamples::Step& step, planners::InputAwarePlanner& planner) {
    SizeRow row;
    row.step = step.step;
    row.bytes = step.profile.size;
    row.recordedPeak = step.profile.peak;
    row.recordedTime = step.time;
    const planners::SizePlan sized = planners::planSize(step.graph, step.profile.size, planner);
    row.estimatedPeak = sized.estimatedPeak;
    if (!sized.dropped) return row;
    row.droppedLayers = static_cast<int>(sized.dropped->size());
    row.planned = sized.judged.valid;
    row.plannedPeak = sized.judged.peak;
    row.plannedTime = sized.judged.time;
    return row;
}

}  // namespace

core::Result<SizeSamplesPointer> loadSizes(const std::string& path,
                                           const std::function<bool()>& cancelled) {
    auto session = core::openAny(path);
    if (!session) return session.error();
    const auto rows = session->steps();
    if (!rows) return rows.error();
    auto samples = std::make_shared<SizeSamples>();
    samples->recorded = static_cast<std::int64_t>(rows->size());
    const std::size_t count = std::min(rows->size(), SizeSamples::kMostSteps);
    for (std::size_t i = 0; i < count && !(cancelled && cancelled()); ++i) {
        // The last step is always among them.
        const core::StepRow& row = (*rows)[(i + 1) * rows->size() / count - 1];
        auto graph = core::loadGraph(*session, row.id);
        if (!graph) continue;  // a step that is not complete
        SizeSamples::Step step{row.id, std::move(*graph), {}, {}};
        step.profile = planners::profileStep(step.graph);
        step.time = step.graph.totalTime();
        samples->steps.push_back(std::move(step));
    }
    if (!samples->steps.empty()) {
        const planners::StepProfile last = samples->steps.back().profile;
        std::erase_if(samples->steps,
                      [&](const auto& step) { return !sameLayers(step.profile, last); });
    }
    std::stable_sort(samples->steps.begin(), samples->steps.end(),
                     [](const auto& a, const auto& b) { return a.profile.size < b.profile.size; });
    return SizeSamplesPointer(samples);
}

SizeStudy studySizes(const SizeSamples& samples, core::Bytes budget,
                     const std::function<bool()>& cancelled) {
    SizeStudy study;
    study.budget = budget;
    std::vector<planners::StepProfile> profiles;
    for (const SizeSamples::Step& step : samples.steps) profiles.push_back(step.profile);
    auto estimator = planners::MimoseEstimator::fit(profiles);
    if (!estimator) {
        study.why = QObject::tr(
                        "Plans by input size need recorded steps of three different sizes: "
                        "%1.\nRecord more of them, such as with "
                        "`highwater record --steps 12`.")
                        .arg(QString::fromStdString(estimator.error().what));
        return study;
    }
    study.layers = static_cast<int>(estimator->layers().size());
    const double from = profiles.front().size, to = profiles.back().size;
    for (int i = 0; i < kCurvePoints; ++i) {
        const double size = from + (to - from) * i / (kCurvePoints - 1);
        study.curve.emplace_back(size, estimator->peakAt(size));
    }
    planners::InputAwarePlanner planner(std::move(*estimator), budget);
    for (const SizeSamples::Step& step : samples.steps) {
        if (cancelled && cancelled()) break;
        study.rows.push_back(rowOf(step, planner));
    }
    study.plansMade = planner.cache().misses();
    return study;
}

}  // namespace hw::viewer
