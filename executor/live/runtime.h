// SPDX-License-Identifier: MIT
// Carries plans out in the program that trains: sees its ops, drops bytes of storages where the
// plan says so and makes them again where it says so. As soon as an op is not the planned one,
// everything that was dropped is restored before it runs, and the rest of the step goes unplanned.
#pragma once

#include <mutex>

#include "rebuild.h"

namespace hw::executor::live {

struct Divergence {
    std::int64_t op = -1;
    std::string expected, found;
};

/// Of one step.
struct StepFigures {
    std::int64_t recomputedOps = 0;   // as the plan says
    std::int64_t restoredBytes = 0;   // brought back besides
    std::int64_t pinnedBytes = 0;     // what the plan would drop and somebody looked at
    std::int64_t ops = 0;             // seen
    std::int64_t uncountedBytes = 0;  // of constants, made before allocations were counted
};

class Runtime {
public:
    /// What stops and resumes the counting of allocations, and what tells the bytes of one that is
    /// counted (native/agent_api.h).
    Runtime(void (*pauseCounting)(int), std::int64_t (*counted)(std::uint64_t))
        : pauseCounting_(pauseCounting), counted_(counted) {}

    /// Ready for other plans, after release() too.
    void forgetPrograms();

    /// Adds a plan; the first one is tried first. False: `why` says what is wrong with it.
    bool add(const std::string& bytes, std::string& why);
    bool empty() const { return programs_.empty(); }

    enum class Boundary : int { Middle = 0, Planned = 1, Unplanned = 2 };
    /// A step may begin here: the program has made an optimizer's step. Middle: it has not ended.
    Boundary boundary();
    /// The very first step begins.
    void begin();
    /// Restores everything and leaves the rest of the program alone.
    void release();

    /// One op; runs it. Whatever it throws goes on to the program.
    void op(const c10::OperatorHandle& handle, c10::DispatchKeySet below, torch::jit::Stack* stack);
    /// Somebody is about to look at a tensor's bytes past the dispatcher.
    void touch(const at::Tensor& tensor);

    void pauseCounting(int paused) { pauseCounting_(paused); }
    const StepFigures& figures() const { return figures_; }
    const std::optional<Divergence>& divergence() const { return divergence_; }
    /// Why it has stopped for good; empty as long as it has not.
    const std::string& fault() const { return fault_; }

private:
    struct Shared {  // by two programs
        std::size_t ops = 0;
        std::vector<std::int64_t> storages;  // of the one in the other
    };

    bool planned() const { return current_ >= 0; }
    Program& program() { return programs_[static_cast<std::size_t>(current_)]; }
    void enter(std::int64_t program);
    std::string mismatch(const ProgramOp& op, const c10::FunctionSchema& schema,
                         const std::vector<at::Tensor>& tensors);
    std::int64_t uncountedBytes();
    void bindInputs(const ProgramOp& op, const std::vector<at::Tensor>& tensors);
    bool bindOutputs(const ProgramOp& op, Values results);
    void perform(const std::vector<Action>& actions);
    void perform(const Action& action);
    void recompute(const Action& action);
    void ensureInputs(const ProgramOp& op);
    void restore(std::size_t storage);
    void restoreAll();
    bool switchTo(const c10::FunctionSchema& schema, const std::vector<at::Tensor>& tensors);
    void diverge(const std::string& found);
    void restoreForGood(const std::string& why);
    Shared shared(const Program& one, const Program& other) const;

    void (*pauseCounting_)(int);
    std::int64_t (*counted_)(std::uint64_t address);
    std::recursive_mutex lock_;
    std::vector<Program> programs_;
    std::vector<Call> calls_;  // of the current program's ops
    Slots slots_;
    std::int64_t current_ = -1;  // the program that this step keeps to; -1: none
    std::size_t position_ = 0;
    StepFigures figures_;
    std::optional<Divergence> divergence_;
    std::string fault_;
};

}  // namespace hw::executor::live
