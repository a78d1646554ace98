// SPDX-License-Identifier: MIT
// What acts on the ops of a program that trains: a plan (Runtime), or DTR within a budget
// (BudgetRuntime).
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent_api.h"
#include "core/graph/nondeterministic_ops.h"
#include "exposures.h"
#include "mismatch.h"
#include "observer.h"
#include "op_lock.h"
#include "step_figures.h"
#include "verifier.h"

namespace hw::live::runtime {

/// Where a step left its plan.
struct Divergence {
    std::int64_t op = -1;
    std::string expected, found;
};

/// Allocations of a step that had failed, and what has gone for them.
struct Rescue {
    std::string op;                // which asked for the first; empty: none has failed
    std::int64_t bytes = 0;        // of the first
    std::int64_t allocations = 0;  // that were tried again, and made
    std::int64_t refused = 0;      // that failed all the same
    std::int64_t freedBytes = 0, evictions = 0;
};

/// Of one step.
struct StepFigures {
    std::int64_t recomputedOps = 0;   // as the plan says, or as DTR needs them
    std::int64_t restoredBytes = 0;   // brought back besides
    std::int64_t pinnedBytes = 0;     // what the plan would drop and somebody looked at
    std::int64_t ops = 0;             // seen
    std::int64_t uncountedBytes = 0;  // of constants, made before allocations were counted
    std::int64_t runtimeNs = 0;       // of our own, recomputations apart
    std::int64_t begunNs = 0;         // where something else came before the planned ops; else 0
    std::int64_t recomputedNs = 0;    // of recomputations on the CPU
    std::int64_t evictions = 0;       // under a budget
    std::int64_t uncomparedOps = 0;   // run again, and not deterministic
    std::int64_t offloadedBytes = 0;  // that left, copies in host memory standing for them
    std::int64_t waitedNs = 0;        // for such copies, and for what comes back
    std::int64_t peakBefore = 0;      // highest live bytes before the last look at them
    Rescue rescue;
};

using Boundary = profiler::wire::Boundary;

class Engine {
public:
    /// `agent` outlives the engine.
    explicit Engine(const profiler::native::AgentApi& agent)
        : agent_(agent), verifier_(agent), exposures_(verifier_) {}
    virtual ~Engine() = default;
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    /// A step may begin here: the program has made an optimizer's step.
    virtual Boundary boundary() = 0;
    /// A step begins. Until forward() other ops may come between those of a plan: an evaluation.
    virtual void begin() = 0;
    /// A forward pass with gradients begins.
    virtual void forward() = 0;
    /// The program ends: of the step that goes on no more ops come than have.
    virtual void ends() {}
    /// The rest of the step keeps everything: what comes next reads and writes without any op.
    virtual void interrupt(const std::string& why) = 0;
    /// Restores everything and leaves the rest of the program alone.
    virtual void release() = 0;

    /// One op; runs it. Whatever it throws goes on to the program.
    virtual void op(const profiler::native::Passing& op, torch::jit::Stack* stack) = 0;
    /// One op of a thread beside the one that trains.
    virtual void opBeside(const profiler::native::Passing& op, torch::jit::Stack* stack) = 0;
    /// A region begins that reads and writes past the dispatcher, such as "torch.compile"; empty:
    /// it ends.
    virtual void region(const std::string& what) = 0;
    /// Code past the dispatcher is about to look at a tensor's bytes. `stays`: it keeps the
    /// address, and may write; the tensor is not dropped any more.
    virtual void touch(const c10::TensorImpl& tensor, bool stays) = 0;
    /// The same of its storage as an object, which may give the address out later: it stays.
    virtual void hand(const c10::TensorImpl& tensor) = 0;
    /// A storage's bytes are about to change, to go or to come without any op: FSDP takes those of
    /// gathered parameters away and gives them others. What was made from them is there before.
    virtual void change(c10::StorageImpl* storage) = 0;

    void verify(Verify level) { verifier_.setLevel(level); }
    /// A recording has seen that bytes which code past the dispatcher may write do not change.
    void trustSources() { exposures_.trust(); }
    /// What these made came back with other bytes in an earlier run.
    void keepResultsOf(const std::string& lines) {
        keptOps_.read(lines);
        for (const std::string& name : keptOps_.names())
            remark("what " + name +
                   " makes stays: it came back with other bytes in an earlier run of the program");
        if (keptOps_.sourcesChange()) exposures_.distrust();
    }
    const Verifier& verifier() const { return verifier_; }
    const std::optional<Mismatch>& mismatch() const { return mismatch_; }
    /// Held by the thread that forks: what the child gets is not half changed.
    virtual OpLock& lock() = 0;
    /// In the child. Its ops come by opBeside() from now on. False: nothing is dropped.
    virtual bool forked() = 0;

    const profiler::native::AgentApi& agent() const { return agent_; }
    const StepFigures& figures() const { return figures_; }
    const std::optional<Divergence>& divergence() const { return divergence_; }
    /// Why it has stopped for good, or what it could not do; empty: there is nothing to say.
    const std::string& fault() const { return fault_; }
    /// The last allocation that was refused because of the budget; empty: none was.
    const std::string& shortage() const { return shortage_; }
    /// What else there is to say of the run, each once and in this order; it only grows.
    const std::vector<std::string>& remarks() const { return remarks_; }

protected:
    void remark(const std::string& text) {
        if (std::find(remarks_.begin(), remarks_.end(), text) == remarks_.end())
            remarks_.push_back(text);
    }
    /// A profiler's own op is no part of the step.
    void letProfilerBy(const profiler::native::Passing& op, torch::jit::Stack* stack) {
        const profiler::native::Pause pause(agent_);
        op.handle.redispatchBoxed(op.below, stack);
    }

    /// What an op makes is recomputed and not compared.
    void noteVarying(const std::string& name, bool onGpu) {
        ++figures_.uncomparedOps;
        if (core::isNondeterministic(name, onGpu))
            remark(name +
                   " is not deterministic, as PyTorch says: what it makes is kept where there is "
                   "room, else recomputed and not compared");
    }
    /// Recomputed bytes are others: the program ends here, and with every op that it tries.
    [[noreturn]] void condemn(Mismatch mismatch) {
        if (!mismatch_) {
            mismatch_ = std::move(mismatch);
            send(agent_, *mismatch_);
        }
        throw OtherBytes("highwater: " + describe(*mismatch_));
    }
    /// What was recomputed on GPUs is what was dropped; else the program ends. Waits for them,
    /// where something was compared there since the last time.
    void settleDevices() {
        auto different = verifier_.queued() ? verifier_.settle() : std::nullopt;
        if (!verifier_.whyNotOnGpus().empty()) remark(verifier_.whyNotOnGpus());
        if (different) condemn(std::move(*different));
    }
    void throwIfCondemned() {
        if (mismatch_) condemn(*mismatch_);
    }

    const profiler::native::AgentApi& agent_;
    Verifier verifier_;
    Exposures exposures_;
    KeptOps keptOps_;
    std::optional<Mismatch> mismatch_;
    StepFigures figures_;
    std::optional<Divergence> divergence_;
    std::string fault_, shortage_;
    std::vector<std::string> remarks_;
};

}  // namespace hw::live::runtime
