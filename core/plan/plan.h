// SPDX-License-Identifier: MIT
// A schedule is a list of actions; a plan is a schedule with where it came from and what it
// promises.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "core/base/units.h"
#include "core/graph/training_graph.h"
#include "core/plan/menu.h"

namespace hw::core {

enum class ActionKind : std::uint8_t {
    Compute,
    Recompute,
    Free,
    Encode,
    Decode,
    Offload,
    Prefetch
};

/// How a picture colours a storage that is in memory.
enum class ColourRole : std::uint8_t { Kept, Rematerialized, StandIn, Away };

/// What holds of every action of a kind. How one changes memory is in core/memory/replay.h.
struct ActionTraits {
    char code;           // in a plan file
    bool runsOp;         // its target is an op, otherwise a storage
    bool takesTime;      // a free takes none, nor does what only begins a copy
    const char* leaves;  // how a storage is in memory from then on, in words; null: as it was, or
                         // not at all
    ColourRole colour;   // of such a storage
    bool standsIn;       // it leaves something else than the storage's own bytes
    bool restores;       // it brings back bytes that something has stood in for
    int since;           // the first version of the plan file that knows it
};
inline constexpr ActionTraits kActions[] = {
    {'c', true, true, "kept since first computed", ColourRole::Kept, false, false, 1},
    {'r', true, true, "rematerialized", ColourRole::Rematerialized, false, false, 1},
    {'f', false, false, nullptr, ColourRole::Kept, false, false, 1},
    {'e', false, true, "encoded", ColourRole::StandIn, true, false, 1},
    {'d', false, true, nullptr, ColourRole::Kept, false, true, 1},
    {'o', false, false, "in host memory", ColourRole::Away, true, false, 2},
    {'p', false, false, nullptr, ColourRole::Kept, false, true, 2}};
constexpr const ActionTraits& traitsOf(ActionKind kind) {
    return kActions[static_cast<std::size_t>(kind)];
}

/// How an Encode leaves a storage.
struct Encoding {
    std::string codec;
    Bytes bytes;
};

struct Action {
    ActionKind kind = ActionKind::Compute;
    std::int32_t target = kNone;               // op for (re)compute, storage otherwise
    ShortList<std::int32_t> outputs;           // Recompute: indices of the results to keep
    std::shared_ptr<const Encoding> encoding;  // Encode; apart, as there are few

    static Action compute(OpIndex op) { return {ActionKind::Compute, op, {}, {}}; }
    static Action recompute(OpIndex op, ShortList<std::int32_t> outputs) {
        return {ActionKind::Recompute, op, std::move(outputs), {}};
    }
    static Action free(StorageIndex storage) { return {ActionKind::Free, storage, {}, {}}; }
    static Action encode(StorageIndex storage, std::string codec, Bytes bytes) {
        return {ActionKind::Encode,
                storage,
                {},
                std::make_shared<const Encoding>(Encoding{std::move(codec), bytes})};
    }
    static Action decode(StorageIndex storage) { return {ActionKind::Decode, storage, {}, {}}; }
    static Action offload(StorageIndex storage) { return {ActionKind::Offload, storage, {}, {}}; }
    static Action prefetch(StorageIndex storage) { return {ActionKind::Prefetch, storage, {}, {}}; }

    bool runsOp() const { return traitsOf(kind).runsOp; }
    bool takesTime() const { return traitsOf(kind).takesTime; }
    bool recomputes() const { return kind == ActionKind::Recompute; }
    /// Of an action that runs an op: whether it asks for result `output`.
    bool wants(std::size_t output) const {
        return !recomputes() || std::find(outputs.begin(), outputs.end(),
                                          static_cast<std::int32_t>(output)) != outputs.end();
    }
};

using Schedule = std::vector<Action>;

/// Where every allocation of the schedule lies in one arena (bytes from its start).
struct AddressLayout {
    Bytes arena;
    std::map<StorageIndex, Bytes> constants;
    std::vector<std::vector<Bytes>> offsets;  // [action][k-th allocation of its op]
};

/// The planner of plans that leave the recorded order as it is.
inline constexpr const char* kBaselinePlanner = "none";

struct Plan {
    std::string fingerprint;
    std::int64_t ops = 0;
    std::int64_t storages = 0;
    std::string planner;
    std::map<std::string, std::string> options;
    std::uint64_t seed = 0;
    Bytes budget;
    Bytes predictedPeak;
    Nanoseconds predictedTime;
    double overhead = 1.0;  // predicted time / baseline time
    std::optional<Nanoseconds> lowerBound;
    Schedule schedule;
    ImplementationChoice implementations;
    Menu chosen;  // what `implementations` names; in the file it is the text of the option `menu`
    CostSet costs = CostSet::Captured;
    std::optional<Link> link;         // that predictedTime is of; none: nothing is offloaded
    std::optional<Bytes> hostMemory;  // the budget of copies there, where one was given
    std::optional<AddressLayout> layout;
};

/// A plan of `graph` that says nothing yet: its fingerprint, its sizes and its costs.
Plan emptyPlan(const TrainingGraph& graph);

/// The plan's options as its file holds them.
std::map<std::string, std::string> fileOptions(const Plan& plan);

/// The plan as the text of a `*.plan.json` file (format highwater-plan, of the lowest version that
/// knows its actions), one action a line.
std::string writePlan(const Plan& plan);
/// Parses such a text. Errors: BadInput with the place that is wrong.
Result<Plan> parsePlan(const std::string& text);
/// Reads a plan file. Errors: BadInput when it is missing or malformed.
Result<Plan> readPlanFile(const std::string& path);
/// Writes atomically (a temporary file beside it, then a rename).
Status writePlanFile(const Plan& plan, const std::string& path);
/// BadInput when the plan was made for another graph.
Status requireSameGraph(const Plan& plan, const TrainingGraph& graph);

}  // namespace hw::core
