// SPDX-License-Identifier: MIT
#include "live/compile/program_writer.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "live/compile/placement.h"
#include "live/wire/live_program.h"
#include "profiler/wire/element_types.h"

namespace hw::live {

namespace wire = profiler::wire;
namespace {

using namespace core;
using wire::LiveAction;

/// c10::ScalarType of a type's name; -1: there is none of that name.
int scalarType(const std::string& name) {
    const auto* const found =
        std::find(std::begin(wire::kElementTypes), std::end(wire::kElementTypes), name);
    return found == std::end(wire::kElementTypes)
               ? -1
               : static_cast<int>(found - std::begin(wire::kElementTypes));
}

std::optional<std::uint64_t> formOf(const TensorRow& row) {
    const auto sizes = nlohmann::json::parse(row.sizes, nullptr, false);
    const auto strides = nlohmann::json::parse(row.strides, nullptr, false);
    const int type = scalarType(row.dtype);
    if (!sizes.is_array() || !strides.is_array() || type < 0) return std::nullopt;
    wire::LiveForm form(static_cast<std::uint64_t>(type), sizes.size());
    for (const auto& numbers : {sizes, strides})
        for (const auto& number : numbers) {
            if (!number.is_number_integer()) return std::nullopt;
            form.mix(number.get<std::int64_t>());
        }
    return form.value();
}

class Writer {
public:
    template <class Number>
    Writer& put(Number number) {
        bytes_.append(reinterpret_cast<const char*>(&number), sizeof(number));
        return *this;
    }
    Writer& count(std::size_t number) { return put(static_cast<std::uint32_t>(number)); }
    Writer& text(const std::string& value) {
        count(value.size());
        bytes_ += value;
        return *this;
    }
    std::string take() { return std::move(bytes_); }

private:
    std::string bytes_;
};

Error beyond(const PlacedAction& placed) {
    return badInput(std::string("the plan asks to ") + traitsOf(placed.kind).name + " storage " +
                        std::to_string(placed.target) + ", which is not done here",
                    "plan again with other --options, or with another planner");
}

/// Whether all that is to be done is among `can`.
Status requireActions(const Placement& placement, wire::LiveActions can) {
    for (std::size_t op = 0; op < placement.before.size(); ++op)
        for (const auto* const list : {&placement.before[op], &placement.after[op]})
            for (const PlacedAction& placed : *list)
                if (!placed.cancelled && !can.has(placed.kind)) return beyond(placed);
    return {};
}

class ProgramWriter {
public:
    ProgramWriter(const TrainingGraph& graph, const Placement& placement)
        : graph_(graph), placement_(placement) {}

    std::string write(const std::vector<TensorRow>& tensors) {
        std::unordered_map<std::int64_t, const TensorRow*> rows;
        for (const TensorRow& row : tensors) rows[row.id] = &row;
        std::vector<std::uint64_t> forms(graph_.tensors.size(), 0);
        for (std::size_t t = 0; t < forms.size(); ++t) {
            const auto row = rows.find(graph_.tensors[t].sessionId);
            const auto form = row == rows.end() ? std::nullopt : formOf(*row->second);
            if (form) forms[t] = *form;
        }
        for (const Storage& storage : graph_.storages) {
            const auto row = rows.find(graph_.tensors[storage.tensors.front()].sessionId);
            types_.push_back(row == rows.end() ? -1 : scalarType(row->second->dtype));
        }
        Writer out;
        out.put(wire::kLiveMagic).put(wire::kLiveVersion);
        out.count(graph_.storages.size()).count(graph_.ops.size());
        for (StorageIndex s = 0; s < static_cast<StorageIndex>(graph_.storages.size()); ++s) {
            const Storage& storage = graph_.storages[s];
            out.put(storage.bytes.count())
                .put(static_cast<std::uint8_t>((storage.isConstant() ? wire::kLiveConstant : 0) |
                                               (placement_.followed[s] ? wire::kLiveFollowed : 0) |
                                               (storage.aliveAtEnd ? wire::kLiveLasting : 0) |
                                               (isGathered(storage) ? wire::kLiveGathered : 0)));
        }
        for (OpIndex i = 0; i < static_cast<OpIndex>(graph_.ops.size()); ++i)
            writeOp(out, i, forms);
        return out.take();
    }

private:
    void writeActions(Writer& out, const std::vector<PlacedAction>& actions) const {
        out.count(static_cast<std::size_t>(std::count_if(
            actions.begin(), actions.end(), [](const PlacedAction& a) { return !a.cancelled; })));
        for (const PlacedAction& action : actions) {
            if (action.cancelled) continue;
            out.put(static_cast<std::uint8_t>(action.kind)).count(action.target);
            if (action.kind == LiveAction::Encode)
                out.put(static_cast<std::uint8_t>(action.codec))
                    .put(static_cast<std::uint8_t>(types_[action.target]))
                    .put(action.bytes.count());
            if (action.kind != LiveAction::Recompute) continue;
            out.count(action.outputs.size());
            for (const std::int32_t output : action.outputs) out.count(output);
        }
    }

    void writeOp(Writer& out, OpIndex i, const std::vector<std::uint64_t>& forms) const {
        const Op& op = graph_.ops[i];
        const std::size_t dot = op.name.find('.');
        out.text(op.name.substr(0, dot));
        out.text(dot == std::string::npos ? "" : op.name.substr(dot + 1));
        out.put(static_cast<std::uint8_t>((placement_.keep[i] ? wire::kLiveKeep : 0) |
                                          (op.random ? wire::kLiveRandom : 0)));
        out.count(op.inputs.size());
        for (const Use& use : op.inputs)
            out.count(graph_.storageOf(use.tensor)).put(forms[use.tensor]);
        out.count(op.outputs.size());
        for (const OpOutput& output : op.outputs)
            out.count(graph_.storageOf(output.tensor))
                .put(forms[output.tensor])
                .put(static_cast<std::uint8_t>(output.makesStorage));
        out.count(op.writes.size());
        for (const Write& write : op.writes) out.count(write.storage);
        out.count(placement_.gone[i].size());
        for (const StorageIndex s : placement_.gone[i]) out.count(s);
        writeActions(out, placement_.before[i]);
        writeActions(out, placement_.after[i]);
    }

    const TrainingGraph& graph_;
    const Placement& placement_;
    std::vector<int> types_;  // c10::ScalarType of each storage's elements
};

}  // namespace

Result<LiveProgram> liveProgram(const TrainingGraph& graph, const Plan& plan,
                                const std::vector<TensorRow>& tensors, wire::LiveActions can) {
    if (!plan.implementations.empty()) {
        const auto& [op, name] = *plan.implementations.begin();
        return badInput("the plan runs " + graph.ops[op].name + " (op " + std::to_string(op) +
                            ") as '" + name + "', which a running program cannot be given",
                        "plan again without --menu");
    }
    auto draft = placeActions(graph, plan);
    if (!draft) return draft.error();
    const Placement placement = keepRestorable(graph, std::move(*draft));
    if (Status able = requireActions(placement, can); !able) return able.error();
    LiveProgram program;
    program.bytes = ProgramWriter(graph, placement).write(tensors);
    program.recomputes = placement.recomputes;
    program.drops = placement.drops;
    program.kept = placement.kept;
    return program;
}

}  // namespace hw::live
