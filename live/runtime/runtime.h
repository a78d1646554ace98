// SPDX-License-Identifier: MIT
// Carries plans out in the program that trains: sees its ops, drops bytes of storages where the
// plan says so and makes them again where it says so. As soon as an op is not the planned one,
// everything that was dropped is restored before it runs, and the rest of the step goes unplanned.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "engine.h"
#include "op_lock.h"
#include "op_matcher.h"
#include "rebuild.h"
#include "streams.h"

namespace hw::live::runtime {

class Runtime final : public Engine {
public:
    /// `agent` outlives the runtime.
    explicit Runtime(const profiler::native::AgentApi& agent) : Engine(agent) {
        slots_.verifyWith(&verifier_);
        verifier_.watch(&streams_);
    }

    /// Ready for other plans, after release() too.
    void forgetPrograms();

    /// Adds a plan; the first one is tried first. False: `why` says what is wrong with it.
    bool add(const std::string& bytes, std::string& why);
    bool empty() const { return programs_.empty(); }

    Boundary boundary() override;
    void begin() override;
    void forward() override;
    void ends() override;
    void interrupt(const std::string& why) override;
    void region(const std::string& what) override;
    void release() override;

    [[gnu::hot]] void op(const profiler::native::Passing& op, torch::jit::Stack* stack) override;
    /// The same of a typed op, see TypedHook; the caller runs it.
    [[gnu::hot]] profiler::native::Turn beginTyped(const profiler::native::Passing& op,
                                                   const profiler::native::Arguments& arguments,
                                                   c10::function_ref<torch::jit::Stack()> box);
    [[gnu::hot]] void endTyped(const Tensors& results);
    [[gnu::cold]] void failTyped();
    void opBeside(const profiler::native::Passing& op, torch::jit::Stack* stack) override;
    void touch(const c10::TensorImpl& tensor, bool stays) override;
    void hand(const c10::TensorImpl& tensor) override;
    void change(c10::StorageImpl* storage) override;
    OpLock& lock() override { return lock_; }
    bool forked() override;

    /// From the next step on, curve() is kept.
    void trace() { traced_ = true; }
    /// For each op of the plan that has run, the highest live bytes since the end of the one
    /// before.
    const std::vector<std::int64_t>& curve() const { return curve_; }

private:
    struct Shared {  // by two programs
        std::size_t ops = 0;
        std::vector<std::int64_t> storages;  // of the one in the other
    };

    using Guard = std::unique_lock<OpLock>;

    bool planned() const { return current_ >= 0; }
    Program& program() { return programs_[static_cast<std::size_t>(current_)]; }
    const Program& program() const { return programs_[static_cast<std::size_t>(current_)]; }
    void enter(std::int64_t program);
    void makeRoomForCalls();
    void forgetStep();
    void bindKnown();
    void learn();
    std::int64_t uncountedBytes();
    // runtime_match.cpp
    struct KnownStorages;
    [[gnu::hot]] Difference compare(const c10::FunctionSchema& schema, const Tensors& tensors);
    [[gnu::hot]] std::string mismatch(const c10::FunctionSchema& schema, const Tensors& tensors);
    [[gnu::hot]] bool bindOutputs(const ProgramOp& op, const Tensors& tensors);
    [[gnu::hot]] bool before(const profiler::native::Passing& op, const Tensors& tensors,
                             c10::Device told, c10::function_ref<Values()> values);
    [[gnu::hot]] void after(const Tensors& results, bool plain);
    // runtime_exposures.cpp
    [[gnu::cold]] bool agreesWithSchema(const profiler::native::Operator& known, Values values);
    [[gnu::cold]] bool keepCall(const profiler::native::Passing& op, const Tensors& tensors,
                                Values arguments);
    bool noteStatistics(const profiler::native::Operator& known, const Tensors& tensors,
                        Values values);
    bool wasRead(std::uint32_t storage) const;
    bool keepSources(const Tensors& tensors, bool leaves);
    bool copyStatistics(const Tensors& tensors, bool leaves);
    bool keepChanging(const Tensors& tensors);
    bool isLastToMake(const ProgramOp& op) const;
    void keepResults();
    void keepInputs();
    void noteBorn(const ProgramOp& op);
    void expose(std::size_t storage);
    void watchSources(const profiler::native::Operator& known, const Tensors& tensors,
                      Values values);
    void bringAndPin(Guard& guard, c10::StorageImpl* impl, bool pins);
    [[gnu::cold]] bool bringHidden(Guard& guard, const profiler::native::Operator& op,
                                   Values values, const StorageList& hidden);
    bool isRecorded(std::uint32_t storage, const c10::StorageImpl& impl) const;
    void verifySources(std::uint32_t op);
    void verifyRecomputed(std::uint32_t op);
    void settle();
    bool isLookedAt() const;
    bool mayBeLean() const;
    [[gnu::cold]] void endEarly();
    [[gnu::cold]] void skipBatches();
    [[gnu::cold]] void holdBatches();
    bool endsAsUsual();
    bool isWhole() const;
    bool endsOtherwise();
    [[gnu::hot]] bool passAside(const c10::FunctionSchema& schema, const Tensors& tensors,
                                c10::Device told);
    [[gnu::hot]] bool passSettled(const c10::FunctionSchema& schema, const Tensors& tensors);
    [[gnu::hot]] bool isNext(const c10::FunctionSchema& schema, const Tensors& tensors) const;
    [[gnu::cold]] void noteUnplanned(const profiler::native::Operator& known, Values values);
    [[gnu::cold]] bool isBatch(const c10::FunctionSchema& schema, Values values,
                               const Tensors& tensors);
    [[gnu::hot]] void runPlanned(const profiler::native::Passing& op, torch::jit::Stack* stack,
                                 Guard& guard);
    [[gnu::cold]] void failed();
    // runtime_actions.cpp
    struct Performer;
    void perform(Items<Action> actions);
    void recompute(const Action& action);
    void startClock() {
        if (timed_) began_ = agent_.now();
    }
    void stopClock() {
        if (timed_) figures_.runtimeNs += kOpsPerTimed * (agent_.now() - began_);
    }
    /// Recomputations, whose time is not the runtime's own.
    template <typename Work>
    void again(const Work& work) {
        stopClock();
        const std::int64_t began = agent_.now();
        work();
        if (!streams_.any()) figures_.recomputedNs += agent_.now() - began;
        startClock();
    }
    /// Copies to and from host memory: that time, too.
    template <typename Work>
    void waits(const Work& work) {
        stopClock();
        const std::int64_t began = agent_.now();
        work();
        figures_.waitedNs += agent_.now() - began;
        startClock();
    }
    [[gnu::hot]] void ensureInputs(const ProgramOp& op);
    [[gnu::hot]] void fetchAhead(const ProgramOp& now);
    [[gnu::cold]] void restore(std::size_t storage);
    void noteRestored(std::size_t storage);
    [[gnu::cold]] void restoreAll();
    [[gnu::cold]] void follow(c10::Device device, const Tensors& tensors);
    [[gnu::cold]] void pin(const ProgramOp& op);
    [[gnu::cold]] bool switchSettled(const c10::FunctionSchema& schema, const Tensors& tensors);
    [[gnu::cold]] bool switchTo(const c10::FunctionSchema& schema, const Tensors& tensors);
    std::optional<std::vector<Action>> doneBefore(std::size_t position);
    bool adopt();
    [[gnu::cold]] bool mayPass(const c10::FunctionSchema& schema, Values values);
    [[gnu::cold]] void bring(const Tensors& tensors);
    [[gnu::cold]] void restartFigures();
    [[gnu::cold]] void noteLiveBytes();
    [[gnu::cold]] void tryOther(const profiler::native::Passing& op, torch::jit::Stack* stack,
                                Guard& guard, const Tensors& tensors, const std::string& why);
    [[gnu::cold]] void awaitOp(Guard& guard);
    [[gnu::hot]] void begins(Guard& guard);
    [[gnu::hot]] void ended(Guard& guard);
    [[gnu::hot]] void timeSome();
    [[gnu::cold]] void otherResults(const ProgramOp& op);
    [[gnu::cold]] void diverge(const std::string& found);
    [[gnu::cold]] void restoreForGood(const std::string& why);
    Shared shared(const Program& one, const Program& other) const;
    void findAllSchemas();

