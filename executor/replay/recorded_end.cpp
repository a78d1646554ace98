// SPDX-License-Identifier: MIT
#include "executor/replay/recorded_end.h"

#include <algorithm>

namespace hw::executor {
namespace {

using core::StorageIndex;

// Nothing may lie between the steps that could have changed what the first one left.
core::Result<std::optional<std::int64_t>> stepBehind(const core::Session& session,
                                                     std::int64_t id) {
    const auto steps = session.steps();
    if (!steps) return steps.error();
    const auto found = [&](const auto& wanted) {
        return std::find_if(steps->begin(), steps->end(), wanted);
    };
    const auto now = found([&](const core::StepRow& row) { return row.id == id; });
    if (now == steps->end()) return std::optional<std::int64_t>();
    const auto next = found([&](const core::StepRow& row) {
        return row.process == now->process && row.firstSeq == now->endSeq;
    });
    return next == steps->end() ? std::optional<std::int64_t>() : next->id;
}

}  // namespace

core::Result<RecordedEnd> loadRecordedEnd(const core::Session& session, const Step& step) {
    RecordedEnd end;
    const auto next = stepBehind(session, step.id);
    if (!next) return next.error();
    if (!*next) return end;
    for (StorageIndex s = 0; s < static_cast<StorageIndex>(step.graph.storages.size()); ++s) {
        const core::Storage& storage = step.graph.storages[s];
        if (!storage.aliveAtEnd) continue;
        auto bytes = session.contents(**next, storage.sessionId);
        if (!bytes) return bytes.error();
        if (!bytes->empty()) end[s] = std::move(*bytes);
    }
    return end;
}

Agreement compareWithRecorded(const RecordedEnd& recorded, const Step& step,
                              const FinalState& state) {
    const core::TrainingGraph& graph = step.graph;
    Agreement agreement;
    for (std::size_t i = 0; i < state.tensors.size(); ++i) {
        const core::TensorIndex t = graph.finalTensors[i];
        const StorageIndex s = graph.storageOf(t);
        const auto there = recorded.find(s);
        const TensorShape& shape = step.shapes[t];
        if (there == recorded.end() || !state.tensors[i].data || shape.dtype.empty()) continue;
        ++agreement.compared;
        if (static_cast<std::int64_t>(there->second.size()) == graph.storages[s].bytes.count()) {
            TensorBytes then = state.tensors[i];  // the same elements, of the other bytes
            then.data =
                there->second.data() + shape.offset * static_cast<std::int64_t>(then.elementBytes);
            if (checksum(then) == checksum(state.tensors[i])) continue;
        }
        if (++agreement.different > 1) continue;
        const core::Storage& storage = graph.storages[s];
        agreement.first = core::categoryName(storage.category);
        if (storage.layer != core::kNone)
            agreement.first += " of " + graph.layers[storage.layer].path;
        agreement.first += " (tensor " + std::to_string(t) + ")";
    }
    return agreement;
}

}  // namespace hw::executor
