// SPDX-License-Identifier: MIT
// The inside of the interpreter: what it knows of a step, and the state of the current run. Its
// members are in interpreter.cpp (preparation, the loop over a schedule), interpreter_ops.cpp (one
// op) and interpreter_storages.cpp (constants, frees, codecs, the end).
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "core/graph/captured_order.h"
#include "executor/replay/arguments.h"
#include "executor/replay/codec.h"
#include "executor/replay/interpreter.h"
#include "executor/replay/span.h"

namespace hw::executor {

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

inline Nanoseconds since(Clock::time_point begin) {
    return Nanoseconds(
        std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count());
}

/// What stands in for a storage between its `e` and its `d`.
struct EncodedForm {
    c10::Storage bytes;
    std::string codec;
};

/// Of a storage between its `o` and its `p`.
struct HostCopy {
    std::vector<std::byte> bytes;
    bool standsIn = false;  // the storage's own bytes have been freed since
};

/// Whether every element of a tensor lies in a storage of `bytes` bytes.
bool fits(const TensorShape& shape, std::size_t elementBytes, std::size_t bytes);

struct Interpreter::State {
    State(const Step& s, MemoryTracker& t) : step(s), graph(s.graph), tracker(t) {}

    Status prepare();
    core::Result<RunResult> run(const core::Schedule& schedule, const RunOptions& options,
                                const std::function<void(const FinalState&)>& atEnd);

    Status reset(const core::Schedule& schedule);
    Status placeConstants();
    void fill(StorageIndex s, Span<std::byte> bytes);
    Status perform(std::size_t at, const Action& action);
    Status runOp(std::size_t at, const Action& action);
    Status callKernel(OpIndex index, bool again);
    Status checkSizes(OpIndex index) const;
    Status checkPlaces(OpIndex index) const;
    Status adopt(OpIndex index, const Action& action);
    void observe(std::size_t at, OpIndex index, bool first);
    void profile(OpIndex index, const OpSignature& signature, Bytes risen);
    StorageBytes inputsOf(OpIndex index, torch::HostView& host) const;
    Status encode(std::size_t at, const Action& action);
    Status decode(std::size_t at, const Action& action);
    void offload(StorageIndex s);
    Status prefetch(std::size_t at, StorageIndex s);
    core::Result<c10::Storage> makeForm(std::size_t at, StorageIndex s, Bytes bytes);
    Status defineFromRecord(TensorIndex t);
    ElementType elementsOf(StorageIndex s) const;
    Error codecFailed(StorageIndex s, const Error& error) const;
    void free(StorageIndex s);
    FinalState finalState(torch::HostView& host);
    void drop();
    Error disagreement(OpIndex index, const std::string& what) const;
    bool resident(StorageIndex s) const {
        const auto copy = hostCopies.find(s);
        return storages[s] && (copy == hostCopies.end() || !copy->second.standsIn);
    }

    const Step& step;
    const core::TrainingGraph& graph;
    MemoryTracker& tracker;
    std::vector<std::string> notes;
    Generators generators;
    std::vector<CallableOp> ops;
    std::vector<core::ConstantStart> constants;
    std::vector<std::string> labels;                             // of ops, in messages
    std::map<std::int64_t, std::vector<std::byte>> firstStates;  // of generators

    // Of the current run.
    RunOptions options;
    RunResult result;
    std::vector<at::Tensor> tensors;     // defined ones
    std::vector<c10::Storage> storages;  // resident ones
    std::map<StorageIndex, EncodedForm> encoded;
    std::map<StorageIndex, HostCopy> hostCopies;
    std::vector<bool> runAgain;  // ops that the schedule recomputes: their generators are kept
    std::vector<std::vector<std::vector<std::byte>>> savedGenerators;  // [op][generator]
    std::size_t constantsPlaced = 0;
    std::int32_t fixedDone = 0;
    Nanoseconds constantsTime;
    Nanoseconds kernelTime;  // of the last op
    c10::Stack stack;
    std::vector<at::Tensor> outputs;
};

}  // namespace hw::executor
