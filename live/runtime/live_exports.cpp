// SPDX-License-Identifier: MIT
// What the shim calls through ctypes (live/shim/live.py). Tensors travel as addresses of their
// impl.
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <unordered_map>
#include <utility>

#include "budget_runtime.h"
#include "cuda_allocations.h"
#include "cuda_room.h"
#include "extension_calls.h"
#include "observer.h"
#include "runtime.h"

// CPython's, in whatever process this is.
extern "C" {
int PyGILState_Check() __attribute__((weak));
void* PyEval_SaveThread() __attribute__((weak));
void PyEval_RestoreThread(void* state) __attribute__((weak));
}

namespace hw::live::runtime {
namespace {

// They outlive the program: its last ops may still come by.
Runtime* gRuntime = nullptr;       // for plans
BudgetRuntime* gBudget = nullptr;  // where there is a budget
Engine* gEngine = nullptr;         // which of them acts

std::atomic<bool> gForked{false};  // this process is a child that has the engine of its parent
bool gHalfChanged = false;         // and cannot use it

void carryOut(const profiler::native::Passing& op, torch::jit::Stack* stack) {
    gForked ? gEngine->opBeside(op, stack) : gEngine->op(op, stack);
}

void letBy(const profiler::native::Passing& op, torch::jit::Stack* stack) {
    gEngine->opBeside(op, stack);
}

const profiler::native::TypedHook kTyped{
    [](const profiler::native::Passing& op, const profiler::native::Arguments& arguments,
       c10::function_ref<torch::jit::Stack()> box) {
        return gForked ? profiler::native::Turn::Boxed : gRuntime->beginTyped(op, arguments, box);
    },
    [](const Tensors& results) { gRuntime->endTyped(results); }, [] { gRuntime->failTyped(); }};

/// pybind11::detail::type_caster<at::Tensor>::load(handle, bool), whose caster has the tensor as
/// its first member.
using Caster = bool (*)(void* caster, void* object, bool convert);
Caster gCaster = nullptr;

bool castAndTouch(void* caster, void* object, bool convert) {
    if (!gCaster(caster, object, convert)) return false;
    const auto& tensor = *static_cast<const at::Tensor*>(caster);
    if (tensor.defined()) gEngine->touch(*tensor.unsafeGetTensorImpl(), true);
    return true;
}

/// What an extension gives to Python it may have written by no op. The caster's cast(), or
/// THPVariable_Wrap(), which gets its tensor by the address of a copy: a tensor comes first in
/// both.
using Wrap = void* (*)(const at::TensorBase* tensor, std::uint64_t, std::uint64_t);
Wrap gWraps[2] = {};

template <int kWhich>
void* touchAndWrap(const at::TensorBase* tensor, std::uint64_t second, std::uint64_t third) {
    if (tensor->defined()) gEngine->touch(*tensor->unsafeGetTensorImpl(), true);
    return gWraps[kWhich](tensor, second, third);
}

/// Functions of extensions, by the object that Python calls them with, and where they were. Changed
/// and read under Python's lock.
std::unordered_map<void*, void*> gFunctions;

struct ExtensionCall {
    ExtensionCall() { ++tExtensionCalls; }
    ~ExtensionCall() { --tExtensionCalls; }
};

/// With METH_VARARGS | METH_KEYWORDS, and with METH_FASTCALL | METH_KEYWORDS.
void* callAround(void* self, void* arguments, void* keywords) {
    const ExtensionCall call;
    return reinterpret_cast<void* (*)(void*, void*, void*)>(gFunctions.at(self))(self, arguments,
                                                                                 keywords);
}
void* callFastAround(void* self, void* arguments, std::int64_t count, void* keywords) {
    const ExtensionCall call;
    return reinterpret_cast<void* (*)(void*, void*, std::int64_t, void*)>(gFunctions.at(self))(
        self, arguments, count, keywords);
}

/// Nothing is thrown through ctypes: what is wrong, or null.
template <typename Work>
const char* guarded(const Work& work) {
    thread_local std::string why;
    try {
        work();
        return nullptr;
    } catch (const std::exception& error) {
        why = error.what();
    } catch (...) {
        why = "an unknown exception";
    }
    return why.c_str();
}

const char* keep(std::string text) {
    static std::string kept;
    kept = std::move(text);
    return kept.c_str();
}

std::int64_t gPlans = 0;  // that have been taken

/// See live/wire/live_program.h. Where there is no such file there is no plan yet.
void takePlan(const std::string& path, std::string& why) {
    std::ifstream file(path, std::ios::binary);
    if (!file) return;
    ++gPlans;
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    static_cast<void>(std::remove(path.c_str()));
    std::int64_t kind = 0;
    std::uint8_t mode = 0;
    if (bytes.size() < sizeof(kind) + sizeof(mode)) {
        why = "the plan arrived damaged";
        return;
    }
    std::memcpy(&kind, bytes.data(), sizeof(kind));
    std::memcpy(&mode, bytes.data() + sizeof(kind), sizeof(mode));
    const bool bySize = static_cast<wire::LiveMode>(mode) == wire::LiveMode::Mimose;
    gBudget->follow(kind, bySize ? Boundary::BySize : Boundary::Planned,
                    bytes.substr(sizeof(kind) + sizeof(mode)), why);
}

int tracing() {
    return gEngine == gBudget && gBudget->tracing() ? 1 : 0;
}

constexpr std::chrono::seconds kForkPatience(10);
constexpr unsigned kForkPauseUs = 100;
thread_local bool tHolds = false;  // the engine's lock, while this thread forks

/// The thread that has the lock may wait for Python's, which this one gives up in between. Its
/// patience ends: a child that finds things half changed is better than a program that waits
/// forever.
void beforeFork() {
    if (gHalfChanged) return;
    const auto deadline = std::chrono::steady_clock::now() + kForkPatience;
    while (!(tHolds = gEngine->lock().try_lock())) {
        if (std::chrono::steady_clock::now() > deadline) return;
        const bool python = PyGILState_Check != nullptr && PyGILState_Check() != 0;
        void* const state = python ? PyEval_SaveThread() : nullptr;
        usleep(kForkPauseUs);
        if (python) PyEval_RestoreThread(state);
    }
    HostMemory::ofProcess().settle();
}

void afterFork() {
    if (std::exchange(tHolds, false)) gEngine->lock().unlock();
}

void afterForkInChild() {
    gForked = true;
    HostMemory::ofProcess().forked();
    gHalfChanged = gHalfChanged || !tHolds;
    afterFork();
}

}  // namespace
}  // namespace hw::live::runtime

