// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/models/batch_study.h"

#include <algorithm>
#include <filesystem>

#include "core/family/load_family.h"
#include "core/family/predicted_session.h"
#include "core/import/import.h"
#include "core/memory/evaluate.h"
#include "planners/registry.h"
#include "viewer/models/format.h"

namespace hw::viewer {
namespace {

core::Result<std::vector<core::Session>> openAll(const std::vector<std::string>& files) {
    std::vector<core::Session> sessions;
    for (const std::string& file : files) {
        auto session = core::openAny(file);
        if (!session) return session.error();
        sessions.push_back(std::move(*session));
    }
    return sessions;
}

/// Sizes below the largest one, for the curve: a search visits those near its end.
core::Status addSmaller(const core::Family& family, planners::LargestSize& row,
                        const planners::PlanRequest& request, const planners::Progress& progress) {
    for (const std::int64_t quarters : {1, 2, 3}) {
        const std::int64_t size = row.size.value_or(0) * quarters / 4;
        const auto at = std::lower_bound(row.tried.begin(), row.tried.end(), size,
                                         [](const planners::TriedSize& tried, std::int64_t wanted) {
                                             return tried.size < wanted;
                                         });
        if (size < 1 || (at != row.tried.end() && at->size == size)) continue;
        const auto made = planners::planWith(row.planner, family.graphAt(size), request, progress);
        if (!made) return made.error();
        if (made->status != planners::PlanStatus::Ok) continue;
        row.tried.insert(at, {size, made->peak, made->time, family.tellsTimes(size)});
        const double speed = planners::itemsPerSecond(size, made->time);
        if (family.tellsTimes(size) && speed > row.itemsPerSecond)
            row.fastest = size, row.itemsPerSecond = speed;
    }
    return {};
}

QStringList oursLast(QStringList planners) {
    if (const QString ours = toQString(planners::ownPlanner().name); planners.removeOne(ours))
        planners << ours;
    return planners;
}

}  // namespace

core::Result<BatchFamilyPointer> loadBatch(const std::vector<std::string>& files) {
    const auto sessions = openAll(files);
    if (!sessions) return sessions.error();
    auto families = core::loadFamilies(*sessions);
    if (!families) return families.error();
    const core::TrainingGraph largest = families->usual.graphAt(families->usual.sizes().back());
    const core::Bytes peak = core::evaluate(largest, core::baselineSchedule(largest)).peak;
    return BatchFamilyPointer(
        std::make_shared<BatchFamily>(BatchFamily{files, std::move(*families), peak}));
}

core::Result<BatchStudy> studyBatch(const core::StepFamilies& families, core::Bytes budget,
                                    const QStringList& planners, double seconds,
                                    const std::function<bool()>& cancelled) {
    planners::PlanRequest request;
    request.budget = budget;
    request.timeLimitSeconds = seconds;
    planners::Progress progress;
    if (cancelled) progress.cancelled = cancelled;
    std::vector<std::string> names;
    for (const QString& planner : planners) names.push_back(planner.toStdString());
    auto found = planners::largestSizes(families, names, request, progress);
    if (!found) return found.error();
    request.timeLimitSeconds = seconds / 4;
    for (planners::LargestSize& row : found->rows)
        if (core::Status done = addSmaller(families.usual, row, request, progress); !done)
            return done.error();
    return BatchStudy{budget, std::move(found->rows)};
}

std::vector<core::Bytes> budgetsAround(core::Bytes budget) {
    std::vector<core::Bytes> budgets;
    for (const double share : {0.5, 0.75, 1.5, 2.0, 3.0})
        budgets.emplace_back(
            static_cast<std::int64_t>(static_cast<double>(budget.count()) * share));
    return budgets;
}

const BatchStudy* BatchResults::atBudget() const {
    const auto known = studies.find(budget);
    return known == studies.end() ? nullptr : &known->second;
}

core::Result<BatchResults> studyBatches(const std::vector<std::string>& files,
                                        const QStringList& planners) {
    const auto family = loadBatch(files);
    if (!family) return family.error();
    BatchResults results{*family, (*family)->largestPeak, {}};
    std::vector<core::Bytes> budgets = budgetsAround(results.budget);
    budgets.push_back(results.budget);
    for (const core::Bytes budget : budgets) {
        const double seconds = budget == results.budget ? kBatchSeconds : kBatchBesideSeconds;
        auto made = studyBatch((*family)->families, budget, planners, seconds);
        if (!made) return made.error();
        results.studies[budget] = std::move(*made);
    }
    return results;
}

std::vector<BatchCurve> sizeOverBudget(const BatchResults& results, const QStringList& planners,
                                       double unitBytes) {
    std::vector<BatchCurve> curves;
    for (const QString& planner : oursLast(planners)) {
        BatchCurve& curve = curves.emplace_back(BatchCurve{planner, {}, -1});
        for (const auto& [budget, study] : results.studies)
            for (const planners::LargestSize& row : study.rows)
                if (row.size && toQString(row.planner) == planner)
                    curve.points.push_back(QPointF(static_cast<double>(budget.count()) / unitBytes,
                                                   static_cast<double>(*row.size)));
    }
    return curves;
}

std::vector<BatchCurve> speedOverSize(const BatchResults& results, const QStringList& planners) {
    std::vector<BatchCurve> curves;
    const BatchStudy* const study = results.atBudget();
    if (study == nullptr) return curves;
    for (const QString& planner : oursLast(planners))
        for (const planners::LargestSize& row : study->rows) {
            if (toQString(row.planner) != planner || row.tried.empty()) continue;
            BatchCurve& curve = curves.emplace_back(BatchCurve{planner, {}, -1});
            for (const planners::TriedSize& tried : row.tried) {
                if (!tried.timed) continue;
                if (tried.size == row.fastest) curve.marked = static_cast<int>(curve.points.size());
                curve.points.push_back(QPointF(static_cast<double>(tried.size),
                                               planners::itemsPerSecond(tried.size, tried.time)));
            }
        }
    return curves;
}

core::Result<BatchFiles> writeBatch(const BatchFamily& family, std::int64_t size,
                                    const planners::LargestSize& row, const std::string& folder) {
    const auto sessions = openAll(family.files);
    if (!sessions) return sessions.error();
    const std::filesystem::path base =
        std::filesystem::path(folder) /
        (std::filesystem::path(family.files.front()).stem().string() + "-" + std::to_string(size));
    BatchFiles files{base.string() + ".hws", std::nullopt};
    std::error_code ignored;
    if (!std::filesystem::exists(files.session, ignored))
        HW_TRY(core::writeSession(files.session, [&](core::SessionWriter& out) {
            return core::writePredicted(*sessions, std::nullopt, size, out);
        }));
    if (row.size != size || !row.outcome || !row.outcome->plan) return files;
    files.plan = base.string() + "-" + row.planner + ".plan.json";
    std::replace(files.plan->begin() + static_cast<std::ptrdiff_t>(folder.size()),
                 files.plan->end(), ':', '-');
    HW_TRY(core::writePlanFile(*row.outcome->plan, *files.plan));
    return files;
}

}  // namespace hw::viewer
