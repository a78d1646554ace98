// SPDX-License-Identifier: MIT
#include "executor/replay/interpreter.h"

#include <algorithm>

#include "executor/replay/interpreter_state.h"
#include "executor/replay/kernels.h"

namespace hw::executor {

Error Interpreter::State::disagreement(OpIndex index, const std::string& what) const {
    const auto isConstant = [](const core::Storage& storage) { return storage.isConstant(); };
    const auto constants = static_cast<std::size_t>(
        std::count_if(graph.storages.begin(), graph.storages.end(), isConstant));
    if (step.contents.size() < constants)  // sizes and branches may hang on what stands in for them
        return core::badInput(labels[index] + " cannot be replayed: it " + what,
                              "the session lacks the values of some inputs, on which this may "
                              "depend: record it with --contents");
    return {ErrorCode::BadInput, labels[index] + " " + what,
            "the session was recorded with torch " + step.frameworkVersion +
                ", this executor uses libtorch " + torch::libtorchVersion()};
}

Status Interpreter::State::prepare() {
    torch::installAllocator(tracker);
    notes = torch::applyEnvironment(step.environment);
    generators[0] = torch::makeGenerator(/*isDefault=*/true);
    for (const core::Generator& recorded : step.generators)
        if (recorded.id != 0) generators[recorded.id] = torch::makeGenerator(/*isDefault=*/false);
    for (OpIndex i = 0; i < static_cast<OpIndex>(graph.ops.size()); ++i) {
        auto op = makeCallable(step, i, generators);
        if (!op) return op.error();
        if (Status ok = applyChosen(step, i, *op); !ok) return ok;
        ops.push_back(std::move(*op));
        labels.push_back("op " + std::to_string(i) + " (" + graph.ops[i].name + ")");
    }
    for (auto& [id, generator] : generators) firstStates[id] = torch::stateOf(generator);
    for (const core::Generator& recorded : step.generators)
        if (recorded.device.starts_with("cuda") == torch::device().is_cuda())
            firstStates[recorded.id] = recorded.state;
        else
            notes.push_back("generator " + std::to_string(recorded.id) + " was recorded on " +
                            recorded.device + ": it starts from the default seed here");
    constants = core::capturedOrder(graph).constants;
    return {};
}

Status Interpreter::State::reset(const core::Schedule& schedule) {
    result = {};
    tensors.assign(graph.tensors.size(), {});
    storages.assign(graph.storages.size(), {});
    runAgain.assign(graph.ops.size(), false);
    for (const Action& action : schedule)
        if (action.recomputes()) runAgain[action.target] = true;
    savedGenerators.assign(graph.ops.size(), {});
    std::size_t g = 0;
    for (auto& [id, generator] : generators) {
        const bool given = options.from && g < options.from->generators.size();
        const auto& state = given ? options.from->generators[g] : firstStates[id];
        if (Status ok = torch::setState(generator, state); !ok) return ok;
        ++g;
    }
    constantsPlaced = 0;
    fixedDone = 0;
    constantsTime = {};
    result.times.resize(graph.ops.size());
    result.again.resize(graph.ops.size());
    if (options.profile) {
        result.signatures.resize(graph.ops.size());
        result.workspaces.resize(graph.ops.size());
    }
    tracker.setChecking(options.observer != nullptr);
    if (Status ok = tracker.setArena(options.arena ? options.arena->bytes : Bytes(0)); !ok)
        return ok;
    tracker.resetFigures();
    return {};
}

Status Interpreter::State::perform(std::size_t at, const Action& action) {
    switch (action.kind) {
        case ActionKind::Free:
            free(action.target);
            return {};
        case ActionKind::Encode:
            return encode(at, action);
        case ActionKind::Decode:
            return decode(at, action);
        case ActionKind::Offload:
            offload(action.target);
            return {};
        case ActionKind::Prefetch:
            return prefetch(at, action.target);
        case ActionKind::Compute:
        case ActionKind::Recompute:
            break;
    }
    if (Status ok = runOp(at, action); !ok) return ok;
    if (action.kind == ActionKind::Compute && !graph.ops[action.target].viewOnly) {
        ++fixedDone;
        return placeConstants();
    }
    return {};
}

void Interpreter::State::drop() {
    stack.clear();
    outputs.clear();
    tensors.clear();
    encoded.clear();
    hostCopies.clear();
    storages.clear();
}

core::Result<RunResult> Interpreter::State::run(
    const core::Schedule& schedule, const RunOptions& wanted,
    const std::function<void(const FinalState&)>& atEnd) {
    options = wanted;
    if (Status ok = reset(schedule); !ok) return ok.error();
    Status ok = placeConstants();
    constantsTime = {};
    const auto begin = Clock::now();
    for (std::size_t i = 0; ok && i < schedule.size(); ++i) ok = perform(i, schedule[i]);
    torch::synchronize();
    result.time = since(begin) - constantsTime;
    result.peak = tracker.peak();
    result.arenaTop = tracker.arenaTop();
    result.fallbacks = tracker.fallbacks();
    if (torch::HostView host; ok && atEnd) atEnd(finalState(host));
    drop();
    result.left = tracker.live();
    if (!ok) return ok.error();
    return std::move(result);
}

Interpreter::Interpreter(std::unique_ptr<State> state) : state_(std::move(state)) {}
Interpreter::Interpreter(Interpreter&&) noexcept = default;
Interpreter::~Interpreter() = default;

core::Result<Interpreter> Interpreter::create(const Step& step, MemoryTracker& tracker) {
    try {
        if (const Status loaded = torch::loadLibraries(step.libraries); !loaded)
            return loaded.error();
        auto state = std::make_unique<State>(step, tracker);
        if (const Status ok = state->prepare(); !ok) return ok.error();
        return Interpreter(std::move(state));
    } catch (const std::exception& error) {
        return Error{ErrorCode::Internal, std::string("libtorch refused: ") + error.what(), ""};
    }
}

core::Result<RunResult> Interpreter::run(const core::Schedule& schedule, const RunOptions& options,
                                         const std::function<void(const FinalState&)>& atEnd) {
    try {
        return state_->run(schedule, options, atEnd);
    } catch (const std::exception& error) {
        state_->drop();
        return Error{ErrorCode::Internal, std::string("libtorch refused: ") + error.what(), ""};
    }
}

const std::vector<std::string>& Interpreter::notes() const {
    return state_->notes;
}

}  // namespace hw::executor
