// SPDX-License-Identifier: MIT
#include "executor/replay/run_store.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "core/session/session_writer.h"
#include "executor/replay/report.h"

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

namespace {

/// Of what the run has said, in both of its forms.
void addNote(Outcome& outcome, const std::string& note) {
    auto report = nlohmann::ordered_json::parse(outcome.json, nullptr, false);
    if (!report.is_object()) return;
    report["notes"].push_back(note);
    outcome.json = report.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
    outcome.text += noteLine(note);
}

core::Result<std::optional<core::Plan>> planOf(const RunRequest& request) {
    if (request.plan.empty()) return std::optional<core::Plan>();
    auto plan = core::readPlanFile(request.plan);
    if (!plan) return plan.error();
    return std::optional(std::move(*plan));
}

Status storeRun(core::SessionWriter& session, const std::optional<core::Plan>& plan,
                const Outcome& outcome) {
    core::RunRow row = outcome.run;
    if (plan) {
        core::PlanRow kept;
        kept.step = row.step;
        kept.createdNs = nowNs();
        kept.plan = *plan;
        kept.recomputedOps = outcome.recomputedOps;
        auto id = session.keepPlan(std::move(kept));
        if (!id) return id.error();
        row.plan = *id;
    }
    row.createdNs = nowNs();
    row.details = outcome.json;
    auto id = session.insert(row);
    return id ? Status() : Status(id.error());
}

Status keep(core::SessionWriter& session, const RunRequest& request, const Outcome& outcome) {
    const auto plan = planOf(request);
    if (!plan) return plan.error();
    const std::int64_t step = outcome.run.step;
    const auto graph =
        core::loadGraph(session, step, *plan ? (*plan)->costs : std::optional<core::CostSet>());
    if (!graph) return graph.error();
    if (outcome.profile.signatures.size() != graph->ops.size())
        return core::Error{core::ErrorCode::Internal, "the run was of other ops", "run it again"};
    HW_TRY(session.begin());
    const bool replace = request.remeasure || !outcome.menu.empty();
    if (replace || (outcome.recordedHere && !session.hasMeasuredCosts(step)))
        HW_TRY(storeProfile(session, *graph, outcome.profile));
    if (!outcome.menu.empty()) {
        const auto menu = core::parseMenu(outcome.menu, *graph);
        if (!menu) return menu.error();
        HW_TRY(core::storeMenu(session, *graph, *menu, outcome.signatures));
    }
    HW_TRY(storeRun(session, *plan, outcome));
    return session.commit();
}

}  // namespace

void keepOutcome(const RunRequest& request, Outcome& outcome) {
    auto writer = core::SessionWriter::open(request.session);
    if (!writer)
        return addNote(outcome, "the session cannot be written: nothing of this run is kept in it");
    if (const Status kept = keep(*writer, request, outcome); !kept)
        addNote(outcome, "nothing of this run is kept in the session: " + kept.error().what);
}

}  // namespace hw::executor
