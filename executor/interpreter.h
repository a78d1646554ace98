// SPDX-License-Identifier: MIT
// Runs a schedule of a recorded step with real kernels.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/plan/plan.h"
#include "executor/arena_layout.h"
#include "executor/memory_tracker.h"
#include "executor/observer.h"
#include "executor/step.h"

namespace hw::executor {

struct RunOptions {
    const Arena* arena = nullptr;  // none: memory comes from the system
    Observer* observer = nullptr;  // puts the memory into checking mode
    bool profile = false;          // fills signatures, workspaces and times of ops
};

struct RunResult {
    core::Nanoseconds time;  // ops and frees; constants that come into being left out
    core::Bytes peak;        // highest live bytes that the allocator saw
    core::Bytes arenaTop;
    core::Bytes left;  // still live when everything was dropped
    std::vector<Fallback> fallbacks;
    std::vector<std::string> held;  // storages that something kept alive past their release
    // With `profile`, one an op:
    std::vector<OpSignature> signatures;
    std::vector<core::Bytes> workspaces;
    std::vector<core::Nanoseconds> times;
};

class Interpreter {
public:
    /// Prepares every op. `step` and `tracker` must outlive the interpreter; installs the allocator
    /// and the captured environment. Errors: BadInput when the step cannot be replayed.
    static core::Result<Interpreter> create(const Step& step, MemoryTracker& tracker);
    Interpreter(Interpreter&&) noexcept;
    ~Interpreter();

    /// Runs a schedule (valid for the graph) from the step's initial state. `atEnd` sees the final
    /// state before it is dropped. Errors: Internal when a kernel refuses or returns other results
    /// than captured; BadInput for actions that this executor does not know (codecs).
    core::Result<RunResult> run(const core::Schedule& schedule, const RunOptions& options,
                                const std::function<void(const FinalState&)>& atEnd = {});

    const std::vector<std::string>& notes() const;

private:
    struct State;
    explicit Interpreter(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace hw::executor
