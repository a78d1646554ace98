// SPDX-License-Identifier: MIT
// What the shim calls through ctypes; see observer.h. Tensors travel as addresses of their impl.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/SequenceNumber.h>

#include "cuda_allocations.h"
#include "observer.h"
#include "tensor_scan.h"

namespace hw::profiler::native {
namespace {

at::Tensor borrowed(std::int64_t impl) {
    auto* target = reinterpret_cast<c10::TensorImpl*>(impl);
    return at::Tensor(
        c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>::reclaim_copy(target));
}

/// What was made out of sight becomes known. A view of what an op made does not: its storage is
/// known already, and it cannot be made again.
void note(Session& session, const at::Tensor& tensor, bool gradients) {
    const Storage* known = session.registry.lookup(tensor);
    const auto isThis = [&](const View& view) { return view.form == viewOf(tensor); };
    std::int64_t id = -1;
    if (known == nullptr || known->op < 0 ||
        std::any_of(known->views.begin(), known->views.end(), isThis))
        session.registry.constant(tensor, -1, id);
    if (!gradients || !tensor.requires_grad() || !tensor.is_leaf()) return;
    const at::Tensor gradient = tensor.unsafeGetTensorImpl()->grad();
    if (gradient.defined()) note(session, gradient, false);
}

}  // namespace
}  // namespace hw::profiler::native

using namespace hw::profiler::native;

#define HW_EXPORT extern "C" __attribute__((visibility("default")))

/// False: the agent is of another build, or ops cannot be seen.
HW_EXPORT int hwn_open(const AgentApi* api, int contents) {
    if (api->size != sizeof(AgentApi) || !prepare()) return 0;
    delete gLastSession;
    gLastSession = gSession;
    gContext = Context();
    gSession = new Session(*api, contents != 0);
    tellCudaBlocks(api);
    gSession->generators.emplace_back(at::detail::getDefaultCPUGenerator(), -1);
    return 1;
}

HW_EXPORT void hwn_enter() {
    observe();
}

HW_EXPORT void hwn_compiling(int begins) {
    hw::profiler::native::compiling(begins != 0);
}

HW_EXPORT void hwn_check(int begins) {
    hw::profiler::native::check(begins != 0);
}

HW_EXPORT void hwn_stay() {
    hw::profiler::native::stay();
}

HW_EXPORT void hwn_leave() {
    leave();
}
/// See awaitForward(). 0: ops cannot be seen.
HW_EXPORT int hwn_await_forward(void (*begins)(int gradients)) {
    if (!prepare()) return 0;
    awaitForward(begins);
    return 1;
}
/// Nodes of autograd that this thread has made.
HW_EXPORT std::int64_t hwn_nodes() {
    return static_cast<std::int64_t>(at::sequence_number::peek());
}
/// Forgets every tensor; weak references go with them.
HW_EXPORT void hwn_release() {
    Session& session = *gSession;
    {
        const std::lock_guard<SpinLock> guard(session.lock);
        gContext.failed = 1;
        session.registry.clear();
    }
    session.stacks.release();
}

/// Ops are told with their call stacks from now on; `framework`: the folder of torch's own code.
HW_EXPORT void hwn_stacks(int mode, const FrameLayout* layout, const char* framework) {
    gSession->stacks.start(static_cast<hw::profiler::wire::Stacks>(mode), *layout, framework);
}

/// 0: all is well, 1: the recorder is gone, 2: a fault, see hwn_fault.
HW_EXPORT int hwn_failed() {
    return !gSession->failed() ? 0 : gSession->fault.empty() ? 1 : 2;
}
HW_EXPORT const char* hwn_fault() {
    return gSession->fault.c_str();
}

HW_EXPORT void hwn_pause(int paused) {
    pause(paused != 0);
}

/// Where the program is, for the shim to write: layer, phase; behind them: as hwn_failed(), but 1
/// for a fault, too.
HW_EXPORT std::int64_t* hwn_context() {
    static_assert(sizeof(Context) == 3 * sizeof(std::int64_t));
    return reinterpret_cast<std::int64_t*>(&gContext);
}
HW_EXPORT void hwn_backward_layer(std::int64_t layer) {
    const std::lock_guard<SpinLock> guard(gSession->lock);
    gSession->backwardLayer = layer;
    gSession->backwardStack = Stacks::kNone;
}

