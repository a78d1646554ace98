// SPDX-License-Identifier: MIT
#include "tests/live/live_harness.h"

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <unordered_map>

#include "core/memory/evaluate.h"
#include "core/memory/rebuild.h"
#include "core/memory/schedule_builder.h"
#include "live/compile/program_writer.h"
#include "planners/echo/codecs.h"
#include "planners/offload/idle_stretches.h"
#include "planners/schedule/free_early.h"
#include "profiler/agent/checksum.h"
#include "tests/live/op_trace.h"

namespace hw::test {

using namespace core;
using live::runtime::Boundary;
using live::runtime::BudgetRuntime;
using live::runtime::Engine;
using live::runtime::Runtime;
namespace native = profiler::native;

Pressure gPressure;
std::map<native::Turn, std::int64_t> gTurns;

namespace {

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

native::Turn beginTyped(const native::Passing& op, const native::Arguments& arguments,
                        c10::function_ref<torch::jit::Stack()> box) {
    int boxed = 0;
    const auto once = [&] {
        EXPECT_EQ(++boxed, 1) << op.known.name << ": the runtime has let go of what it got before";
        return box();
    };
    const native::Turn turn = gRuntime->beginTyped(op, arguments, once);
    ++gTurns[turn];
    return turn;
}

const native::TypedHook kTyped{&beginTyped,
                               [](const native::Tensors& results) { gRuntime->endTyped(results); },
                               [] { gRuntime->failTyped(); }};

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

/// With some of the encodings that it has room for.
Schedule encoded(const TrainingGraph& graph, const Schedule& schedule, std::mt19937& random) {
    std::vector<planners::CodecSite> sites = planners::codecSites(graph);
    std::erase_if(sites, [&](const planners::CodecSite&) { return random() % 3 == 0; });
    Schedule with = planners::withCodecs(graph, schedule, sites);
    return evaluate(graph, with).valid ? with : schedule;
}

/// With some of what is idle in host memory meanwhile.
Schedule offloaded(const TrainingGraph& graph, const Schedule& schedule, std::mt19937& random) {
    std::vector<Schedule> added(schedule.size() + 1);
    for (const planners::IdleStretch& idle : planners::idleStretches(graph, schedule, Bytes(1))) {
        if (random() % 2 == 0) continue;
        const std::size_t free = idle.first + random() % (idle.before - idle.first + 1);
        const std::size_t back = free + random() % (idle.before - free + 1);
        added[idle.first].push_back(Action::offload(idle.storage));
        added[free].push_back(Action::free(idle.storage));
        added[back].push_back(Action::prefetch(idle.storage));
    }
    Schedule with;
    for (std::size_t a = 0; a <= schedule.size(); ++a) {
        with.insert(with.end(), added[a].begin(), added[a].end());
        if (a < schedule.size()) with.push_back(schedule[a]);
    }
    return evaluate(graph, with).valid ? with : schedule;
}

}  // namespace

const native::AgentApi& silentAgent() {
    static const native::AgentApi agent = [] {
        native::AgentApi api{};
        api.size = sizeof(api);
        api.pause = [](int) {};
        api.block = [](std::uint64_t) -> std::int64_t { return 0; };
        api.window = [](native::MemoryWindow*) {};
        api.now = []() -> std::int64_t { return 1; };
        api.checksum = &profiler::agent::checksum;
        return api;
    }();
    return agent;
}

const native::AgentApi& pressingAgent() {
    static const native::AgentApi agent = [] {
        native::AgentApi api = silentAgent();
        api.now = pressingNow;
        api.tag = [](std::uint64_t address, std::uint64_t tag, int, native::TaggedBlock*) {
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
        api.begin = [](native::OpWindow* window) { *window = {}; };
        api.end = api.begin;
        api.onShortage = [](native::MakeRoom) { gPressure.runtime = nullptr; };
        return api;
    }();
    return agent;
}

Recorded record(const Program& program, std::uint64_t seed) {
    Machine machine(seed, {});
    machine.step(program);
    OpTrace trace;
    gTrace = &trace;
    native::observeWith(traceOp);
    machine.step(program);
    native::leave();
    Recorded recorded{trace.finish(), trace.tensors()};
    return recorded;
}

std::string liveProgramOf(const Recorded& recorded, std::mt19937& random, Figures& figures,
                          profiler::wire::LiveActions can) {
    Plan plan;
    do plan.schedule = randomSchedule(recorded.graph, random);
    while (!evaluate(recorded.graph, plan.schedule).valid);
    if (can.has(profiler::wire::LiveAction::Encode))
        plan.schedule = encoded(recorded.graph, plan.schedule, random);
    if (can.has(profiler::wire::LiveAction::Offload))
        plan.schedule = offloaded(recorded.graph, plan.schedule, random);
    for (const Action& action : plan.schedule) {
        if (action.encoding) ++figures.encodings[action.encoding->codec];
        figures.offloads += action.kind == ActionKind::Offload ? 1 : 0;
    }
    const auto program = live::liveProgram(recorded.graph, plan, recorded.tensors, can);
    EXPECT_TRUE(program) << program.error().what;
    return program->bytes;
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

std::string runLive(const std::vector<Program>& steps, std::uint64_t seed, Engine& runtime,
                    Figures& figures) {
    gEngine = &runtime;
    gRuntime = dynamic_cast<Runtime*>(&runtime);
    Machine machine(seed, {[&](const at::Tensor& t, bool stays) {
                               runtime.touch(*t.unsafeGetTensorImpl(), stays);
                           },
                           [&] { runtime.forward(); }, native::observeBeside});
    std::string state;
    native::observeWith(carryOut, carryOutBeside, gRuntime != nullptr ? &kTyped : nullptr);
    runtime.begin();
    for (const Program& step : steps) {
        machine.step(step);
        native::pause(true);
        state += machine.state();
        native::pause(false);
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
        const live::runtime::Rescue& rescue = runtime.figures().rescue;
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
    native::leave();
    return state;
}

std::string runPressed(const std::vector<Program>& steps, unsigned number, BudgetRuntime& runtime,
                       std::mt19937& random, Figures& figures) {
    gPressure.runtime = &runtime;
    gPressure.random.seed(number);
    gPressure.oneIn = 1 + random() % 5;
    std::string results = runLive(steps, number, runtime, figures);
    gPressure.runtime = nullptr;
    return results;
}

void runStep(BudgetRuntime& runtime, const std::function<void()>& step) {
    gEngine = &runtime;
    gRuntime = nullptr;
    gPressure.loses = false;
    native::observeWith(carryOut, carryOutBeside);
    runtime.begin();
    step();
    runtime.release();
    native::leave();
    gPressure.loses = true;
}

namespace {

unsigned numberFrom(const char* variable, unsigned otherwise) {
    const char* const set = std::getenv(variable);
    return set != nullptr ? static_cast<unsigned>(std::strtoul(set, nullptr, 10)) : otherwise;
}

}  // namespace

unsigned wantedCases() {
    return numberFrom("HIGHWATER_LIVE_CASES", 350);
}

Figures runCases(void (*run)(unsigned number, Figures& figures), unsigned cases) {
    const unsigned first = numberFrom("HIGHWATER_LIVE_FIRST", 0);
    Figures figures;
    for (unsigned i = first; i < first + cases && !::testing::Test::HasFailure(); ++i)
        run(i, figures);
    return figures;
}

}  // namespace hw::test
