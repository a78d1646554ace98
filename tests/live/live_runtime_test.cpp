// SPDX-License-Identifier: MIT
// The live runtime in a program: whatever the plan does and wherever the program leaves it, every
// bit is the one of the program alone.
#include "budget_runtime.h"
#include "runtime.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <unordered_map>

#include "core/memory/evaluate.h"
#include "core/memory/rebuild.h"
#include "core/memory/schedule_builder.h"
#include "core/plan/codec.h"
#include "observer.h"
#include "planners/dtr/live_replay.h"
#include "planners/echo/codecs.h"
#include "planners/schedule/free_early.h"
#include "profiler/recorder/live_program.h"
#include "profiler/recorder/step_trace.h"
#include "tests/live/op_trace.h"
#include "tests/live/random_program.h"

namespace hw::test {
namespace {

using namespace core;
using executor::live::Boundary;
using executor::live::BudgetRuntime;
using executor::live::Engine;
using executor::live::Runtime;
namespace native = profiler::native;

const native::AgentApi& silentAgent() {
    static const native::AgentApi agent = [] {
        native::AgentApi api{};
        api.size = sizeof(api);
        api.pause = [](int) {};
        api.block = [](std::uint64_t) -> std::int64_t { return 0; };
        api.window = [](std::int64_t*) {};
        api.now = []() -> std::int64_t { return 1; };
        return api;
    }();
    return agent;
}

/// The processor's allocator, which tells of tagged blocks that are freed.
class Blocks final : public c10::Allocator {
public:
    static Blocks& use() {
        static Blocks& blocks = *new Blocks;  // blocks outlive everything
        if (c10::GetAllocator(c10::DeviceType::CPU) != &blocks)
            c10::SetAllocator(c10::DeviceType::CPU, &blocks, 1);
        return blocks;
    }

    c10::DataPtr allocate(std::size_t bytes) const override {
        void* const data = bytes == 0 ? nullptr : std::aligned_alloc(64, (bytes + 63) / 64 * 64);
        return {data, data, &Blocks::give, c10::DeviceType::CPU};
    }
    c10::DeleterFnPtr raw_deleter() const override { return &Blocks::give; }

    void tag(std::uint64_t address, std::uint64_t tag) {
        const std::lock_guard guard(lock_);
        tags_[reinterpret_cast<void*>(address)] = tag;
    }
    /// Those that were freed since the last time.
    std::vector<std::uint64_t> take() {
        const std::lock_guard guard(lock_);
        pending = 0;
        return std::exchange(freed_, {});
    }
    std::atomic<std::size_t> pending{0};

private:
    static void give(void* data) {
        Blocks& blocks = use();
        {
            const std::lock_guard guard(blocks.lock_);
            if (const auto tagged = blocks.tags_.find(data); tagged != blocks.tags_.end()) {
                blocks.freed_.push_back(tagged->second);
                blocks.tags_.erase(tagged);
                ++blocks.pending;
            }
        }
        std::free(data);
    }

