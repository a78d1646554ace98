// SPDX-License-Identifier: MIT
// DTR in the program that trains (Kirisame et al., ICLR 2021): ops run as they come; where an
// allocation would pass the budget, the storage with the lowest score is evicted, and what an op
// reads and is not there is made again first. What is evicted next is decided by the code that
// decides in the simulation of a step (planners/dtr/evictor.h).
//
// Without a budget it waits for an allocation that fails, and rescues it: what can be evicted goes
// until there is room, and the program hears of nothing.
//
// Only what ops have made since the last step is evicted, and only as long as it can be made again
// (tape.h); what they would be made from is held from their eviction on. Nothing is evicted that a
// running op reads.
#pragma once

#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "decision_log.h"
#include "engine.h"
#include "guides.h"
#include "op_costs.h"
#include "op_lock.h"
#include "planners/dtr/evictor.h"
#include "slots.h"
#include "step_kinds.h"
#include "streams.h"
#include "tape.h"

namespace hw::executor::live {

class BudgetRuntime final : public Engine {
public:
    /// `agent`, whose allocator knows the budget, outlives the runtime. `planned`: steps are traced
    /// for planners. `keepsLimit`: an allocation that would pass the agent's limit is none that
    /// fails, and each step goes under DTR; else those do in which something was evicted.
    BudgetRuntime(const profiler::native::AgentApi& agent, planners::DtrHeuristic heuristic,
                  bool planned, bool keepsLimit = true);

    Boundary boundary() override;
    void begin() override;
    void forward() override;
    void interrupt(const std::string& why) override;
    void region(bool begins) override;
    void release() override;
    void op(const profiler::native::Passing& op, torch::jit::Stack* stack) override;
    void opBeside(const profiler::native::Passing& op, torch::jit::Stack* stack) override;
    void touch(const c10::TensorImpl& tensor, bool stays) override;
    OpLock& lock() override { return lock_; }
    bool forked() override;
    void change(c10::StorageImpl* storage) override;

    /// A plan for steps of that kind, from the next one on; it says what goes and what comes back
    /// as long as they are the planned ones. `ending`: how steps end that have kept to it. False:
    /// `why` says what is wrong with it.
    bool follow(std::int64_t kind, Boundary ending, const std::string& program, std::string& why);
    /// What a planner is to look at next, once, if there is anything.
    std::optional<PlanRequest> takeRequest() { return kinds_.take(); }
    /// The step that goes on is traced, and where its ops come from is of use.
    bool tracing() const { return trace_ != nullptr; }
    Place& place() { return place_; }

    /// Evicts a storage for an allocation that has no room. None: nothing more can be evicted.
    profiler::native::Room makeRoom(const profiler::native::Shortage& shortage);
    /// The program was under way before its allocations were counted: this tensor is among the live
    /// bytes from now on, and so is whatever else an op shows. Such a program does not fail because
    /// of the limit: what there is no room for passes it.
    void adopt(const c10::TensorImpl& tensor);

private:
    using Storage = std::uint32_t;
    using DtrStorage = planners::DtrStorage;
    using Guard = std::unique_lock<OpLock>;
    /// What the name and the schema of an op say.
    struct OpFacts {
        explicit OpFacts(const profiler::native::Operator& op);
        bool onlyViews;    // it makes, and looks at no bytes
        bool collective;   // see core::isCollective
        bool leavesEmpty;  // see core::leavesEmpty
        bool fills;        // what it writes does not depend on what was there
        bool hasStatistics;
        bool onlyFills;  // see unseen_writes.h
        bool undefined;  // see leavesBytesUndefined
        bool setsAll;    // the same in place: zero_, fill_
    };
    /// An op between its arguments and its results. The room of its lists is used again.
    struct Running {
        const OpFacts* facts = nullptr;
        std::vector<Storage> inputs;   // a storage for each tensor
        std::vector<Storage> missing;  // of these, when it came
        std::vector<Storage> locked;   // of these
        std::vector<Storage> written;  // each once
        std::vector<Storage> unread;   // running statistics, which are left out when it runs again
        std::vector<Output> outputs;
        std::vector<Storage> touched;  // outputs and written, each once
        std::vector<core::StorageIndex> made;
        std::vector<Input> kept;            // inputs, for the tape
        std::vector<Call::Source> exposed;  // inputs whose bytes may change unseen
        bool onTape = false;
        bool elsewhere = false;           // on a GPU, on another stream than what is run again
        OpCosts::Known* onGpu = nullptr;  // what such an op takes there, where it runs on one

        void clear();
    };
    /// What a storage is made from, before it is evicted.
    enum class Sources { Held, Gone, Dear };
    /// A storage on the way to be there: the next link of its chain, and what that op has locked.
    struct Goal {
        Storage storage = 0;
        std::size_t link = 0;
        bool begun = false;  // the link: what was there is locked
        std::size_t next = 0;
        c10::SmallVector<Storage, 4> missing = {};  // the first next of them are locked, too
        c10::SmallVector<Storage, 4> locked = {};
    };

