// SPDX-License-Identifier: MIT
#include "live/host/report.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>

#include "core/session/session_writer.h"
#include "live/host/mismatches.h"
#include "live/host/shortfall.h"

namespace hw::live {
namespace {

using namespace hw::core;

std::optional<double> median(std::vector<std::int64_t> values) {
    if (values.empty()) return std::nullopt;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return static_cast<double>(*middle);
}

Json orNull(const std::optional<double>& value) {
    return value ? Json(*value) : Json(nullptr);
}

/// Nanoseconds of a process' steps by what acted in them.
struct StepTimes {
    std::vector<std::int64_t> planned, within;  // under a plan; under a budget without one
    /// Those in which nothing acted from end to end, without the program's first: it warms up.
    std::vector<std::int64_t> unplanned;
    /// Those in which something did, less what that took; empty where a GPU's clock would have to
    /// say it.
    std::vector<std::int64_t> alone;

    std::optional<double> with() const { return median(planned.empty() ? within : planned); }
    std::optional<double> without() const { return median(unplanned.empty() ? alone : unplanned); }
};

StepTimes timesOf(const LiveProcess& process) {
    std::set<std::int64_t> unlike;
    if (!process.steps.empty()) unlike.insert(process.steps.front().step);
    for (const auto& each : process.divergences) unlike.insert(each.step);
    StepTimes times;
    bool known = true;
    for (const auto& step : process.steps) {
        const std::int64_t time = step.endNs - step.beginNs;
        if (step.mode == wire::LiveMode::None) {
            if (unlike.count(step.step) == 0) times.unplanned.push_back(time);
            continue;
        }
        (step.mode == wire::LiveMode::Plan ? times.planned : times.within).push_back(time);
        times.alone.push_back(time - step.recomputedNs - step.runtimeNs);
        known = known && (step.recomputed == 0 || step.recomputedNs > 0);
    }
    if (!known) times.alone.clear();
    return times;
}

Json rescuesOf(const LiveProcess& process) {
    Json rescues = Json::array();
    for (const auto& each : process.rescues) rescues.push_back(rescueOf(each));
    return rescues;
}

/// How far the run fell short of its plan or budget, and why.
void addShortfall(const Shortfall& shortfall, Json& report) {
    report["steps_above_budget"] = shortfall.stepsAbove;
    report["above_budget_bytes"] = shortfall.most.count();
    report["why"] = shortfall.why;
}

Json divergencesOf(const LiveProcess& process) {
    Json divergences = Json::array();
    for (const auto& each : process.divergences)
        divergences.push_back({{"step", each.step},
                               {"op", each.op},
                               {"expected", each.expected},
                               {"found", each.found}});
    return divergences;
}

/// `prepared`: null where the process has no plan. `limit`: of live bytes, if there is one;
/// `found`: what has taken over within it.
Json figuresOf(const LiveProcess& process, const LivePlan* prepared,
               const std::optional<Bytes>& limit, const std::optional<FoundPlan>& found) {
    const StepTimes times = timesOf(process);
    std::int64_t peak = 0, anyPeak = 0, recomputed = 0, restored = 0, pinned = 0, evictions = 0;
    std::int64_t ops = 0, runtime = 0;  // of steps in which something acts
    std::int64_t verified = 0, verifying = 0, uncompared = 0, offloaded = 0, waited = 0;
    std::size_t bySize = 0;  // of those within a budget
    for (const auto& step : process.steps) {
        if (step.mode == wire::LiveMode::Mimose) ++bySize;
        anyPeak = std::max(anyPeak, step.peak);
        if (step.mode == wire::LiveMode::Plan) peak = std::max(peak, step.peak);
        if (step.mode != wire::LiveMode::None) ops += step.ops, runtime += step.runtimeNs;
        recomputed += step.recomputed;
        restored += step.restored;
        evictions += step.evictions;
        verified += step.verified;
        verifying += step.verifyingNs;
        uncompared += step.uncompared;
        offloaded += step.offloaded;
        waited += step.waitedNs;
        pinned = std::max(pinned, step.pinned);
    }
    const auto with = times.with(), without = times.without();
    const std::size_t planned = times.planned.size(), within = times.within.size();
    Json peaks = Json::array();
    for (const auto& step : process.steps) peaks.push_back(step.peak);
    const Plan* const plan = prepared == nullptr ? nullptr : &prepared->plan;
    const Bytes kept = prepared == nullptr ? Bytes() : prepared->kept;
    return {{"steps", process.steps.size()},
            {"steps_planned", planned},
            {"steps_diverged", process.divergences.size()},
            {"divergences", divergencesOf(process)},
            {"modes",
             {{"plan", planned},
              {"dtr", within - bySize},
              {"mimose", bySize},
              {"none", process.steps.size() - planned - within}}},
            {"budget_bytes", plan    ? Json(plan->budget.count())
                             : limit ? Json(limit->count())
                                     : Json(nullptr)},
            {"predicted_peak_bytes", plan    ? Json(plan->predictedPeak.count())
                                     : found ? Json(found->peak.count())
                                             : Json(nullptr)},
            {"measured_peak_bytes", planned == 0 || within > 0 ? anyPeak : peak},
            {"step_peaks_bytes", peaks},
            {"predicted_overhead", plan    ? Json(plan->overhead)
                                   : found ? Json(found->overhead)
                                           : Json(nullptr)},
            {"measured_overhead", with && without ? Json(*with / *without) : Json(nullptr)},
            {"planned_step_ns", orNull(with)},
            {"unplanned_step_ns", orNull(without)},
            {"runtime_ns_per_op", ops > 0 ? Json(runtime / ops) : Json(nullptr)},
            {"recomputed_ops", recomputed},
            {"restored_bytes", restored},
            {"evictions", evictions},
            {"verified_bytes", verified},
            {"verification_ns", verifying},
            {"uncompared_ops", uncompared},
            {"offloaded_bytes", offloaded},
            {"waited_ns", waited},
            {"mismatches", mismatchesOf(process, prepared)},
            {"rescues", rescuesOf(process)},
            {"pinned_bytes", pinned + kept.count()}};
}

Json reportOf(const LiveProcess& process, const LivePlan* prepared,
              const std::optional<Bytes>& limit, const LiveSummary& summary) {
    Json report = figuresOf(process, prepared, limit, summary.found);
    addShortfall(shortfallOf(process, prepared, limit, summary), report);
    return report;
}

Status store(SessionWriter& to, const LivePlan& plan, const Json& report) {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    PlanRow kept;
    kept.step = plan.step;
    kept.createdNs = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
    kept.plan = plan.plan;
    kept.recomputedOps = plan.recomputedOps;
    const auto id = to.keepPlan(kept);
    if (!id) return id.error();
    const auto nanoseconds = [&](const char* key) {
        return Nanoseconds(report[key].is_null() ? 0 : std::llround(report[key].get<double>()));
    };
    RunRow run;
    run.plan = *id;
    run.step = plan.step;
    run.createdNs = kept.createdNs;
    run.device = "training";
    run.predictedPeak = plan.plan.predictedPeak;
    run.measuredPeak = Bytes(report["measured_peak_bytes"]);
    run.time = nanoseconds("planned_step_ns");
    run.baselineTime = nanoseconds("unplanned_step_ns");
    run.details = Json{{"training", report}}.dump(-1, ' ', false, Json::error_handler_t::replace);
    const auto row = to.insert(run);
    return row ? Status() : Status(row.error());
}

}  // namespace

Json rescueOf(const wire::LiveRescueRecord& rescue) {
    return {{"step", rescue.step},        {"op", rescue.op},
            {"bytes", rescue.bytes},      {"allocations", rescue.allocations},
            {"refused", rescue.refused},  {"freed_bytes", rescue.freed},
            {"evicted", rescue.evictions}};
}

const char* liveModeName(wire::LiveMode mode) {
    switch (mode) {
        case wire::LiveMode::Plan:
            return "plan";
        case wire::LiveMode::Dtr:
            return "dtr";
        case wire::LiveMode::Mimose:
            return "mimose";
        case wire::LiveMode::None:
            break;
    }
    return "none";
}

Status storeLive(const std::string& session, const LiveSummary& summary,
                 const std::vector<LivePlan>& plans) {
    auto to = SessionWriter::open(session);
    if (!to) return to.error();
    for (const auto& process : summary.processes) {
        const LivePlan* plan = planOf(plans, process.rank);
        const Json report = reportOf(process, plan, std::nullopt, summary);
        if (plan == nullptr || report["steps_planned"] == 0) continue;
        if (Status done = store(*to, *plan, report); !done) return done;
    }
    return {};
}

Json liveReport(const LiveSummary& summary, const std::vector<LivePlan>& plans,
                const std::optional<Bytes>& limit) {
    Json ranks = Json::array();
    for (const auto& process : summary.processes) {
        ranks.push_back(reportOf(process, planOf(plans, process.rank), limit, summary));
        ranks.back()["rank"] = process.rank;
    }
    Json report = ranks.front();
    report.erase("rank");
    report["notes"] = summary.notes;
    report["shortage"] = summary.shortage.empty() ? Json(nullptr) : Json(summary.shortage);
    report["exit_status"] = summary.running ? Json(nullptr) : Json(summary.exitStatus);
    if (ranks.size() > 1) report["ranks"] = ranks;
    return report;
}

}  // namespace hw::live