/// Adds the optimizers there are to the list.
HW_EXPORT void hwn_optimizers(PyObject* listObjects, const Classes* classes, PyObject* optimizers) {
    tensorsOfPython(listObjects, *classes, optimizers);
}
/// Registers every tensor there is; the optimizers are added to the list. See tensorsOfPython().
/// `gradients`: those of the tensors, too, if no other thread may set them meanwhile; `passing`:
/// impls of tensors that are only passing through.
HW_EXPORT void hwn_scan(PyObject* listObjects, const Classes* classes, PyObject* optimizers,
                        int gradients, const std::int64_t* passing, std::int64_t passingCount) {
    const std::vector<at::Tensor> tensors = tensorsOfPython(listObjects, *classes, optimizers);
    const auto isPassing = [&](const at::Tensor& tensor) {
        const auto impl = reinterpret_cast<std::int64_t>(tensor.unsafeGetTensorImpl());
        return std::find(passing, passing + passingCount, impl) != passing + passingCount;
    };
    guarded(*gSession, [&] {
        for (const at::Tensor& tensor : tensors)
            if (!isPassing(tensor)) note(*gSession, tensor, gradients != 0);
    });
}
/// Where the storage is known and has no better category yet.
HW_EXPORT void hwn_categorize(std::int64_t impl, int category, std::int64_t layer) {
    Session& session = *gSession;
    guarded(session, [&] {
        session.registry.categorize(borrowed(impl), static_cast<Category>(category), layer);
    });
}
/// As Registry::own(), categorizeOwned() and categorizeGradients().
HW_EXPORT void hwn_own(std::int64_t impl, int category, std::int64_t layer) {
    guarded(*gSession, [&] {
        gSession->registry.own(borrowed(impl), static_cast<Category>(category), layer);
    });
}
/// As Registry::letGo().
HW_EXPORT void hwn_let_go(std::int64_t impl) {
    guarded(*gSession,
            [&] { gSession->registry.letGo(reinterpret_cast<const c10::TensorImpl*>(impl)); });
}
HW_EXPORT std::int64_t hwn_categorize_owned() {
    std::int64_t gone = 0;
    guarded(*gSession, [&] { gone = gSession->registry.categorizeOwned(); });
    return gone;
}
HW_EXPORT void hwn_categorize_gradients(int onlyUsed) {
    guarded(*gSession, [&] { gSession->registry.categorizeGradients(onlyUsed != 0); });
}
HW_EXPORT void hwn_save_activations() {
    guarded(*gSession, [] {
        gSession->registry.poll();
        gSession->registry.saveActivations();
        gSession->stream.flush();
    });
}
HW_EXPORT void hwn_sweep() {
    guarded(*gSession, [] {
        gSession->registry.sweep();
        gSession->stream.flush();
    });
}
/// As Registry::tellUnknown.
HW_EXPORT void hwn_tell_unknown(std::int64_t live, std::int64_t seq) {
    guarded(*gSession, [&] {
        gSession->registry.tellUnknown(live, seq);
        gSession->stream.flush();
    });
}
HW_EXPORT void hwn_recount() {
    guarded(*gSession, [] { gSession->registry.recount(); });
}
/// As Registry::stepBegan.
HW_EXPORT void hwn_step_began(std::int64_t seq) {
    guarded(*gSession, [&] { gSession->registry.stepBegan(seq); });
}
HW_EXPORT void hwn_next_epoch() {
    guarded(*gSession, [] {
        gSession->registry.nextEpoch();
        gSession->unseen.begin();
    });
}
/// Of the step that ends, as UnseenWrites::end().
HW_EXPORT const char* hwn_unseen_writes() {
    static std::string told;
    told = "{}";
    guarded(*gSession, [] { told = gSession->unseen.end(); });
    return told.c_str();
}
HW_EXPORT void hwn_figures(RegistryFigures* out) {
    guarded(*gSession, [] { gSession->stream.flush(); });
    const std::lock_guard<SpinLock> guard(gSession->lock);
    out->seq = gSession->registry.seq();
    out->uncounted = gSession->registry.uncounted();
    out->opPeak = gSession->registry.opPeak();
    out->ops = gSession->ops;
}
/// Ids of live tensors, valid until the next call; count: how many there are.
HW_EXPORT const std::int64_t* hwn_finals(std::int64_t* count) {
    static std::vector<std::int64_t> ids;
    const std::lock_guard<SpinLock> guard(gSession->lock);
    ids = gSession->registry.finals();
    *count = static_cast<std::int64_t>(ids.size());
    return ids.data();
}
