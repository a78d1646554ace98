// SPDX-License-Identifier: MIT
#include "live/host/mismatches.h"

#include "core/import/load_step.h"
#include "core/session/call_stacks.h"

namespace hw::live {
namespace {

using namespace hw::core;

const char* kindName(wire::MismatchKind kind) {
    switch (kind) {
        case wire::MismatchKind::UnseenWriter:
            return "unseen writer";
        case wire::MismatchKind::HiddenState:
            return "state of an extension";
        case wire::MismatchKind::NotDeterministic:
            return "not deterministic";
        case wire::MismatchKind::Unknown:
            break;
    }
    return "setting or unseen writer";
}

/// Layer and line of an op of the step that a program was for, as it was recorded.
void addPlace(Json& row, const LivePlan& plan, std::int64_t program, std::int64_t op) {
    const auto& programs = plan.programs.programs;
    const bool known = program >= 0 && program < static_cast<std::int64_t>(programs.size());
    if (!known) return;
    const auto loaded =
        loadStep(plan.session, programs[static_cast<std::size_t>(program)].step, {});
    if (!loaded || op < 0 || op >= static_cast<std::int64_t>(loaded->graph.ops.size())) return;
    const Op& recorded = loaded->graph.ops[static_cast<std::size_t>(op)];
    if (recorded.layer >= 0)
        row["layer"] = loaded->graph.layers[static_cast<std::size_t>(recorded.layer)].path;
    const auto stacks = CallStacks::load(loaded->session);
    const SourceFrameRow* const line =
        stacks ? stacks->line(stacks->ofOp(recorded.sessionId)) : nullptr;
    if (line != nullptr) row["line"] = lineText(*line);
}

}  // namespace

Json mismatchesOf(const LiveProcess& process, const LivePlan* plan) {
    Json rows = Json::array();
    for (const wire::LiveMismatchRecord& each : process.mismatches) {
        Json row{{"op", each.op},   {"name", each.name},   {"layer", nullptr},
                 {"line", nullptr}, {"bytes", each.bytes}, {"kind", kindName(each.kind)}};
        if (!each.layer.empty()) row["layer"] = each.layer;
        if (!each.line.empty()) row["line"] = each.line;
        if (plan != nullptr) addPlace(row, *plan, each.program, each.op);
        rows.push_back(std::move(row));
    }
    return rows;
}

std::optional<Error> mismatchError(const Json& rows) {
    if (rows.empty()) return std::nullopt;
    const Json& first = rows.front();
    std::string where;
    if (!first["layer"].is_null()) where += " in layer " + first["layer"].get<std::string>();
    if (!first["line"].is_null()) where += ", " + first["line"].get<std::string>();
    return Error{ErrorCode::Verification,
                 "op " + first["op"].dump() + " of the step (" + first["name"].get<std::string>() +
                     ")" + where + ": " + humanBytes(Bytes(first["bytes"].get<std::int64_t>())) +
                     " that were dropped came back with other bytes, so the program was ended; "
                     "likely kind: " +
                     first["kind"].get<std::string>(),
                 "start the program again: what this op makes is kept from now on"};
}

}  // namespace hw::live
