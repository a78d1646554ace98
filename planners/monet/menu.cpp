// SPDX-License-Identifier: MIT
#include "planners/monet/menu.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace hw::planners {
namespace {

using namespace hw::core;

constexpr std::array<std::pair<std::string_view, ImplementationKind>, 4> kParts{
    {{"algorithms", ImplementationKind::Algorithm},
     {"output-activated", ImplementationKind::OutputActivated},
     {"intermediate", ImplementationKind::IntermediateActivated},
     {"in-place", ImplementationKind::InPlace}}};

// Ops whose figures an implementation of another kind than Algorithm sets.
std::set<OpIndex> figuredElsewhere(const Menu& menu, const ImplementationChoice& choice) {
    std::set<OpIndex> ops;
    for (const Implementation& one : onlyChosen(menu, choice).implementations) {
        if (one.kind == ImplementationKind::Algorithm) continue;
        ops.insert(one.op);  // has one choice only
        if (one.backwardTime || one.backwardWorkspace) ops.insert(one.backward);
    }
    return ops;
}

// For each op that is free to choose: the captured algorithm and those of the menu, through `pick`,
// which compares two.
template <class Better>
ImplementationChoice chooseEach(const TrainingGraph& captured, const Menu& menu,
                                ImplementationChoice choice, Better better) {
    const std::set<OpIndex> taken = figuredElsewhere(menu, choice);
    std::map<OpIndex, const Implementation*> best;
    for (const Implementation& one : menu.implementations) {
        if (one.kind != ImplementationKind::Algorithm || taken.contains(one.op)) continue;
        const Implementation*& present = best.try_emplace(one.op, nullptr).first->second;
        const Op& op = captured.ops[one.op];
        const Nanoseconds time = present == nullptr ? op.time : *present->time;
        const Bytes workspace = present == nullptr ? op.workspace : *present->workspace;
        if (better(one.op, *one.time, *one.workspace, time, workspace)) present = &one;
    }
    for (const auto& [op, one] : best) {
        choice.erase(op);
        if (one != nullptr) choice[op] = one->name;
    }
    return choice;
}

TrainingGraph bestGraph(TrainingGraph graph, const Menu& menu) {
    for (const Implementation& one : menu.implementations) {
        const auto lower = [&](OpIndex op, const auto& time, const auto& workspace) {
            Op& at = graph.ops[op];
            if (time) at.time = std::min(at.time, *time);
            if (workspace) at.workspace = std::min(at.workspace, *workspace);
        };
        lower(one.op, one.time, one.workspace);
        if (one.backward == kNone) continue;
        lower(one.backward, one.backwardTime, one.backwardWorkspace);
        auto& inputs = graph.ops[one.backward].inputs;
        inputs.erase(std::remove_if(inputs.begin(), inputs.end(),
                                    [&](const Use& use) {
                                        return graph.storageOf(use.tensor) == one.insteadOf;
                                    }),
                     inputs.end());
    }
    graph.finish();  // fewer reads contradict nothing
    return graph;
}

}  // namespace

Result<ImplementationKinds> parseKinds(std::string_view use) {
    ImplementationKinds kinds;
    if (use.empty())
        for (const auto& [name, kind] : kParts) kinds.insert(kind);
    if (use.empty() || use == "none") return kinds;
    for (std::size_t begin = 0; begin <= use.size();) {
        const std::size_t end = std::min(use.find(',', begin), use.size());
        const std::string_view word = use.substr(begin, end - begin);
        const auto part = std::find_if(kParts.begin(), kParts.end(),
                                       [&](const auto& known) { return known.first == word; });
        if (part == kParts.end())
            return Error{ErrorCode::Usage,
                         "there are no implementations '" + std::string(word) + "' to use",
                         "use none, or a list of algorithms, output-activated, intermediate, "
                         "in-place, separated by commas"};
        kinds.insert(part->second);
        begin = end + 1;
    }
    return kinds;
}

Menu onlyKinds(const Menu& menu, const ImplementationKinds& kinds) {
    Menu kept;
    for (const Implementation& one : menu.implementations)
        if (kinds.contains(one.kind)) kept.implementations.push_back(one);
    return kept;
}

BestCase::BestCase(const TrainingGraph& captured, const Menu& menu)
    : graph(bestGraph(captured, menu)), model(graph) {
    TrainingGraph lean = graph;
    std::set<std::pair<OpIndex, StorageIndex>> saved;
    for (const Implementation& one : menu.implementations) {
        if (one.kind != ImplementationKind::InPlace) continue;
        const StorageIndex made =
            captured.storageOf(captured.ops[one.op].outputs[one.output].tensor);
        if (!saved.emplace(one.op, made).second) continue;
        model.footprint[one.op] -= captured.storages[made].bytes;
        lean.ops[one.op].workspace -= captured.storages[made].bytes;
    }
    floor = lean.floorBytes();
}

ImplementationChoice fittingAlgorithms(const TrainingGraph& captured, const Menu& menu,
                                       const ImplementationChoice& choice,
                                       const TrainingGraph& judged, const Schedule& schedule,
                                       Bytes budget) {
    std::vector<MemoryPoint> curve;
    if (!evaluate(judged, schedule, curve).valid) return choice;
    std::vector<Bytes> room(captured.ops.size(), budget);  // for the op's workspace
    for (std::size_t i = 0; i < schedule.size(); ++i) {
        if (!schedule[i].runsOp()) continue;
        const OpIndex op = schedule[i].target;
        room[op] = std::min(room[op], budget - (curve[i].during - judged.ops[op].workspace));
    }
    return chooseEach(
        captured, menu, choice,
        [&](OpIndex op, Nanoseconds time, Bytes workspace, Nanoseconds otherTime,
            Bytes otherWorkspace) {
            const bool fits = workspace <= room[op];
            const bool otherFits = otherWorkspace <= room[op];
            if (fits != otherFits) return fits;
            return fits ? std::tie(time, workspace) < std::tie(otherTime, otherWorkspace)
                        : std::tie(workspace, time) < std::tie(otherWorkspace, otherTime);
        });
}

ImplementationChoice withAlgorithms(const TrainingGraph& captured, const Menu& menu,
                                    const ImplementationChoice& choice, Preference preference) {
    return chooseEach(
        captured, menu, choice,
        [&](OpIndex, Nanoseconds time, Bytes workspace, Nanoseconds otherTime,
            Bytes otherWorkspace) {
            return preference == Preference::Time
                       ? std::tie(time, workspace) < std::tie(otherTime, otherWorkspace)
                       : std::tie(workspace, time) < std::tie(otherWorkspace, otherTime);
        });
}

}  // namespace hw::planners
