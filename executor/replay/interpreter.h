// SPDX-License-Identifier: MIT
// Runs a schedule of a recorded step with real kernels. What is declared here is all that the rest
// of the executor knows of a framework: it is defined in the units that are compiled for the
// framework at hand (CMakeLists.txt has their list), everything else is in a library that serves
// them all.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/plan/plan.h"
#include "executor/replay/arena_layout.h"
#include "executor/replay/memory_tracker.h"
#include "executor/replay/observer.h"
#include "executor/replay/step.h"

namespace hw::executor {

/// What one step hands on to the next.
struct StepState {
    std::map<core::StorageIndex, std::vector<std::byte>> contents;  // of constants
    std::vector<std::vector<std::byte>> generators;                 // as in FinalState
};

struct RunOptions {
    const Arena* arena = nullptr;         // none: memory comes from the system
    Observer* observer = nullptr;         // puts the memory into checking mode
    bool profile = false;                 // fills signatures and workspaces of ops
    const StepState* from = nullptr;      // none, or what it does not hold: as recorded
    core::OpIndex watched = core::kNone;  // its first result is kept
};

struct RunResult {
    core::Nanoseconds kernels;  // the part of `time` inside kernels
    core::Nanoseconds time;     // ops and frees; constants that come into being left out
    core::Bytes peak;           // highest live bytes that the allocator saw
    core::Bytes arenaTop;
    core::Bytes left;  // still live when everything was dropped
    std::vector<Fallback> fallbacks;
    std::vector<std::string> held;  // storages that something kept alive past their release
    std::vector<std::byte> watched;
    // One an op, of its kernels, without what surrounds the calls:
    std::vector<core::Nanoseconds> times;  // of its first computation
    std::vector<core::Nanoseconds> again;  // of all its recomputations
    // With `profile`, one an op:
    core::Signatures signatures;
    std::vector<core::Bytes> workspaces;
};

/// Chooses where all tensors live, and says where their memory comes from. To be called once,
/// before an interpreter is made. Errors: Usage where there is no such device, or the executor is
/// not built for it.
core::Result<MemorySource*> openDevice(Device device);

class Interpreter {
public:
    /// Prepares every op. `step` and `tracker` must outlive the interpreter; installs the allocator
    /// and the captured environment. Errors: BadInput when the step cannot be replayed.
    static core::Result<Interpreter> create(const Step& step, MemoryTracker& tracker);
    Interpreter(Interpreter&&) noexcept;
    ~Interpreter();

    /// Runs a schedule (valid for the graph) from the given or the recorded state. `atEnd` sees the
    /// final state before it is dropped. Errors: Internal when a kernel refuses or returns other
    /// results than captured; BadInput for codecs that this executor does not know, Verification
    /// when a storage does not hold what its codec keeps.
    core::Result<RunResult> run(const core::Schedule& schedule, const RunOptions& options,
                                const std::function<void(const FinalState&)>& atEnd = {});

    const std::vector<std::string>& notes() const;

private:
    struct State;
    explicit Interpreter(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace hw::executor