using namespace hw::live::runtime;

#define HW_EXPORT extern "C" __attribute__((visibility("default")))

/// Empty: ready; else why not.
HW_EXPORT const char* hwl_open(const hw::profiler::native::AgentApi* api) {
    if (api->size != sizeof(*api)) return "the runtime is of another build of Highwater";
    if (!hw::profiler::native::prepare()) return "the framework's dispatcher has no place left";
    if (gRuntime == nullptr) gRuntime = new Runtime(*api);
    gRuntime->forgetPrograms();
    static const int watched = pthread_atfork(&beforeFork, &afterFork, &afterForkInChild);
    static_cast<void>(watched);
    gEngine = gRuntime;
    hw::profiler::native::tellCudaBlocks(api);
    return "";
}
/// Once CUDA is initialized: from now on blocks of its allocator are counted. Empty: so they are,
/// else why not.
HW_EXPORT const char* hwl_count_cuda() {
    hw::profiler::native::countCudaBlocks();
    return hw::profiler::native::cudaBlocksMissed();
}
/// After it: blocks keep to the agent's limit, too; 0: they do not.
HW_EXPORT int hwl_limit_cuda() {
    return hw::profiler::native::keepCudaLimit(gRuntime->agent()) ? 1 : 0;
}
/// A plan from a file; empty: taken, else why not.
HW_EXPORT const char* hwl_add(const char* path) {
    std::ifstream file(path, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    std::string why;
    return gRuntime->add(bytes, why) ? "" : keep(std::move(why));
}
/// From now on DTR keeps live bytes within the agent's limit; which of its heuristics. `planned`:
/// planners look at the steps (hwl_hand_over()). `keepsLimit`: see BudgetRuntime.
HW_EXPORT void hwl_keep_within(std::int64_t heuristic, int planned, int keepsLimit) {
    const auto& agent = gRuntime->agent();
    gPlans = 0;
    gEngine = gBudget = new BudgetRuntime(agent, static_cast<hw::planners::DtrHeuristic>(heuristic),
                                          planned != 0, keepsLimit != 0);
    agent.onShortage(
        [](const hw::profiler::native::Shortage& shortage) { return gBudget->makeRoom(shortage); });
}
/// A tensor that was made before allocations were counted; see BudgetRuntime::adopt().
HW_EXPORT void hwl_adopt(std::int64_t impl) {
    gBudget->adopt(*reinterpret_cast<const c10::TensorImpl*>(impl));
}
/// Between two steps within a budget: leaves what planners are to look at as files that begin with
/// PREFIX, and takes the next plan (live/host/planner_pool.h). Empty, or what is wrong with
/// that.
HW_EXPORT const char* hwl_hand_over(const char* prefix) {
    if (gEngine != gBudget) return "";
    while (const auto request = gBudget->takeRequest()) {
        const std::string path =
            std::string(prefix) + "." + std::to_string(request->kind) +
            (request->often ? hw::profiler::wire::kLiveOften : hw::profiler::wire::kLiveSoon);
        const std::string unfinished = path + ".part";
        std::ofstream(unfinished, std::ios::binary) << request->trace;
        static_cast<void>(std::rename(unfinished.c_str(), path.c_str()));
    }
    std::string why;
    takePlan(std::string(prefix) + hw::profiler::wire::kLivePlan + std::to_string(gPlans), why);
    return why.empty() ? "" : keep(std::move(why));
}
/// A module's number by its path.
HW_EXPORT std::int64_t hwl_layer(const char* path) {
    return gBudget->place().layerOf(path);
}
/// The ops that come now are of that module (-1: of none) and phase. As hwl_begin().
HW_EXPORT int hwl_place(std::int64_t layer, int phase) {
    gBudget->place().layer = layer;
    gBudget->place().phase = static_cast<hw::profiler::wire::Phase>(phase);
    return tracing();
}
/// On the thread that trains.
HW_EXPORT void hwl_enter() {
    const bool typed = gEngine == gRuntime;
    hw::profiler::native::observeWith(&carryOut, &letBy, typed ? &kTyped : nullptr);
}
/// On any other thread that begins.
HW_EXPORT void hwl_enter_beside() {
    hw::profiler::native::observeBeside();
}
HW_EXPORT void hwl_leave() {
    static_cast<void>(guarded([] { gEngine->release(); }));
    hw::profiler::native::leave();
}
/// In a forked child. 1: something is dropped, and comes back where the child reads it; 0: nothing
/// is, or it cannot be had, and the engine is left.
HW_EXPORT int hwl_forked() {
    if (!gHalfChanged && gEngine->forked()) {
        hw::profiler::native::observeBeside();
        return 1;
    }
    if (!gHalfChanged) gEngine->release();
    hw::profiler::native::leave();
    return 0;
}
/// A step begins. 1: it is traced, and the shim is to say where its ops come from; else 0.
HW_EXPORT int hwl_begin() {
    static_cast<void>(guarded([] { gEngine->begin(); }));
    return tracing();
}
/// A forward pass with gradients begins.
HW_EXPORT void hwl_forward() {
    static_cast<void>(guarded([] { gEngine->forward(); }));
}
/// The program ends.
HW_EXPORT void hwl_end() {
    gEngine->ends();
}
/// What comes next, no op shows; why.
HW_EXPORT const char* hwl_interrupt(const char* why) {
    return guarded([&] { gEngine->interrupt(why); });
}
/// Code past the dispatcher looks at a tensor; stays: and may go on looking, and write. Null, or
/// why its bytes cannot be had.
HW_EXPORT const char* hwl_touch(std::int64_t impl, int stays) {
    return guarded(
        [&] { gEngine->touch(*reinterpret_cast<const c10::TensorImpl*>(impl), stays != 0); });
}
/// As Engine::hand(). Null, or what is wrong.
HW_EXPORT const char* hwl_hand(std::int64_t impl) {
    return guarded([&] { gEngine->hand(*reinterpret_cast<const c10::TensorImpl*>(impl)); });
}
/// As hwl_touch() of one that keeps the address, of a storage's impl.
HW_EXPORT const char* hwl_touch_storage(std::int64_t storage) {
    return guarded([&] {
        auto* const impl = reinterpret_cast<c10::StorageImpl*>(storage);
        const auto reference = c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(impl);
        const at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
            c10::Storage(reference), c10::DispatchKeySet(c10::DispatchKey::CPU),
            caffe2::TypeMeta::Make<std::uint8_t>());
        if (impl->device_type() == c10::DeviceType::CPU)
            gEngine->touch(*tensor.unsafeGetTensorImpl(), true);
    });
}
/// As Engine::change(), of a storage's impl. Null, or what is wrong.
HW_EXPORT const char* hwl_change(std::int64_t storage) {
    return guarded([&] { gEngine->change(reinterpret_cast<c10::StorageImpl*>(storage)); });
}
/// The same of a tensor's storage.
HW_EXPORT const char* hwl_change_tensor(std::int64_t impl) {
    return guarded([&] {
        StorageList storages;
        addStorages(*reinterpret_cast<const c10::TensorImpl*>(impl), storages);
        for (c10::StorageImpl* const storage : storages) gEngine->change(storage);
    });
}
/// The program has registered kernels.
HW_EXPORT void hwl_kernels_changed() {
    hw::profiler::native::kernelsChanged();
}
/// A region begins whose code reads and writes memory by no op, such as "torch.compile"; empty: it
/// ends.
HW_EXPORT void hwl_region(const char* what) {
    gEngine->region(what);
}
/// How much is compared, see Verify; what came back with other bytes in an earlier run of the
/// program, see KeptOps; whether a recording has seen that sources do not change.
HW_EXPORT void hwl_verify(int level, const char* kept, int trusted) {
    gEngine->verify(static_cast<Verify>(level));
    gEngine->keepResultsOf(kept);
    if (trusted != 0) gEngine->trustSources();
}
/// Where Python has its frames, and torch's folder: lines of ops are known from now on.
HW_EXPORT void hwl_lines(const hw::profiler::native::FrameLayout* layout, const char* framework) {
    gBudget->lines().start(*layout, framework);
}
/// What extensions are to call instead of the framework's caster of tensors, which is at
/// `original`.
HW_EXPORT std::uint64_t hwl_wrap_caster(std::uint64_t original) {
    gCaster = reinterpret_cast<Caster>(original);
    return reinterpret_cast<std::uint64_t>(&castAndTouch);
}
/// The same of what makes an object of a tensor: 0: the caster's cast(), 1: THPVariable_Wrap().
HW_EXPORT std::uint64_t hwl_wrap_result(int which, std::uint64_t original) {
    gWraps[which] = reinterpret_cast<Wrap>(original);
    return reinterpret_cast<std::uint64_t>(which == 0 ? &touchAndWrap<0> : &touchAndWrap<1>);
}
/// What is to be called instead of a function of an extension, which is at `original` and gets
/// `self`; `fast`: as METH_FASTCALL.
HW_EXPORT std::uint64_t hwl_wrap_function(std::uint64_t self, std::uint64_t original, int fast) {
    gFunctions[reinterpret_cast<void*>(self)] = reinterpret_cast<void*>(original);
    return fast != 0 ? reinterpret_cast<std::uint64_t>(&callFastAround)
                     : reinterpret_cast<std::uint64_t>(&callAround);
}
/// An optimizer has made its step. A Boundary; unless it is Middle, `out` is of the step that has
/// ended.
HW_EXPORT int hwl_step(wire::LiveFigures* out) {
    Boundary boundary = Boundary::Unplanned;
    static_cast<void>(guarded([&] { boundary = gEngine->boundary(); }));  // its next op says why
    if (boundary == Boundary::Middle) return static_cast<int>(boundary);
    const StepFigures& figures = gEngine->figures();
    out->recomputedOps = figures.recomputedOps;
    out->restoredBytes = figures.restoredBytes;
    out->pinnedBytes = figures.pinnedBytes;
    out->ops = figures.ops;
    out->divergedAt = gEngine->divergence() ? gEngine->divergence()->op : -1;
    out->uncountedBytes = figures.uncountedBytes;
    out->begunNs = figures.begunNs;
    out->runtimeNs = figures.runtimeNs;
    out->recomputedNs = figures.recomputedNs;
    out->evictions = figures.evictions;
    hw::profiler::native::MemoryWindow window;
    gEngine->agent().window(&window);
    out->peak = std::max(window.peak, figures.peakBefore);
    out->rescued = figures.rescue.op.empty() ? 0 : 1;
    out->nowNs = gEngine->agent().now();
    out->verifiedBytes = gEngine->verifier().bytes();
    out->verificationNs = gEngine->verifier().nanoseconds();
    out->uncomparedOps = figures.uncomparedOps;
    out->offloadedBytes = figures.offloadedBytes;
    out->waitedNs = figures.waitedNs;
    return static_cast<int>(boundary);
}
/// Of the step's allocations that had failed; which op asked for the first, empty: none has failed.
HW_EXPORT const char* hwl_rescue(wire::LiveRescue* out) {
    const Rescue& rescue = gEngine->figures().rescue;
    out->made = rescue.allocations;
    out->refused = rescue.refused;
    out->firstBytes = rescue.bytes;
    out->freedBytes = rescue.freedBytes;
    out->evictions = rescue.evictions;
    return rescue.op.c_str();
}
/// From the next step on live bytes are noted op by op.
HW_EXPORT void hwl_trace() {
    gRuntime->trace();
}
/// Of the ops of the plan so far, see Runtime::curve(); count: how many there are.
HW_EXPORT const std::int64_t* hwl_curve(std::int64_t* count) {
    *count = static_cast<std::int64_t>(gRuntime->curve().size());
    return gRuntime->curve().data();
}
/// Of the divergence: what was expected and what came, a line each.
HW_EXPORT const char* hwl_divergence() {
    const auto& divergence = gEngine->divergence();
    return divergence ? keep(divergence->expected + "\n" + divergence->found) : "";
}
/// The last allocation that was refused because of the budget; empty: none was.
HW_EXPORT const char* hwl_shortage() {
    return gEngine->shortage().c_str();
}
/// The remark of that number, from 0 on, between two steps or at the program's end; null: there are
/// no more.
HW_EXPORT const char* hwl_remark(std::int64_t number) {
    const auto& remarks = gEngine->remarks();
    const auto index = static_cast<std::size_t>(number);
    return index < remarks.size() ? keep(remarks[index]) : nullptr;
}
/// Why no plan is carried out any more, or what there is to say of a budget; empty: nothing.
HW_EXPORT const char* hwl_fault() {
    return gEngine->fault().c_str();
}
