// SPDX-License-Identifier: MIT
#include "core/family/load_family.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>

#include "core/base/json_integer.h"
#include "core/family/align.h"

namespace hw::core {
namespace {

constexpr std::size_t kMostSteps = 24;  // of a session that are looked at, from its last one on

/// Of a session's tensors by id, empty where they were not recorded.
using Forms = std::unordered_map<std::int64_t, TensorForm>;

std::vector<std::int64_t> numbersOf(const std::string& text) {
    const auto numbers = nlohmann::json::parse(text, nullptr, false);
    std::vector<std::int64_t> made;
    if (!numbers.is_array()) return made;
    for (const auto& number : numbers) made.push_back(integerOf<std::int64_t>(number));
    return made;
}

Result<Forms> formsOf(const Session& session) {
    const auto tensors = session.tensors();
    if (!tensors) return tensors.error();
    Forms forms;
    for (const TensorRow& tensor : *tensors) try {
            forms[tensor.id] = {numbersOf(tensor.sizes), numbersOf(tensor.strides), tensor.offset};
        } catch (const std::invalid_argument& wrong) {
            return badInput("session '" + session.path() + "': the shape of tensor " +
                                std::to_string(tensor.id) + ": " + wrong.what(),
                            "the file may be damaged; record or import it again");
        }
    return forms;
}

Result<FamilyRecord> recordOf(const Session& session, std::int64_t step, CostSet costs,
                              const Forms& forms) {
    auto graph = loadGraph(session, step, costs);
    if (!graph) return graph.error();
    FamilyRecord record{session.path(), std::move(*graph), {}};
    for (const Tensor& tensor : record.graph.tensors) {
        const auto known = forms.find(tensor.sessionId);
        record.forms.push_back(known == forms.end() ? TensorForm() : known->second);
    }
    return record;
}

bool sameBytes(const TrainingGraph& a, const TrainingGraph& b, const Alignment& aligned) {
    for (std::size_t s = 0; s < a.storages.size(); ++s)
        if (a.storages[s].bytes != b.storages[aligned.storages[s]].bytes) return false;
    return true;
}

/// Measured where every session has been profiled: figures of two kinds make no line.
Result<CostSet> costsOf(const std::vector<Session>& sessions, std::optional<std::int64_t> step) {
    CostSet costs = CostSet::Measured;
    if (step && !sessions.front().hasMeasuredCosts(*step)) costs = CostSet::Captured;
    for (const Session& session : sessions) {
        const auto last = session.lastStep();
        if (!last) return last.error();
        if (!session.hasMeasuredCosts(*last)) costs = CostSet::Captured;
    }
    return costs;
}

/// A session's steps from the last one back; the wanted one first.
Result<std::vector<std::int64_t>> stepsOf(const Session& session,
                                          std::optional<std::int64_t> wanted) {
    const auto rows = session.steps();
    if (!rows) return rows.error();
    std::vector<std::int64_t> steps;
    for (auto row = rows->rbegin(); row != rows->rend(); ++row) steps.push_back(row->id);
    if (wanted)
        std::stable_partition(steps.begin(), steps.end(),
                              [&](std::int64_t step) { return step == *wanted; });
    return steps;
}

/// Adds what `session` gives: its steps that are as the first one of the first session's `steps`.
Status addRecords(const Session& session, const std::vector<std::int64_t>& steps, CostSet costs,
                  bool anySize, std::vector<FamilyRecord>& records) {
    const auto forms = formsOf(session);
    if (!forms) return forms.error();
    std::optional<Error> why;
    std::optional<std::size_t> chosen;
    std::size_t looked = 0;
    for (auto step = steps.begin(); step != steps.end() && looked < kMostSteps; ++step, ++looked) {
        if (costs == CostSet::Measured && !session.hasMeasuredCosts(*step)) continue;
        auto record = recordOf(session, *step, costs, *forms);
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

Result<Family> loadFamily(const std::vector<Session>& sessions, std::optional<int> vary,
                          std::optional<std::int64_t> step) {
    const auto costs = costsOf(sessions, step);
    if (!costs) return costs.error();
    std::vector<FamilyRecord> records;
    for (const Session& session : sessions) {
        const auto steps = stepsOf(session, step);
        if (!steps) return steps.error();
        HW_TRY(addRecords(session, *steps, *costs, sessions.size() == 1, records));
    }
    return Family::make(std::move(records), vary);
}

Result<std::vector<StepKind>> loadKinds(const std::vector<Session>& sessions,
                                        std::optional<int> vary) {
    const Session& first = sessions.front();
    const auto steps = first.steps();
    if (!steps) return steps.error();
    std::set<std::string> recorded, atSize;  // fingerprints; of one program, those at one size
    std::vector<StepKind> kinds;
    std::int64_t size = 0;
    for (auto step = steps->rbegin(); step != steps->rend(); ++step) {
        if (step->process != steps->back().process) continue;
        const auto graph = loadGraph(first, step->id);
        if (!graph) return graph.error();
        if (!recorded.insert(graph->fingerprint()).second) continue;
        auto family = loadFamily(sessions, vary, step->id);
        if (family) {
            if (size == 0) size = family->sizes().front();
            if (!atSize.insert(family->graphAt(size).fingerprint()).second) continue;
        }
        kinds.push_back({*step, std::move(family)});
    }
    std::reverse(kinds.begin(), kinds.end());
    return kinds;
}

Result<StepFamilies> loadFamilies(const std::vector<Session>& sessions, std::optional<int> vary) {
    auto kinds = loadKinds(sessions, vary);
    if (!kinds) return kinds.error();
    if (kinds->empty()) return loadFamily(sessions, vary).error();
    if (!kinds->back().family) return kinds->back().family.error();
    StepFamilies families{std::move(*kinds->back().family), {}};
    kinds->pop_back();
    for (StepKind& kind : *kinds)
        if (kind.family) families.others.push_back(std::move(*kind.family));
    return families;
}

}  // namespace hw::core
