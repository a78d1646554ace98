// SPDX-License-Identifier: MIT
#include "core/session/signatures.h"

#include <algorithm>
#include <unordered_map>

namespace hw::core {

Result<Signatures> loadSignatures(const Session& session, const TrainingGraph& graph) {
    if (graph.costs != CostSet::Measured) return Signatures{};
    const auto rows = session.signatures(graph.sessionStep);
    if (!rows) return rows.error();
    if (rows->empty()) return Signatures{};
    std::unordered_map<std::int64_t, std::size_t> opOf;
    for (std::size_t i = 0; i < graph.ops.size(); ++i) opOf[graph.ops[i].sessionId] = i;
    Signatures signatures(graph.ops.size());
    for (const SignatureRow& row : *rows) {
        const auto at = opOf.find(row.op);
        if (at == opOf.end()) continue;
        OpSignature& signature = signatures[at->second];
        const auto outputs = static_cast<int>(graph.ops[at->second].outputs.size());
        if (row.bytes < Bytes(0) || row.beginEvent < 0 ||
            row.endEvent.value_or(row.beginEvent) < row.beginEvent ||
            (row.output && (*row.output < 0 || *row.output >= outputs)))
            return badInput("session '" + session.path() + "' has a broken signature of op " +
                                std::to_string(at->second) + " (" + graph.ops[at->second].name +
                                ")",
                            "run it again with 'highwater run'");
        signature.allocations.push_back(
            {row.bytes, row.output, row.beginEvent, row.endEvent, nullptr});
        signature.events = std::max(signature.events, row.endEvent.value_or(row.beginEvent) + 1);
    }
    return signatures;
}

}  // namespace hw::core