    const OpFacts& factsOf(const profiler::native::Operator& op);
    void prepare(const profiler::native::Passing& op, Values values, Running& running);
    void finish(Values results, std::int64_t cost, Running& running);
    void failed(Running& running);
    void followStream(c10::Device device, const profiler::native::Operator& op,
                      const Tensors& tensors, Running& running);
    void unlock(Running& running);
    bool mayRunAgain(const profiler::native::Passing& op, Values values, const Tensors& tensors,
                     Running& running);
    void aboutToChange(const std::vector<Storage>& changed);
    void unseenWrite(Storage storage);
    void findUnseenWrites(const Tensors& tensors, Running& running);
    bool keepSources(Running& running);
    void noteBorn(const Running& running);
    void bring(const c10::TensorImpl& tensor, bool pins);
    void verifyRecomputed(const TapeOp& op);

    Storage known(c10::StorageImpl* impl);
    Storage add(c10::StorageImpl* impl);
    void watch(Storage storage);
    void keepAsItIs(Storage storage);
    bool present(Storage storage) const;
    bool wanted(Storage storage) const;
    bool wanted(c10::StorageImpl* impl);
    void takeReleased();
    /// The search has not come by it.
    bool isNew(Storage storage) { return std::exchange(found_[storage], search_) != search_; }
    void logReferences();
    void logEnd(const std::vector<Output>& outputs, std::int64_t cost, const Running& running);
    void logStretch(const std::vector<DtrStorage>& kept);
    void released(Storage storage);
    void evict(Storage storage);
    std::optional<std::int64_t> evictOne();
    void note(const profiler::native::Shortage& shortage, const std::optional<std::int64_t>& freed);
    void count(const c10::StorageImpl& impl);

    void follow(Items<Action> actions);
    void follow(const Action& action);
    void traceStep(std::int64_t live);
    void traceOp(const profiler::native::Operator& op, Values arguments,
                 const std::vector<Storage>& inputs);
    void leaveTrace();
    void endTrace();

    void giveUp(Storage storage);
    void hold(Storage storage);
    Sources holdSources(Storage storage);
    void drop(Storage storage);
    void materialize(Storage storage);
    void makeAgain(Storage storage);
    bool nextInput(Goal& goal, std::vector<Goal>& goals);
    void runAgain(const TapeOp& op, Storage wanted, const Items<Input>* waiting);
    void settle();
    void reset();
    void noteThrashing();
    bool hopeless();

    const planners::DtrHeuristic heuristic_;
    const bool planned_, keepsLimit_;
    bool adopts_ = false;
    OpLock lock_;
    bool acting_ = true;
    std::thread::id inFlight_;  // where an op runs, without the lock; none runs
    const profiler::native::Operator* running_ = nullptr;  // the last op that has begun
    std::unordered_map<const profiler::native::Operator*, OpFacts> facts_;
    std::vector<std::unique_ptr<Running>> spare_;
    std::vector<Storage> ahead_, passed_, sources_;  // of a search, empty between two
    std::vector<core::StorageIndex> madeAgain_;      // likewise
    bool keepsAll_ = false;                          // until the step ends
    planners::Evictor evictor_;
    Slots slots_;
    Tape tape_;
    Streams streams_;
    OpCosts costs_;
    std::vector<bool> unfilled_;   // storages that ops which only fill made, and no op has read
    std::vector<bool> leftEmpty_;  // of these, those that were made empty
    std::vector<bool> made_;       // by ops since the last step
    std::vector<bool> gradient_;   // maybe: made while autograd records nothing
    std::vector<bool> watched_;    // the agent tells when its bytes go
    std::vector<bool> needed_;     // something that is not there is made from it; so it can be
    std::vector<std::uint64_t> found_;  // by which search
    std::uint64_t search_ = 0;
    std::size_t room_ = 0;  // storages that the evictor and the slots have room for
    Guides guides_;
    StepKinds kinds_;
    Place place_;
    std::unique_ptr<StepTrace> trace_;  // of the step that goes on
    bool tracing_ = false;              // the op that runs
    std::int64_t opPeak_ = 0, opEvicted_ = 0;
    std::int64_t evictingNs_ = 0;  // within the op that runs
    std::int64_t opsNs_ = 0;       // of the step, recomputations apart
    int regions_ = 0;              // of compilers, that the program is in
    bool saidThrashing_ = false;
    bool hopeless_ = false;  // until the step ends; where the program is not ended by it, for good
    bool atAnyPrice_ = false;  // until the step ends
    std::vector<std::int64_t> tags_;
    std::unique_ptr<DecisionLog> log_;
};

}  // namespace hw::executor::live
