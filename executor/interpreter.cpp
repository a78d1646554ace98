// SPDX-License-Identifier: MIT
#include "executor/interpreter.h"

#include <algorithm>
#include <chrono>

#include "executor/arguments.h"

namespace hw::executor {
namespace {

using core::Action;
using core::ActionKind;
using core::Bytes;
using core::Error;
using core::ErrorCode;
using core::kNone;
using core::Nanoseconds;
using core::OpIndex;
using core::Status;
using core::StorageIndex;
using core::TensorIndex;
using Clock = std::chrono::steady_clock;

Nanoseconds since(Clock::time_point begin) {
    return Nanoseconds(
        std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count());
}

std::span<const std::byte> bytesOf(const c10::Storage& storage) {
    return {static_cast<const std::byte*>(storage.data()), storage.nbytes()};
}

void collectTensors(const c10::IValue& value, std::vector<at::Tensor>& into) {
    if (value.isTensor()) {
        if (value.toTensor().defined()) into.push_back(value.toTensor());
    } else if (value.isTensorList()) {
        for (const at::Tensor& tensor : value.toTensorVector())
            if (tensor.defined()) into.push_back(tensor);
    } else if (value.isList()) {
        for (const c10::IValue& item : value.toListRef()) collectTensors(item, into);
    } else if (value.isTuple()) {
        for (const c10::IValue& item : value.toTupleRef().elements()) collectTensors(item, into);
    }
}

}  // namespace

struct Interpreter::State {
    State(const Step& s, MemoryTracker& t) : step(s), graph(s.graph), tracker(t) {}

    Status prepare();
    core::Result<RunResult> run(const core::Schedule& schedule, const RunOptions& options,
                                const std::function<void(const FinalState&)>& atEnd);

    Status reset(const core::Schedule& schedule);
    Status arrive();
    Status perform(std::size_t at, const Action& action);
    Status runOp(std::size_t at, const Action& action);
    Status callKernel(OpIndex index, bool again);
    Status adopt(OpIndex index, const Action& action);
    void observe(std::size_t at, OpIndex index, bool first);
    void profile(OpIndex index, const OpSignature& signature, Bytes risen, Nanoseconds time);
    StorageBytes inputsOf(OpIndex index) const;
    void free(StorageIndex s);
    FinalState finalState();
    void drop();
    Error disagreement(OpIndex index, const std::string& what) const;
    bool resident(StorageIndex s) const { return static_cast<bool>(storages[s]); }

    const Step& step;
    const core::TrainingGraph& graph;
    MemoryTracker& tracker;
    std::vector<std::string> notes;
    Generators generators;
    std::vector<CallableOp> ops;
    std::vector<Arrival> arrivals;
    std::vector<std::string> labels;                             // of ops, in messages
    std::map<std::int64_t, std::vector<std::byte>> firstStates;  // of generators

