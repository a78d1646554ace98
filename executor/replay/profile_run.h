// SPDX-License-Identifier: MIT
// What the ops of an order take in memory and time, found by running it.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "executor/replay/arena_layout.h"
#include "executor/replay/interpreter.h"
#include "executor/replay/run_store.h"

namespace hw::executor {

/// A step as it is run: who runs it, in which order, in which memory. All must outlive its use.
struct Execution {
    Interpreter* interpreter = nullptr;
    const core::Schedule* schedule = nullptr;
    const Arena* arena = nullptr;
};

struct ProfiledOrder {
    Profile profile;
    Arena arena;                     // of the order, packed from its signatures
    core::Bytes peak;                // highest live bytes
    std::vector<std::string> notes;  // what does not repeat, or outlives the step
};

/// Runs `order`, which computes every op of `graph` once: first to warm caches up, then to record
/// what ops allocate, then once more than `repeat` in the arena that comes out of it for the times
/// (none: no times). Errors: those of Interpreter::run().
core::Result<ProfiledOrder> profileOrder(Interpreter& interpreter, const core::TrainingGraph& graph,
                                         const core::Schedule& order, MemoryTracker& tracker,
                                         int repeat);

/// Notes on what a run left allocated.
void noteLeftovers(const RunResult& result, std::vector<std::string>& notes);

/// Whether ops allocate the same, one after the other.
bool sameSizes(const core::OpSignature& a, const core::OpSignature& b);
bool sameSizes(const core::Signatures& a, const core::Signatures& b);

}  // namespace hw::executor
