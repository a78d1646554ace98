// SPDX-License-Identifier: MIT
#include "executor/replay/run_store.h"

#include <algorithm>
#include <chrono>

namespace hw::executor {
namespace {

using core::Status;

std::int64_t nowNs() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
}

}  // namespace

core::Nanoseconds median(std::vector<core::Nanoseconds> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

Status storeProfile(core::SessionWriter& session, const core::TrainingGraph& graph,
                    const Profile& profile) {
    HW_TRY(session.unpackStep(graph.sessionStep));
    std::vector<core::SignatureRow> rows;
    for (std::size_t i = 0; i < profile.signatures.size(); ++i) {
        const std::int64_t op = graph.ops[i].sessionId;
        int position = 0;
        for (const core::Allocation& allocation : profile.signatures[i].allocations)
            rows.push_back({op, position++, allocation.bytes, allocation.output,
                            allocation.beginEvent, allocation.endEvent});
        HW_TRY(session.setMeasured(op, profile.times[i], profile.workspaces[i]));
    }
    return session.replaceSignatures(rows);
}

Status storeRun(core::SessionWriter& session, std::int64_t step, const core::Plan* plan,
                std::int64_t recomputedOps, const Report& report) {
    core::RunRow row;
    if (plan) {
        core::PlanRow kept;
        kept.step = step;
        kept.createdNs = nowNs();
        kept.plan = *plan;
        kept.recomputedOps = recomputedOps;
        auto id = session.keepPlan(std::move(kept));
        if (!id) return id.error();
        row.plan = *id;
    }
    row.step = step;
    row.createdNs = nowNs();
    row.device = report.device;
    row.predictedPeak = report.predictedPeak;
    row.measuredPeak = report.measuredPeak;
    row.arenaBytes = report.arena.count();
    row.time = report.time;
    row.baselineTime = report.baselineTime;
    row.compared = report.figures.compared;
    row.different = report.figures.different;
    row.nonfinite = report.figures.nonfinite;
    row.details = toJson(report);
    auto id = session.insert(row);
    return id ? Status() : Status(id.error());
}

}  // namespace hw::executor
