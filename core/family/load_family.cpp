// SPDX-License-Identifier: MIT
#include "core/family/load_family.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "core/base/json_integer.h"
#include "core/family/align.h"

namespace hw::core {
namespace {

constexpr std::size_t kMostSteps = 24;  // of a session that are looked at, from its last one on

/// Shapes of a session's tensors by id, empty where they were not recorded.
using Shapes = std::unordered_map<std::int64_t, std::vector<std::int64_t>>;

Result<Shapes> shapesOf(const Session& session) {
    const auto tensors = session.tensors();
    if (!tensors) return tensors.error();
    Shapes shapes;
    for (const TensorRow& tensor : *tensors) {
        const auto sizes = nlohmann::json::parse(tensor.sizes, nullptr, false);
        if (!sizes.is_array()) continue;
        try {
            std::vector<std::int64_t> shape;
            for (const auto& size : sizes) shape.push_back(integerOf<std::int64_t>(size));
            shapes.emplace(tensor.id, std::move(shape));
        } catch (const std::invalid_argument& wrong) {
            return badInput("session '" + session.path() + "': the shape of tensor " +
                                std::to_string(tensor.id) + ": " + wrong.what(),
                            "the file may be damaged; record or import it again");
        }
    }
    return shapes;
}

Result<FamilyRecord> recordOf(const Session& session, std::int64_t step, CostSet costs,
                              const Shapes& shapes) {
    auto graph = loadGraph(session, step, costs);
    if (!graph) return graph.error();
    FamilyRecord record{session.path(), std::move(*graph), {}};
    for (const Tensor& tensor : record.graph.tensors) {
        const auto known = shapes.find(tensor.sessionId);
        record.shapes.push_back(known == shapes.end() ? std::vector<std::int64_t>{}
                                                      : known->second);
    }
    return record;
}

bool sameBytes(const TrainingGraph& a, const TrainingGraph& b, const Alignment& aligned) {
    for (std::size_t s = 0; s < a.storages.size(); ++s)
        if (a.storages[s].bytes != b.storages[aligned.storages[s]].bytes) return false;
    return true;
}

/// Measured where every session has been profiled: figures of two kinds make no line.
Result<CostSet> costsOf(const std::vector<Session>& sessions) {
    CostSet costs = CostSet::Measured;
    for (const Session& session : sessions) {
        const auto last = session.lastStep();
        if (!last) return last.error();
        if (!session.hasMeasuredCosts(*last)) costs = CostSet::Captured;
    }
    return costs;
}

/// Adds what `session` gives. The first one's last step is what others are held against.
Status addRecords(const Session& session, CostSet costs, bool anySize,
                  std::vector<FamilyRecord>& records) {
    const auto steps = session.steps();
    if (!steps) return steps.error();
    const auto shapes = shapesOf(session);
    if (!shapes) return shapes.error();
    std::optional<Error> why;
    std::optional<std::size_t> chosen;
    std::size_t looked = 0;
    for (auto step = steps->rbegin(); step != steps->rend() && looked < kMostSteps;
         ++step, ++looked) {
        if (costs == CostSet::Measured && !session.hasMeasuredCosts(step->id)) continue;
        auto record = recordOf(session, step->id, costs, *shapes);
        if (!record) return record.error();
        const FamilyRecord& to = records.empty() ? *record : records[chosen.value_or(0)];
        const auto aligned = align({to.graph, to.name}, {record->graph, record->name});
        if (!aligned) {
            if (!why) why = aligned.error();
            continue;
        }
        if (chosen && !anySize && !sameBytes(to.graph, record->graph, *aligned)) continue;
        if (!chosen) chosen = records.size();
        records.push_back(std::move(*record));
    }
    if (!chosen) return *why;
    return {};
}

}  // namespace

Result<Family> loadFamily(const std::vector<Session>& sessions, std::optional<int> vary) {
    const auto costs = costsOf(sessions);
    if (!costs) return costs.error();
    std::vector<FamilyRecord> records;
    for (const Session& session : sessions)
        HW_TRY(addRecords(session, *costs, sessions.size() == 1, records));
    return Family::make(std::move(records), vary);
}

}  // namespace hw::core
