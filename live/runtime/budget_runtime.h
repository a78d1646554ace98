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
#include "op_costs.h"
#include "op_lock.h"
#include "plan_followers.h"
#include "planners/dtr/evictor.h"
#include "slots.h"
#include "step_kinds.h"
#include "streams.h"
#include "tape.h"

namespace hw::live::runtime {

class BudgetRuntime final : public Engine {
public:
    /// `agent`, whose allocator knows the budget, outlives the runtime. `planned`: steps are traced
    /// for planners. `keepsLimit`: an allocation that would pass the agent's limit does not
    /// fail, and each step goes under DTR; else those do in which something was evicted.
    BudgetRuntime(const profiler::native::AgentApi& agent, planners::DtrHeuristic heuristic,
                  bool planned, bool keepsLimit = true);

    Boundary boundary() override;
    void begin() override;
    void forward() override;
    void interrupt(const std::string& why) override;
    void region(const std::string& what) override;
    void release() override;
    void op(const profiler::native::Passing& op, torch::jit::Stack* stack) override;
    void opBeside(const profiler::native::Passing& op, torch::jit::Stack* stack) override;
    void touch(const c10::TensorImpl& tensor, bool stays) override;
    OpLock& lock() override { return lock_; }
    bool forked() override;
    void hand(const c10::TensorImpl& tensor) override;
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
    SourceLines& lines() { return lines_; }
    /// In the middle of a step so many storages and ops stay known whatever they are, and more if
    /// they are at most so many times as many as the storages that are alive.
    void keepKnown(std::size_t few, std::size_t times) {
        few_ = few;
        times_ = times;
    }
    /// What the bookkeeping has come to.
    struct Work {
        std::int64_t visited = 0;   // storages, to find what others are made from
        std::int64_t moved = 0;     // storages and ops, to keep less of them
        std::int64_t looks = 0;     // at storages, for the trace of the step that goes on
        std::int64_t unlocked = 0;  // ops that waited for what they read
        std::size_t storages = 0;   // that are known
    };
    Work work() const {
        return {visited_, moved_, trace_ ? trace_->looks() : 0, unlocked_, tape_.storages()};
    }

    /// Evicts a storage for an allocation that has no room. None: nothing more can be evicted.
    profiler::native::Reclaim makeRoom(const profiler::native::Shortage& shortage);
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
        Varies varies;
        bool setsAll;  // the same in place: zero_, fill_
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
        std::vector<Input> kept;             // inputs, for the tape
        std::vector<Call::Source> exposed;   // inputs whose bytes may change unseen
        std::vector<Call::Source> lookedAt;  // parameters likewise
        std::vector<Storage> owned;          // those of which its call has copies

        /// It updates running statistics, which is no write of its.
        bool updates() const { return !unread.empty(); }
        /// It writes what it is to write again when it runs again.
        bool writes() const { return !written.empty() && !updates(); }
        /// It reads the storage again when it runs again.
        bool readsAgain(Storage s) const { return !contains(unread, s) && !contains(owned, s); }
        std::int32_t line = SourceLines::kNone;
        bool onTape = false;
        bool varies = false;              // see Varies
        bool doubtful = false;            // read what may have changed when it is to run again
        bool unlocked = false;            // while it waited for what is missing
        bool elsewhere = false;           // on a GPU, on another stream than what is run again
        OpCosts::Known* onGpu = nullptr;  // what such an op takes there, where it runs on one

        void clear();
    };
    /// When an op ran, by the agent's clock, and what it is taken to cost.
    struct OpTimes {
        std::int64_t began = 0, ended = 0, cost = 0;
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

    /// A storage on the way to what another one is made from.
    struct Passed {
        Storage storage;
        std::size_t from;          // which one it was found from
        std::int64_t bytes = 0;    // of sources that were found from it
        std::int64_t atLeast = 0;  // as it was known before
        Storage shared = kNobody;
    };
    /// What a storage is made from, at least, when that was last looked up.
    struct Below {
        std::int64_t bytes = 0;    // of what would have to be held for it
        Storage shared = kNobody;  // one that is shared with autograd, if any is
        std::int64_t heldBefore = 0;
        std::uint64_t cuts = 0;
    };
    /// Which storages stay known, how which of them are made, and which of them others, that are
    /// away, are made from.
    struct Keeping {
        std::vector<bool> kept, makes, needed;
    };
    /// One that stays known under another number.
    struct Kept {
        DtrStorage state;
        bool needed = false, made = false, gradient = false, unfilled = false, watched = false;
    };