    // Of the current run.
    RunOptions options;
    RunResult result;
    std::vector<at::Tensor> tensors;     // defined ones
    std::vector<c10::Storage> storages;  // resident ones
    std::vector<bool> runAgain;  // ops that the schedule recomputes: their generators are kept
    std::vector<std::vector<std::vector<std::byte>>> savedGenerators;  // [op][generator]
    std::size_t arrived = 0;
    std::int32_t fixedDone = 0;
    Nanoseconds arrivalTime;
    c10::Stack stack;
    std::vector<at::Tensor> outputs;
};

Error Interpreter::State::disagreement(OpIndex index, const std::string& what) const {
    return {ErrorCode::Internal, labels[index] + " " + what,
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
        ops.push_back(std::move(*op));
        labels.push_back("op " + std::to_string(i) + " (" + graph.ops[i].name + ")");
    }
    for (auto& [id, generator] : generators) firstStates[id] = torch::stateOf(generator);
    for (const core::Generator& recorded : step.generators)
        firstStates[recorded.id] = recorded.state;
    arrivals = constantArrivals(graph);
    return {};
}

Status Interpreter::State::reset(const core::Schedule& schedule) {
    result = {};
    tensors.assign(graph.tensors.size(), {});
    storages.assign(graph.storages.size(), {});
    runAgain.assign(graph.ops.size(), false);
    for (const Action& action : schedule)
        if (action.kind == ActionKind::Recompute) runAgain[action.target] = true;
    savedGenerators.assign(graph.ops.size(), {});
    for (auto& [id, generator] : generators)
        if (Status ok = torch::setState(generator, firstStates[id]); !ok) return ok;
    arrived = 0;
    fixedDone = 0;
    arrivalTime = {};
    if (options.profile) {
        result.signatures.resize(graph.ops.size());
        result.workspaces.resize(graph.ops.size());
        result.times.resize(graph.ops.size());
    }
    tracker.setChecking(options.observer != nullptr);
    if (Status ok = tracker.setArena(options.arena ? options.arena->bytes : Bytes(0)); !ok)
        return ok;
    tracker.resetFigures();
    return {};
}

// Constants come into being where they did in the capture, with their first contents.
Status Interpreter::State::arrive() {
    const auto begin = Clock::now();
    static const std::vector<ArenaSlot> noSlots;
    for (; arrived < arrivals.size() && arrivals[arrived].fixedOpsBefore <= fixedDone; ++arrived) {
        const StorageIndex s = arrivals[arrived].storage;
        const std::string name = "constant " + std::to_string(s);
        std::vector<ArenaSlot> slot;
        if (options.arena)
            if (const auto at = options.arena->constants.find(s);
                at != options.arena->constants.end())
                slot.push_back(at->second);
        tracker.beginWindow(&name, options.arena ? &slot : nullptr, false);
        storages[s] = torch::makeStorage(static_cast<std::size_t>(graph.storages[s].bytes.count()));
        tracker.endWindow();
        if (storages[s].nbytes() > 0)
            fillConstant(step, s,
                         {static_cast<std::byte*>(const_cast<void*>(storages[s].data())),
                          storages[s].nbytes()});
        for (const TensorIndex t : graph.storages[s].tensors) {
            if (graph.tensors[t].creator != kNone || graph.tensors[t].sessionId == kNone) continue;
            const TensorShape& shape = step.shapes[t];
            const auto dtype = torch::dtypeFromName(shape.dtype);
            if (!dtype)
                return core::badInput(
                    "a tensor of the session has the unknown type '" + shape.dtype + "'",
                    "this executor cannot run it");
            tensors[t] =
                torch::makeView(storages[s], *dtype, shape.sizes, shape.strides, shape.offset);
        }
    }
    arrivalTime += since(begin);
    return {};
}

Status Interpreter::State::callKernel(OpIndex index, bool again) {
    const CallableOp& op = ops[index];
    stack.clear();
    for (const OpArgument& argument : op.arguments) {
        for (const TensorIndex t : argument.tensors)
            if (t != kNone && !tensors[t].defined())
                return disagreement(index, "misses tensor " + std::to_string(t));
        const auto tensor = [&](TensorIndex t) { return t == kNone ? at::Tensor() : tensors[t]; };
        switch (argument.kind) {
            case OpArgument::Kind::Value:
                stack.emplace_back(argument.value);
                break;
            case OpArgument::Kind::Tensor:
                // In-place ops may change sizes and strides: of a tensor of their own, so that
                // others that share the recorded one keep theirs.
                stack.emplace_back(argument.written ? torch::alias(tensors[argument.tensors[0]])
                                                    : tensors[argument.tensors[0]]);
                break;
            case OpArgument::Kind::TensorList: {
                c10::List<at::Tensor> list;
                for (const TensorIndex t : argument.tensors) list.push_back(tensor(t));
                stack.emplace_back(std::move(list));
                break;
            }
            case OpArgument::Kind::OptionalTensorList: {
                c10::List<c10::optional<at::Tensor>> list;
                for (const TensorIndex t : argument.tensors)
                    list.push_back(t == kNone ? c10::optional<at::Tensor>()
                                              : c10::optional<at::Tensor>(tensors[t]));
                stack.emplace_back(std::move(list));
                break;
            }
        }
    }
    if (again)
        for (const std::size_t position : op.leftOutOnRecompute) stack[position] = c10::IValue();
    if (const Status ok = torch::call(op.handle, stack); !ok)
        return disagreement(index, "failed: " + ok.error().what);
    outputs.clear();
    for (const c10::IValue& value : stack) collectTensors(value, outputs);
    stack.clear();
    return {};
}

// Gives the results their places by the accounting rules: a first computation keeps all, a
// recomputation the wanted ones that are not there already.
Status Interpreter::State::adopt(OpIndex index, const Action& action) {
    const core::Op& op = graph.ops[index];
    const auto wanted = [&](std::size_t j) {
        return action.kind == ActionKind::Compute ||
               std::find(action.outputs.begin(), action.outputs.end(),
                         static_cast<std::int32_t>(j)) != action.outputs.end();
    };
    for (std::size_t j = 0; j < op.outputs.size(); ++j) {
        const TensorIndex t = op.outputs[j].tensor;
        const StorageIndex s = graph.storageOf(t);
        if (op.outputs[j].makesStorage) {
            if (resident(s) || !wanted(j)) continue;
            for (const core::Use& use : op.inputs)
                if (resident(graph.storageOf(use.tensor)) &&
                    storages[graph.storageOf(use.tensor)].is_alias_of(outputs[j].storage()))
                    return disagreement(index,
                                        "returned a view where the capture saw a new storage");
            storages[s] = outputs[j].storage();
            tensors[t] = outputs[j];
        } else if (resident(s) && wanted(j)) {
            if (storages[s].is_alias_of(outputs[j].storage())) {
                tensors[t] = outputs[j];
            } else if (action.kind == ActionKind::Compute) {
                return disagreement(index, "returned a new storage where the capture saw a view");
            } else {  // a view of a duplicate: the resident sibling has the same bytes
                tensors[t] =
                    torch::makeView(storages[s], outputs[j].scalar_type(), outputs[j].sizes(),
                                    outputs[j].strides(), outputs[j].storage_offset());
            }
        }
    }
    return {};
}

StorageBytes Interpreter::State::inputsOf(OpIndex index) const {
    StorageBytes inputs;
    for (const core::Use& use : graph.ops[index].inputs) {
        const StorageIndex s = graph.storageOf(use.tensor);
        if (resident(s)) inputs.emplace_back(s, bytesOf(storages[s]));
    }
    return inputs;
}

void Interpreter::State::observe(std::size_t at, OpIndex index, bool first) {
    OpResults results;
    results.action = at;
    results.op = index;
    results.first = first;
    for (const at::Tensor& tensor : outputs) results.outputs.push_back(torch::bytesOf(tensor));
    results.inputs = inputsOf(index);
    for (const core::Write& write : graph.ops[index].writes)
        if (resident(write.storage))
            results.written.emplace_back(write.storage, bytesOf(storages[write.storage]));
    options.observer->afterOp(results);
}

void Interpreter::State::profile(OpIndex index, const OpSignature& signature, Bytes risen,
                                 Nanoseconds time) {
    OpSignature& kept = result.signatures[index] = signature;
    Bytes fresh;
    for (Allocation& allocation : kept.allocations) {
        if (allocation.endEvent) continue;
        for (std::size_t j = 0; j < outputs.size(); ++j)
            if (graph.ops[index].outputs[j].makesStorage &&
                outputs[j].storage().data() == allocation.address)
                allocation.output = static_cast<int>(j);
        if (allocation.output) fresh += allocation.bytes;
    }
    result.times[index] = time;
    result.workspaces[index] = std::max(risen - fresh, Bytes(0));
}

Status Interpreter::State::runOp(std::size_t at, const Action& action) {
    const OpIndex index = action.target;
    const CallableOp& op = ops[index];
    const bool again = action.kind == ActionKind::Recompute;
    if (op.skipped) return {};
    // A random op draws the same numbers again, and leaves the generator where it found it.
    std::vector<std::vector<std::byte>> before;
    for (std::size_t g = 0; g < op.generators.size(); ++g) {
        if (!again && !runAgain[index]) break;
        at::Generator& generator = generators[op.generators[g]];
        (again ? before : savedGenerators[index]).push_back(torch::stateOf(generator));
        if (!again) continue;
        if (Status ok = torch::setState(generator, savedGenerators[index][g]); !ok) return ok;
    }
    if (options.observer) options.observer->beforeOp(index, inputsOf(index));
    const Bytes live = tracker.live();
    tracker.beginWindow(&labels[index], options.arena ? &options.arena->actions[at] : nullptr,
                        options.profile);
    const auto begin = Clock::now();
    Status ok = callKernel(index, again);
    const Nanoseconds time = since(begin);
    const Bytes highest = tracker.windowPeak();
    const OpSignature signature = tracker.endWindow();
    if (!ok) return ok;
    if (outputs.size() != graph.ops[index].outputs.size())
        return disagreement(index,
                            "returned " + std::to_string(outputs.size()) + " tensors where " +
                                std::to_string(graph.ops[index].outputs.size()) + " were captured");
    for (const at::Tensor& tensor : outputs)
        if (!tensor.has_storage())
            return disagreement(index, "returned a tensor without a storage");
    if (options.profile) profile(index, signature, highest - live, time);
    if (options.observer) observe(at, index, !again);
    if (ok = adopt(index, action); !ok) return ok;
    outputs.clear();
    for (std::size_t g = 0; g < before.size(); ++g)
        if (ok = torch::setState(generators[op.generators[g]], before[g]); !ok) return ok;
    return {};
}

void Interpreter::State::free(StorageIndex s) {
    for (const TensorIndex t : graph.storages[s].tensors) tensors[t].reset();
    if (resident(s) && storages[s].use_count() > 1)
        result.held.push_back("storage " + std::to_string(s) + " is kept alive past its release");
    storages[s] = c10::Storage();
}

Status Interpreter::State::perform(std::size_t at, const Action& action) {
    switch (action.kind) {
        case ActionKind::Free:
            free(action.target);
            return {};
        case ActionKind::Encode:
        case ActionKind::Decode:
            return core::badInput("action " + std::to_string(at) + " of the plan encodes a storage",
                                  "this executor runs plans of compute, recompute and free");
        case ActionKind::Compute:
        case ActionKind::Recompute:
            break;
    }
    if (Status ok = runOp(at, action); !ok) return ok;
    if (action.kind == ActionKind::Compute && !graph.ops[action.target].viewOnly()) {
        ++fixedDone;
        return arrive();
    }
    return {};
}

FinalState Interpreter::State::finalState() {
    FinalState state;
    for (const TensorIndex t : graph.finalTensors) {
        const StorageIndex s = graph.storageOf(t);
        state.tensors.push_back(tensors[t].defined() ? torch::bytesOf(tensors[t])
                                                     : TensorBytes{nullptr, 1, {}, {0}, {1}});
        if (std::none_of(state.storages.begin(), state.storages.end(),
                         [&](auto& pair) { return pair.first == s; }))
            state.storages.emplace_back(s, bytesOf(storages[s]));
    }
    for (auto& [id, generator] : generators) state.generators.push_back(torch::stateOf(generator));
    return state;
}

void Interpreter::State::drop() {
    stack.clear();
    outputs.clear();
    tensors.clear();
    storages.clear();
}

core::Result<RunResult> Interpreter::State::run(
    const core::Schedule& schedule, const RunOptions& wanted,
    const std::function<void(const FinalState&)>& atEnd) {
    options = wanted;
    if (Status ok = reset(schedule); !ok) return ok.error();
    Status ok = arrive();
    arrivalTime = {};
    const auto begin = Clock::now();
    for (std::size_t i = 0; ok && i < schedule.size(); ++i) ok = perform(i, schedule[i]);
    result.time = since(begin) - arrivalTime;
    result.peak = tracker.peak();
    result.arenaTop = tracker.arenaTop();
    result.fallbacks = tracker.fallbacks();
    if (ok && atEnd) atEnd(finalState());
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