    OpLock lock_;
    std::condition_variable_any ended_;
    std::thread::id running_;  // in which an op of the plan runs, without the lock
    int waiting_ = 0;          // for its end
    std::vector<Program> programs_;
    std::vector<Call> calls_;        // of the current program's ops
    std::vector<std::size_t> kept_;  // of these: what is to be forgotten after the step
    Slots slots_{lock_};
    Streams streams_;
    std::int64_t current_ = -1;  // the program that this step keeps to; -1: none
    std::size_t position_ = 0;
    bool early_ = false;    // other ops may come between the planned ones
    bool forward_ = false;  // the step's forward pass has begun
    bool begins_ = false;   // with the next op
    bool passed_ = false;   // other ops came since the last planned one
    bool over_ = false;     // no more ops come
    bool learns_ = false;   // what should have left early in this step was not known yet
    std::vector<std::uint32_t> holdsDue_;  // storages of skipped batches that the plan holds
    /// The step has left its plan where nothing of that was left to do; the highest live bytes
    /// until then.
    std::optional<std::int64_t> donePeak_;
    /// Storages that the plan has no use for are not followed in this step: of them it is only
    /// known that they are none of the others.
    bool lean_ = false;
    /// Nothing is at stake any more in this step, and no storage is followed.
    bool settled_ = false;
    /// Nor are its ops looked at: those that are seen all the same pass at once.
    bool aside_ = false;
    struct Ends {
        int boundaries = 0;       // optimizers that have ended their steps in it
        std::uint64_t nodes = 0;  // of autograd that its thread has made
        bool operator==(const Ends& other) const {
            return boundaries == other.boundaries && nodes == other.nodes;
        }
    };
    Ends ends_;                        // of this step, so far
    std::optional<Ends> usual_;        // of the last one whose ops were compared to the end
    int alike_ = 0;                    // of these: so many in a row have ended the same way
    bool varies_ = false;              // one whose ops were not has ended in another
    std::uint64_t nodesBefore_ = 0;    // the forward pass
    std::int64_t uncountedBytes_ = 0;  // in the last step in which all was followed
    /// So that what only a whole step shows is seen again.
    static constexpr std::int64_t kStepsPerWhole = 64;
    /// Before ops are not looked at: first steps make what others find.
    static constexpr int kStepsAlike = 2;
    /// Reading the clock takes as long as the rest of an op's handling: one in so many is timed.
    static constexpr std::int64_t kOpsPerTimed = 16;
    bool unkept_ = false;     // the op that goes on cannot run again: what it makes stays
    bool timed_ = false;      // the op that goes on
    std::int64_t seen_ = 0;   // ops, of all steps
    std::int64_t began_ = 0;  // the runtime's own work that goes on
    bool traced_ = false;
    std::vector<std::int64_t> curve_;
};

}  // namespace hw::live::runtime