    planners::Evictor newEvictor(std::size_t storages) const;
    const OpFacts& factsOf(const profiler::native::Operator& op);
    void prepare(const profiler::native::Passing& op, Values values, Running& running);
    OpTimes runPrepared(const profiler::native::Passing& op, torch::jit::Stack* stack,
                        Running& running, Guard& guard);
    // budget_results.cpp
    void finish(Values results, std::int64_t cost, Running& running);
    void noteResults(const Tensors& results, Running& running);
    void decideTape(Running& running);
    void link(std::int64_t cost, Running& running);
    void noteResized(Running& running);
    void noteWritten(Running& running);
    void addToTape(std::int64_t cost, Running& running);
    void settleMade(Running& running);
    void keepLists(const Tensors& results);
    NumberedTensors numbered(const Tensors& tensors, const std::vector<Storage>& storages) const;
    void endFollowed(const Tensors& results, const std::vector<Output>& outputs);
    void failed(Running& running);
    void followStream(c10::Device device, const profiler::native::Operator& op,
                      const Tensors& tensors, Running& running);
    void unlock(Running& running);
    bool mayRunAgain(const profiler::native::Passing& op, Values values, const Tensors& tensors,
                     Running& running);
    void aboutToChange(const std::vector<Storage>& changed);
    void unseenWrite(Storage storage);
    void findUnseenWrites(const Tensors& tensors, Running& running);
    void noteStatistics(const profiler::native::Operator& op, Values values, Running& running);
    bool keepSources(Running& running);
    void doubt(Storage storage);
    void doubtReaders(Storage source);
    void loseTrust();
    void noteBorn(const Running& running);
    void bring(c10::StorageImpl* impl, bool pins);
    void expose(c10::StorageImpl* impl);
    [[gnu::cold]] void bringHidden(const profiler::native::Operator& op, Values values,
                                   const StorageList& hidden);
    Mismatch mismatchOf(const TapeOp& op) const;
    void verifySources(const TapeOp& op);
    void verifyRecomputed(const TapeOp& op);
    bool noteVaried(const TapeOp& op);

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
    void logStretch(const std::vector<Kept>& kept);
    void released(Storage storage);
    void evict(Storage storage);
    std::optional<std::int64_t> evictOne();
    void note(const profiler::native::Shortage& shortage, const std::optional<std::int64_t>& freed);
    void count(const c10::StorageImpl& impl);

    // budget_actions.cpp
    struct Performer;
    void perform(Items<Action> actions);
    void traceStep(std::int64_t live);
    void traceOp(const profiler::native::Operator& op, Values arguments,
                 const std::vector<Storage>& inputs);
    void leaveTrace();
    void endTrace();

    void giveUp(Storage storage);
    bool loseWith(Items<Storage> gone);
    void forget(Storage storage);
    void hold(Storage storage);
    Sources holdSources(Storage storage);
    void findSources(Storage storage);
    void findInput(std::size_t from, Storage input);
    bool isShared(Storage source) const;
    std::int64_t knownBelow(Storage storage) const;
    bool isDear(Storage storage, std::int64_t size) const;
    void noteBelow();
    void drop(Storage storage);
    void materialize(Storage storage);
    void makeAgain(Storage storage);
    bool nextInput(Goal& goal, std::vector<Goal>& goals);
    void bring(Running& running);
    bool unlockWaiting();
    void runAgain(const TapeOp& op, Storage wanted, const Items<Input>* waiting);
    void settle();
    void compact();
    bool muchIsGone() const;
    Keeping keepingAway(bool whole) const;
    void keepAlive(Keeping& keeping);
    bool keepMakeable(Storage storage, Keeping& keeping, std::vector<bool>& cut) const;
    void releaseUnneeded(const Keeping& keeping);
    void renumber(const Keeping& keeping, bool midStep);
    void takeOver(const std::vector<Kept>& kept);
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
    std::vector<Passed> passed_;  // of a search, like the lists that follow
    std::vector<std::size_t> ahead_;
    std::vector<Storage> sources_, gone_;
    std::int64_t sourceBytes_ = 0;
    bool dear_ = false;
    std::vector<core::StorageIndex> madeAgain_;  // likewise
    bool keepsAll_ = false;                      // until the step ends
    planners::Evictor evictor_;
    Slots slots_;
    Tape tape_;
    Streams streams_;
    OpCosts costs_;
    std::vector<bool> unfilled_;  // storages that ops which only fill made, and no op has read
    std::vector<bool> made_;      // by ops since the last step
    std::vector<bool> gradient_;  // maybe: made while autograd records nothing
    std::vector<bool> watched_;   // the agent tells when its bytes go
    std::vector<bool> needed_;    // something that is not there is made from it; so it can be
    std::vector<std::uint64_t> found_;  // by which search
    std::uint64_t search_ = 0;
    std::vector<Below> below_;
    std::int64_t heldBytes_ = 0;  // by which what Below says may have fallen since
    std::uint64_t cuts_ = 1;      // how often nothing of it holds any more
    std::int64_t visited_ = 0, moved_ = 0, unlocked_ = 0;
    int underWay_ = 0;                    // ops
    int unlocks_ = 0;                     // since the last op of the program began
    Running* waiting_ = nullptr;          // an op, for what it reads
    std::vector<Goal>* goals_ = nullptr;  // that are under way
    std::size_t few_ = 4096, times_ = 4;  // see keepKnown()
    std::size_t checkAt_ = 0;             // so many are known: whether few of them are alive
    std::int64_t longestOps_ = 0;         // of a step so far
    std::size_t room_ = 0;                // storages that the evictor and the slots have room for
    PlanFollowers followers_;
    StepKinds kinds_;
    Place place_;
    SourceLines lines_{agent_};
    std::unique_ptr<StepTrace> trace_;  // of the step that goes on
    bool tracing_ = false;              // the op that runs
    std::int64_t opPeak_ = 0, opEvicted_ = 0;
    std::int64_t evictingNs_ = 0;    // within the op that runs
    std::int64_t opsNs_ = 0;         // of the step, recomputations apart
    std::vector<Storage> doubtful_;  // made from bytes that may change: they go last of all
    int regions_ = 0;                // of compilers, that the program is in
    bool saidThrashing_ = false;
    bool hopeless_ = false;  // until the step ends; where the program is not ended by it, for good
    bool atAnyPrice_ = false;  // until the step ends
    std::vector<std::int64_t> tags_;
    std::unique_ptr<DecisionLog> log_;
};

}  // namespace hw::live::runtime