    std::mutex lock_;
    std::unordered_map<void*, std::uint64_t> tags_;
    std::vector<std::uint64_t> freed_;
};

/// Asks for room at any time, as allocations within ops do: whenever it is asked for the time.
struct Pressure {
    BudgetRuntime* runtime = nullptr;
    std::mt19937 random;
    unsigned oneIn = 4;
    std::int64_t time = 0;
    bool asking = false;
    bool loses = true;  // some of what was freed
};
Pressure gPressure;

std::int64_t pressingNow() {
    gPressure.time += 1 + gPressure.random() % 1000;
    if (gPressure.runtime == nullptr || std::exchange(gPressure.asking, true))
        return gPressure.time;
    for (unsigned room = gPressure.random() % gPressure.oneIn == 0 ? gPressure.random() % 8 : 0;
         room > 0; --room)
        gPressure.runtime->makeRoom({1, 0, 0});
    gPressure.asking = false;
    return gPressure.time;
}

const native::AgentApi& pressingAgent() {
    static const native::AgentApi agent = [] {
        native::AgentApi api = silentAgent();
        api.now = pressingNow;
        api.tag = [](std::uint64_t address, std::uint64_t tag, int, std::int64_t*) {
            Blocks::use().tag(address, tag);
            return 1;
        };
        api.pending = &Blocks::use().pending;
        // It may have lost some: then everything is looked at.
        api.freed = [](std::int64_t* out) -> std::int64_t {
            const std::vector<std::uint64_t> tags = Blocks::use().take();
            const bool lost = gPressure.loses && gPressure.random() % 4 == 0;
            if (lost || tags.size() > native::kMostFreed) return -1;
            std::copy(tags.begin(), tags.end(), out);
            return static_cast<std::int64_t>(tags.size());
        };
        api.begin = [](std::int64_t* figures) { std::fill_n(figures, 5, 0); };
        api.end = api.begin;
        api.onShortage = [](native::MakeRoom) { gPressure.runtime = nullptr; };
        return api;
    }();
    return agent;
}

OpTrace* gTrace = nullptr;
Engine* gEngine = nullptr;
Runtime* gRuntime = nullptr;  // where it is one

void traceOp(const native::Passing& op, torch::jit::Stack* stack) {
    gTrace->op(op.handle, op.below, stack);
}
void carryOut(const native::Passing& op, torch::jit::Stack* stack) {
    gEngine->op(op, stack);
}

void carryOutBeside(const native::Passing& op, torch::jit::Stack* stack) {
    gEngine->opBeside(op, stack);
}

std::map<native::Turn, std::int64_t> gTurns;  // of typed ops

const native::TypedHook kTyped{[](const native::Passing& op, const native::Arguments& arguments,
                                  c10::function_ref<torch::jit::Stack()> box) {
                                   const native::Turn turn =
                                       gRuntime->beginTyped(op, arguments, box);
                                   ++gTurns[turn];
                                   return turn;
                               },
                               [](const native::Tensors& results) { gRuntime->endTyped(results); },
                               [] { gRuntime->failTyped(); }};

/// What it calls is seen by `hook`.
template <class Work>
void watched(native::OpHook hook, const Work& work) {
    native::observeWith(hook, carryOutBeside,
                        hook == carryOut && gRuntime != nullptr ? &kTyped : nullptr);
    work();
    native::leave();
}

struct Recorded {
    TrainingGraph graph;
    std::vector<TensorRow> tensors;
};

/// The second step of a program, which the first one has made what all others find.
Recorded record(const Program& program, std::uint64_t seed) {
    Machine machine(seed, {});
    machine.step(program);
    OpTrace trace;
    gTrace = &trace;
    watched(traceOp, [&] { machine.step(program); });
    Recorded recorded{trace.finish(), trace.tensors()};
    return recorded;
}

/// Drops at random, and so recomputes. A view that is read after a write to what it looks at can be
/// beyond the builder: the judge says so, and another schedule is drawn.
Schedule randomSchedule(const TrainingGraph& graph, std::mt19937& random) {
    const RebuildInfo info = rebuildInfo(graph);
    ScheduleBuilder builder(graph, info);
    const unsigned eagerness = 2 + random() % 6;
    const auto lifetime = random() % 2 == 0 ? ScheduleBuilder::Lifetime::LastUse
                                            : ScheduleBuilder::Lifetime::Rebuilds;
    builder.setLifetime([&](StorageIndex) { return lifetime; });
    while (!builder.done()) {
        builder.computeNext();
        for (StorageIndex s = 0; s < static_cast<StorageIndex>(graph.storages.size()); ++s)
            if (builder.resident(s) && info.rematerializable[s] && random() % eagerness == 0)
                builder.drop(s);
    }
    Schedule schedule = builder.finish();
    return random() % 2 == 0 ? schedule : planners::freeEarly(graph, std::move(schedule));
}

std::string runAlone(const std::vector<Program>& steps, std::uint64_t seed) {
    Machine machine(seed, {});
    std::string state;
    for (const Program& step : steps) {
        machine.step(step);
        state += machine.state();
    }
    return state;
}

constexpr unsigned kHeuristics = 7;  // of DTR

struct Figures {
    std::int64_t steps = 0, planned = 0, recomputed = 0, restored = 0;
    std::int64_t within = 0, evicted = 0;  // a budget
    std::int64_t bySize = 0, requests = 0;
    std::int64_t rescued = 0, refused = 0, freed = 0;  // allocations that had failed; bytes
    std::int64_t replayed = 0;                         // evictions
    std::map<std::string, int> encodings;              // planned, by codec
};

std::string runLive(const std::vector<Program>& steps, std::uint64_t seed, Engine& runtime,
                    Figures& figures) {
    gEngine = &runtime;
    gRuntime = dynamic_cast<Runtime*>(&runtime);
    Machine machine(seed, {[&](const at::Tensor& t, bool stays) {
                               runtime.touch(*t.unsafeGetTensorImpl(), stays);
                           },
                           [&] { runtime.forward(); }, native::observeBeside});
    std::string state;
    runtime.begin();
    for (const Program& step : steps) {
        watched(carryOut, [&] { machine.step(step); });
        state += machine.state();
        const Boundary boundary = runtime.boundary();
        ++figures.steps;
        figures.planned += boundary == Boundary::Planned ? 1 : 0;
        figures.bySize += boundary == Boundary::BySize ? 1 : 0;
        figures.within += boundary == Boundary::Budget || boundary == Boundary::Planned ||
                                  boundary == Boundary::BySize
                              ? 1
                              : 0;
        if (boundary == Boundary::Middle) continue;
        figures.evicted += runtime.figures().evictions;
        const executor::live::Rescue& rescue = runtime.figures().rescue;
        EXPECT_EQ(rescue.op.empty(), rescue.allocations + rescue.refused == 0);
        EXPECT_LE(rescue.evictions, runtime.figures().evictions);
        figures.rescued += rescue.allocations;
        figures.refused += rescue.refused;
        figures.freed += rescue.freedBytes;
        figures.recomputed += runtime.figures().recomputedOps;
        figures.restored += runtime.figures().restoredBytes;
        runtime.begin();
    }
    runtime.release();
    return state;
}

/// With some of the encodings that it has room for.
Schedule encoded(const TrainingGraph& graph, const Schedule& schedule, std::mt19937& random) {
    std::vector<planners::CodecSite> sites = planners::codecSites(graph);
    std::erase_if(sites, [&](const planners::CodecSite&) { return random() % 3 == 0; });
    Schedule with = planners::withCodecs(graph, schedule, sites);
    return evaluate(graph, with).valid ? with : schedule;
}

std::string liveProgramOf(const Recorded& recorded, std::mt19937& random, Figures& figures) {
    Plan plan;
    do plan.schedule = randomSchedule(recorded.graph, random);
    while (!evaluate(recorded.graph, plan.schedule).valid);
    plan.schedule = encoded(recorded.graph, plan.schedule, random);
    for (const Action& action : plan.schedule)
        figures.encodings[action.codec] += action.kind == ActionKind::Encode ? 1 : 0;
    const auto program = profiler::liveProgram(recorded.graph, plan, recorded.tensors);
    EXPECT_TRUE(program) << program.error().what;
    return program->bytes;
}

void runCase(unsigned number, Figures& figures) {
    SCOPED_TRACE("case " + std::to_string(number));
    std::mt19937 random(number);
    const Program usual = randomProgram(random, 6 + random() % 30);
    const Program other = changed(usual, random);
    const Recorded recorded = record(usual, number);
    if (recorded.graph.ops.empty()) return;
    Runtime runtime(silentAgent());
    std::string why;
    ASSERT_TRUE(runtime.add(liveProgramOf(recorded, random, figures), why)) << why;
    if (random() % 3 == 0) {
        const Recorded second = record(other, number);
        if (!second.graph.ops.empty()) {
            ASSERT_TRUE(runtime.add(liveProgramOf(second, random, figures), why)) << why;
        }
    }
    std::vector<Program> steps{usual, usual};
    for (int i = 0; i < 3; ++i)
        steps.push_back(random() % 2 == 0   ? usual
                        : random() % 2 == 0 ? other
                                            : changed(usual, random));
    const std::string alone = runAlone(steps, number);
    EXPECT_TRUE(runLive(steps, number, runtime, figures) == alone);
    EXPECT_TRUE(runtime.fault() == "released") << runtime.fault();
}

/// Allocations ask for room at any time.
std::string runPressed(const std::vector<Program>& steps, unsigned number, BudgetRuntime& runtime,
                       std::mt19937& random, Figures& figures) {
    gPressure.runtime = &runtime;
    gPressure.random.seed(number);
    gPressure.oneIn = 1 + random() % 5;
    std::string results = runLive(steps, number, runtime, figures);
    gPressure.runtime = nullptr;
    return results;
}

void runWithin(unsigned number, Figures& figures) {
    SCOPED_TRACE("case " + std::to_string(number));
    std::mt19937 random(number);
    std::vector<Program> steps;
    for (int i = 0; i < 4; ++i)
        steps.push_back(i == 0 || random() % 2 == 0 ? randomProgram(random, 6 + random() % 40)
                                                    : changed(steps.front(), random));
    const std::string alone = runAlone(steps, number);
    BudgetRuntime runtime(pressingAgent(),
                          static_cast<planners::DtrHeuristic>(random() % kHeuristics), true);
    std::string why;
    if (random() % 2 == 0) {
        const Recorded recorded = record(steps.front(), number);
        if (!recorded.graph.ops.empty()) {
            ASSERT_TRUE(
                runtime.follow(0, Boundary::Planned, liveProgramOf(recorded, random, figures), why))
                << why;
        }
    }
    EXPECT_TRUE(runPressed(steps, number, runtime, random, figures) == alone);
}

/// Without a budget: allocations fail at any time, some again and again.
void runRescued(unsigned number, Figures& figures) {
    SCOPED_TRACE("case " + std::to_string(number));
    std::mt19937 random(number);
    const std::vector<Program> steps{randomProgram(random, 6 + random() % 40),
                                     randomProgram(random, 6 + random() % 40)};
    const std::string alone = runAlone(steps, number);
    BudgetRuntime runtime(pressingAgent(), planners::DtrHeuristic::EqClass, false, false);
    if (number % 3 == 0) {  // nothing fails
        Figures quiet;
        EXPECT_TRUE(runLive(steps, number, runtime, quiet) == alone);
        EXPECT_EQ(quiet.within + quiet.evicted + quiet.rescued + quiet.refused, 0);
        return;
    }
    EXPECT_TRUE(runPressed(steps, number, runtime, random, figures) == alone);
}

/// Several plans side by side, of programs that begin alike, and steps of kinds without any.
void runWithSeveralPlans(unsigned number, Figures& figures) {
    SCOPED_TRACE("case " + std::to_string(number));
    std::mt19937 random(number);
    std::vector<Program> kinds{randomProgram(random, 6 + random() % 40)};
    for (unsigned i = 1 + random() % 5; i > 0; --i)
        kinds.push_back(random() % 4 == 0 ? randomProgram(random, 6 + random() % 40)
                                          : changed(kinds.front(), random));
    std::vector<Program> steps{kinds.front()};  // as record() has it, for what all others find
    for (int i = 0; i < 6; ++i) steps.push_back(kinds[random() % kinds.size()]);
    const std::string alone = runAlone(steps, number);
    BudgetRuntime runtime(pressingAgent(), planners::DtrHeuristic::EqClass, true);
    std::string why;
    for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
        const Recorded recorded = record(kinds[kind], number);
        if (recorded.graph.ops.empty() || random() % 4 == 0) continue;
        const Boundary ending = random() % 2 == 0 ? Boundary::Planned : Boundary::BySize;
        ASSERT_TRUE(runtime.follow(static_cast<std::int64_t>(kind % 4), ending,
                                   liveProgramOf(recorded, random, figures), why))
            << why;
    }
    EXPECT_TRUE(runPressed(steps, number, runtime, random, figures) == alone);
    while (runtime.takeRequest()) ++figures.requests;
}

/// The first one, and how many.
std::pair<unsigned, unsigned> wantedCases() {
    const char* const wanted = std::getenv("HIGHWATER_LIVE_CASES");
    const char* const from = std::getenv("HIGHWATER_LIVE_FIRST");
    const unsigned first = from != nullptr ? std::strtoul(from, nullptr, 10) : 0;
    const unsigned cases = wanted != nullptr ? std::strtoul(wanted, nullptr, 10) : 350;
    return {first, cases};
}

class LiveRuntime : public ::testing::Test {
protected:
    static void SetUpTestSuite() { ASSERT_TRUE(native::prepare()); }
};

// As long as the step: the stack of the thread is no measure of what can be made again.
TEST_F(LiveRuntime, RestoresWhatTheLongestChainMade) {
    using Kind = Instruction::Kind;
    constexpr std::size_t kOps = 12'000, kLast = 3;
    Program program(kOps, {Kind::Sigmoid, kLast, kLast});
    program.front().a = 0;  // a parameter
    program.push_back({Kind::Sum, kLast + 1, 0});
    const Recorded recorded = record(program, 1);
    ASSERT_EQ(recorded.graph.ops.size(), kOps + 1);
    const StorageIndex last =
        recorded.graph.storageOf(recorded.graph.ops[kOps - 1].outputs.front().tensor);
    Plan plan;
    for (OpIndex op = 0; op < static_cast<OpIndex>(kOps); ++op)
        plan.schedule.push_back(Action::compute(op));
    plan.schedule.push_back(Action::free(last));
    plan.schedule.push_back(Action::compute(kOps));
    const auto compiled = profiler::liveProgram(recorded.graph, plan, recorded.tensors);
    ASSERT_TRUE(compiled) << compiled.error().what;
    Runtime runtime(silentAgent());
    std::string why;
    ASSERT_TRUE(runtime.add(compiled->bytes, why)) << why;
    Figures figures;
    const std::string live = runLive({program, program}, 1, runtime, figures);
    EXPECT_TRUE(live == runAlone({program, program}, 1));
    EXPECT_GT(figures.restored, 0);
}

/// Drops one storage and makes it again; then the parameters are written, and `last` runs.
Program stepWithTail(Instruction::Kind last) {
    using Kind = Instruction::Kind;
    return {{Kind::Forward},
            {Kind::Sigmoid, 3, 0},
            {Kind::Sigmoid, 4, 3},
            {Kind::Mul, 5, 3, 4},
            {Kind::AddInPlace, 0, 0, 5},
            {Kind::AddInPlace, 0, 1, 5},
            {Kind::AddInPlace, 0, 2, 5},
            {last, 6, 5}};
}

std::string planWithTail(const Program& program) {
    const Recorded recorded = record(program, 1);
    const auto& ops = recorded.graph.ops;
    Plan plan;
    for (OpIndex op = 0; op < static_cast<OpIndex>(ops.size()); ++op) {
        if (ops[op].name == "aten::mul.Tensor") plan.schedule.push_back(Action::recompute(0, {0}));
        plan.schedule.push_back(Action::compute(op));
        if (op == 1)
            plan.schedule.push_back(
                Action::free(recorded.graph.storageOf(ops[0].outputs.front().tensor)));
    }
    const auto compiled = profiler::liveProgram(recorded.graph, plan, recorded.tensors);
    EXPECT_TRUE(compiled) << compiled.error().what;
    return compiled->bytes;
}

/// Steps under plans for some of them: results as alone.
Figures runTails(const std::vector<Program>& planned, const std::vector<Program>& steps) {
    Runtime runtime(silentAgent());
    std::string why;
    for (const Program& each : planned) EXPECT_TRUE(runtime.add(planWithTail(each), why)) << why;
    const std::string alone = runAlone(steps, 1);
    Figures figures;
    gTurns.clear();
    EXPECT_TRUE(runLive(steps, 1, runtime, figures) == alone);
    return figures;
}

// Its ops are compared with the plan's all the same.
TEST_F(LiveRuntime, FollowsNoStorageAfterAPlansLastAction) {
    const Program usual = stepWithTail(Instruction::Kind::Relu);
    const Program other = stepWithTail(Instruction::Kind::Sum);
    const Figures figures = runTails({usual}, {usual, usual, other, usual});
    EXPECT_EQ(figures.planned, 3);
    EXPECT_EQ(figures.recomputed, 4);
    EXPECT_EQ(figures.restored, 0);
    // Not in the first step, in which all is followed, nor where the first parameter is written,
    // before which the plan looks after what was made of it.
    EXPECT_EQ(gTurns[native::Turn::Unseen], 3 + 2 + 3);
}

// Two ops on what the plan leaves alone, between its actions.
TEST_F(LiveRuntime, FollowsNoStorageThatThePlanHasNoUseFor) {
    using Kind = Instruction::Kind;
    Program usual = stepWithTail(Kind::Relu);
    usual.insert(usual.begin() + 3, {{Kind::Sigmoid, 7, 1}, {Kind::Relu, 8, 7}});
    // Where the plan has storages of no use to it, one that it has dropped.
    Program other = usual;
    other[4] = {Kind::Relu, 8, 3};
    const Figures figures = runTails({usual}, {usual, usual, other, usual});
    EXPECT_EQ(figures.planned, 3);
    EXPECT_GT(figures.restored, 0);
    // In the second step and the last one both and the tail, in the third one the first.
    EXPECT_EQ(gTurns[native::Turn::Unseen], (2 + 3) + 1 + (2 + 3));
    EXPECT_EQ(figures.recomputed, 3);
}

TEST_F(LiveRuntime, GoesOnWithAnotherPlanAfterTheLastActionOfOne) {
    const Program usual = stepWithTail(Instruction::Kind::Relu);
    const Program other = stepWithTail(Instruction::Kind::Sum);
    const Figures figures = runTails({usual, other}, {usual, usual, other, usual, other});
    EXPECT_EQ(figures.planned, 5);
    EXPECT_EQ(figures.recomputed, 5);
    EXPECT_GT(gTurns[native::Turn::Unseen], 0);
}

// HIGHWATER_LIVE_CASES: how many programs (10,000 take some minutes).
TEST_F(LiveRuntime, LeavesEveryBitOfRandomProgramsAsItIs) {
    const auto [first, cases] = wantedCases();
    Figures figures;
    for (unsigned i = first; i < first + cases && !HasFailure(); ++i) runCase(i, figures);
    // Programs do keep to their plans, plans recompute, and leaving them restores.
    EXPECT_GT(figures.planned, figures.steps / 3);
    EXPECT_GT(figures.recomputed, figures.planned);
    EXPECT_GT(figures.restored, 0);
    // Ops come by typed, planned or not, and boxed where they are not the planned ones.
    EXPECT_GT(gTurns[native::Turn::Seen], 10 * figures.planned);
    EXPECT_GT(gTurns[native::Turn::Unseen], 0);
    EXPECT_GT(gTurns[native::Turn::Boxed], 0);
    for (const std::string_view codec : {kMaskCodec, kSignCodec, kIndexCodec})
        EXPECT_GT(figures.encodings[std::string(codec)], static_cast<int>(cases / 200)) << codec;
    RecordProperty("planned", std::to_string(figures.planned));
}

// The same under DTR, with evictions wherever an allocation could be. HIGHWATER_LIVE_CASES as
// above.
TEST_F(LiveRuntime, LeavesEveryBitOfRandomProgramsWithinABudgetAsItIs) {
    const auto [first, cases] = wantedCases();
    Figures figures;
    for (unsigned i = first; i < first + cases && !HasFailure(); ++i) runWithin(i, figures);
    EXPECT_EQ(figures.within, figures.steps);
    EXPECT_GT(figures.evicted, figures.steps);
    EXPECT_GT(figures.recomputed, figures.steps);
    EXPECT_GT(figures.planned, figures.steps / 16);
    EXPECT_EQ(figures.rescued + figures.refused, 0);  // keeping a budget is no rescue
}

// HIGHWATER_LIVE_CASES as above.
TEST_F(LiveRuntime, LeavesEveryBitWhereAllocationsFailAsItIs) {
    const auto [first, cases] = wantedCases();
    Figures figures;
    for (unsigned i = first; i < first + cases / 2 && !HasFailure(); ++i) runRescued(i, figures);
    EXPECT_GT(figures.within, figures.steps / 4);
    EXPECT_GT(figures.rescued, figures.steps);
    EXPECT_GT(figures.refused, 0);
    EXPECT_GT(figures.freed, figures.rescued);
}

// HIGHWATER_LIVE_CASES as above.
TEST_F(LiveRuntime, LeavesEveryBitOfRandomProgramsUnderSeveralPlansAsItIs) {
    const auto [first, cases] = wantedCases();
    Figures figures;
    for (unsigned i = first; i < first + cases && !HasFailure(); ++i)
        runWithSeveralPlans(i, figures);
    EXPECT_EQ(figures.within, figures.steps);
    EXPECT_GT(figures.planned, figures.steps / 16);
    EXPECT_GT(figures.bySize, figures.steps / 16);
    EXPECT_GT(figures.evicted, figures.steps);
    EXPECT_GT(figures.requests, static_cast<std::int64_t>(cases) / 2);
}

/// The log of what a program does under DTR, of which the simulation makes its own evictions.
void replayWithin(unsigned number, Figures& figures) {
    SCOPED_TRACE("case " + std::to_string(number));
    const std::string path = ::testing::TempDir() + "decisions-" + std::to_string(getpid());
    std::mt19937 random(number);
    std::vector<Program> steps;
    for (int i = 0; i < 3; ++i) steps.push_back(randomProgram(random, 6 + random() % 60));
    setenv("HIGHWATER_DTR_LOG", path.c_str(), 1);
    const auto heuristic = static_cast<planners::DtrHeuristic>(number % kHeuristics);
    BudgetRuntime runtime(pressingAgent(), heuristic, number % 2 == 0);
    unsetenv("HIGHWATER_DTR_LOG");
    runPressed(steps, number, runtime, random, figures);
    std::ifstream file(path);
    const auto log = planners::readLiveLog(file);
    std::filesystem::remove(path);
    ASSERT_TRUE(log) << log.error().what;
    EXPECT_EQ(log->heuristic, heuristic);
    for (const planners::LiveStretch& stretch : log->stretches) {
        SCOPED_TRACE("stretch " + std::to_string(&stretch - log->stretches.data()));
        const planners::Replayed replayed = planners::replay(stretch, heuristic);
        const auto [one, other] = std::mismatch(replayed.evicted.begin(), replayed.evicted.end(),
                                                stretch.evicted.begin(), stretch.evicted.end());
        SCOPED_TRACE("first other eviction: " + std::to_string(one - replayed.evicted.begin()));
        EXPECT_EQ(replayed.stopped, "");
        EXPECT_EQ(replayed.evicted, stretch.evicted);
        figures.replayed += static_cast<std::int64_t>(stretch.evicted.size());
    }
}

TEST_F(LiveRuntime, TheSimulationEvictsTheSame) {
    const auto [first, cases] = wantedCases();
    Figures figures;
    for (unsigned i = first; i < first + cases && !HasFailure(); ++i) replayWithin(i, figures);
    EXPECT_GT(figures.replayed, figures.steps);
    EXPECT_GE(figures.replayed, figures.evicted);
    EXPECT_GT(figures.recomputed, figures.steps);
}

/// What the judge and the planners look at, but for times and workspaces.
std::string described(const TrainingGraph& graph) {
    std::ostringstream text;
    for (const Event& event : graph.events) {
        if (event.kind == Event::Kind::Constant) continue;
        if (event.kind == Event::Kind::Release) {
            text << "release " << event.index << '\n';
            continue;
        }
        const Op& op = graph.ops[event.index];
        text << op.name << (op.random ? " random" : "");
        for (const Use& use : op.inputs)
            text << ' ' << graph.storageOf(use.tensor) << '@' << use.version;
        for (const OpOutput& output : op.outputs)
            text << " > " << graph.storageOf(output.tensor) << (output.makesStorage ? "!" : "");
        for (const Write& write : op.writes)
            text << " w " << write.storage << '@' << write.versionBefore;
        text << '\n';
    }
    for (const Storage& storage : graph.storages) text << storage.bytes.count() << ' ';
    return text.str();
}

// Evictions and recomputations are no part of what is traced for a planner.
TEST_F(LiveRuntime, TracesAStepWithinABudgetAsItIsAlone) {
    int traced = 0;
    for (unsigned number = 0; number < 200; ++number) {
        SCOPED_TRACE("case " + std::to_string(number));
        std::mt19937 random(number);
        const Program usual = randomProgram(random, 6 + random() % 40);
        const Recorded recorded = record(usual, number);
        if (recorded.graph.ops.empty()) continue;
        BudgetRuntime runtime(pressingAgent(), planners::DtrHeuristic::EqClass, true);
        gPressure.runtime = &runtime;
        gPressure.random.seed(number);
        gPressure.oneIn = 2;
        gPressure.loses = number % 2 == 0;
        Figures figures;
        runLive(std::vector<Program>(6, usual), number, runtime, figures);
        gPressure.runtime = nullptr;
        gPressure.loses = true;
        const auto request = runtime.takeRequest();
        if (!request) continue;  // it fails half-way, or the other thread's ops come between
        ++traced;
        const auto step = profiler::readStepTrace(request->trace);
        ASSERT_TRUE(step) << step.error().what;
        EXPECT_EQ(described(step->graph), described(recorded.graph));
    }
    EXPECT_GT(traced, 50);
}

}  // namespace
}  // namespace hw::test
