// SPDX-License-Identifier: MIT
#include "observer.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/SequenceNumber.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "arguments.h"
#include "cuda_allocations.h"
#include "operators.h"
#include "session.h"
#include "values.h"

namespace hw::profiler::native {
namespace {

using Use = std::pair<std::int64_t, std::int32_t>;

/// An op in progress.
struct Running {
    const Operator* op = nullptr;
    Buffer arguments;
    std::vector<Use> inputs;
    std::vector<std::pair<std::int64_t, std::uint8_t>> outputs;  // tensor, whether it made it
    std::vector<Storage*> written;     // alive as long as the op's arguments are
    std::vector<const Storage*> read;  // likewise, under a dispatch mode
    bool underMode = false;
    std::vector<Use> writes;  // storage, version before
    Place place;
    Stacks::Sites sites;
    std::int64_t stack = Stacks::kNone;
    std::int64_t seq = -1;
    std::int64_t freshBytes = 0;
    bool explicitGenerator = false;
    bool busy = false;
    OpWindow window;

    void restart(const Operator& now) {
        op = &now;
        arguments.clear();
        inputs.clear();
        outputs.clear();
        written.clear();
        read.clear();
        writes.clear();
        freshBytes = 0;
        explicitGenerator = false;
    }
};

/// What a thread has of its own, in one place: to find it takes a call.
struct Thread {
    Running running;  // used again and again
    Operators operators;
    std::uint64_t nextNode = 0;  // of autograd, after the last op
    std::int64_t id = syscall(SYS_gettid);
    at::CallbackHandle node{};
};
thread_local Thread tThread;
/// Whether a thread's ops concern us; apart from the rest, which has to be made first.
struct Watched {
    bool paused;
    std::int64_t watch;   // which watch's key and callback it carries
    std::int64_t beside;  // of a thread that another one's plan concerns: the leave() to come
    bool awaits;          // a new node of autograd, see awaitForward()
    std::uint64_t nodes;  // of autograd, until then
    bool stays;           // it has the key for good, see stay()
    bool checked;         // see check()
};
thread_local Watched tWatched{false, 0, 0, false, 0, false, false};
std::atomic<std::int64_t> gWatch{0};   // the one that goes on; 0: none does
std::atomic<OpHook> gHook{nullptr};    // takes the ops instead of the recording
std::atomic<OpHook> gBeside{nullptr};  // and those of threads beside the one that is watched
std::atomic<const TypedHook*> gTyped{nullptr};
std::atomic<std::int64_t> gLeft{0};  // how often a watch has been left, and one more
std::atomic<void (*)(int)> gForward{nullptr};
std::atomic<const Watched*> gCompiling{nullptr};  // whose thread compiles; only compared

bool compiles(const Watched& thread) {
    return gCompiling.load(std::memory_order_relaxed) == &thread;
}
bool unseen(const Watched& thread) {
    return thread.paused || compiles(thread);
}

/// This thread's ops come by no more, unless it has the key for good.
void leaveThread() {
    if (!tWatched.stays) c10::impl::tls_set_dispatch_key_included(kKey, false);
}

/// What observe() has done to the thread is undone.
void unwatch() {
    Thread& thread = tThread;
    tWatched.watch = 0;
    tWatched.awaits = false;
    leaveThread();
    if (thread.node != at::CallbackHandle()) at::removeCallback(thread.node);
    thread.node = at::CallbackHandle();
}

void sendGenerator(Session& session, std::size_t index) {
    auto& [generator, epoch] = session.generators[index];
    if (epoch == session.registry.epoch()) return;
    epoch = session.registry.epoch();
    const Pause pause(session.agent);
    at::Generator known = generator;
    at::Tensor state;
    {
        const std::lock_guard<std::mutex> guard(known.mutex());
        state = known.get_state();
    }
    session.stream.begin(FrameType::Generator)
        .put(session.registry.seq())
        .put(static_cast<std::int64_t>(index))
        .text(known.device().str())
        .raw({static_cast<const char*>(state.data_ptr()), static_cast<std::size_t>(state.nbytes())})
        .end();
}

std::int64_t useGenerator(Session& session, Running& running, const at::Generator& generator) {
    running.explicitGenerator = true;
    auto& known = session.generators;
    auto found = std::find_if(known.begin(), known.end(),
                              [&](const auto& entry) { return entry.first == generator; });
    if (found == known.end()) found = known.emplace(known.end(), generator, -1);
    const auto index = static_cast<std::size_t>(found - known.begin());
    sendGenerator(session, index);
    return static_cast<std::int64_t>(index);
}

/// An argument: its id; notes the read and the contents of a constant.
std::int64_t touch(Session& session, Running& running, const at::Tensor& tensor) {
    std::int64_t id = -1;
    Storage* storage = session.registry.constant(tensor, running.place.layer, id);
    if (storage == nullptr) {
        if (!isMeta(tensor) && session.gapTensors++ == 0)
            session.stream.gap("arguments of " + running.op->name, "they have no plain storage");
        return -1;
    }
    session.registry.storeContents(*storage, tensor);
    const bool lasting = storage->category == Category::Parameter ||
                         storage->category == Category::Gradient ||
                         storage->category == Category::OptimizerState;
    const bool before = storage->op < 0 || storage->epoch < session.registry.epoch();
    session.unseen.read(storage->id, tensor, storage->version == 0, before && !lasting);
    running.inputs.emplace_back(id, storage->version);
    return id;
}

class Noting : public ArgumentVisitor {
public:
    Noting(Session& session, Running& running) : session_(session), running_(running) {}
    std::int64_t tensor(const at::Tensor& tensor) override {
        return touch(session_, running_, tensor);
    }
    std::int64_t generator(const at::Generator& generator) override {
        return useGenerator(session_, running_, generator);
    }

private:
    Session& session_;
    Running& running_;
};

/// What is written can be told from the arguments only, before the op takes them.
void noteWritten(Session& session, Running& running, Values values) {
    auto& written = running.written;
    for (const std::size_t index : running.op->writes) {
        if (index >= values.size()) continue;
        eachTensor(values[index], [&](const at::Tensor& tensor) {
            Storage* storage = session.registry.lookup(tensor);
            if (storage != nullptr &&
                std::find(written.begin(), written.end(), storage) == written.end())
                written.push_back(storage);
        });
    }
}

/// What is not seen of the GPU is said once.
void noteMissedBlocks(Session& session) {
    if (session.missedBlocks || *cudaBlocksMissed() == '\0') return;
    session.missedBlocks = true;
    session.stream.gap("workspaces of ops on the GPU", cudaBlocksMissed());
}

void before(Session& session, Thread& thread, Values values) {
    Running& running = thread.running;
    session.registry.poll();
    running.place = {-1, static_cast<Phase>(gContext.phase), session.layerNow()};
    Noting arguments(session, running);
    encodeArguments(*running.op, values, arguments, running.arguments);
    if (running.op->random && !running.explicitGenerator)
        useGenerator(session, running, at::detail::getDefaultCPUGenerator());
    if (!running.op->writes.empty()) noteWritten(session, running, values);
    if (running.underMode)
        eachTensor(values, [&](const at::Tensor& tensor) {
            running.read.push_back(session.registry.lookup(tensor));
        });
    const std::uint64_t nextNode = at::sequence_number::peek();
    if (nextNode != thread.nextNode) {  // its own node has been made already
        session.nodes.mark(thread.nextNode, running.place.layer);
        session.nodeStacks.mark(thread.nextNode, running.stack);
        thread.nextNode = nextNode;
    }
}

void sendOp(Session& session, const Thread& thread) {
    const Running& running = thread.running;
    const OpWindow& window = running.window;
    const std::int64_t workspace = window.peak - window.liveBefore - running.freshBytes;
    Stream& frame = session.stream;
    frame.begin(FrameType::Op)
        .put(running.place.op)
        .put(running.seq)
        .put(window.beginNs)
        .put(window.endNs - window.beginNs)
        .put(std::max<std::int64_t>(0, workspace))
        .put(window.liveBefore + session.registry.uncounted())
        .put(running.place.layer)
        .put(thread.id)
        .put(running.stack)
        .put(static_cast<std::uint8_t>(running.place.phase))
        .put(static_cast<std::uint8_t>(running.op->random))
        .raw(running.op->encoded)
        .text(running.arguments.view())
        .reserve(sizeof(Use) *
                 (running.inputs.size() + running.outputs.size() + running.writes.size()));
    frame.put(static_cast<std::uint32_t>(running.inputs.size()));
    for (const auto& [id, version] : running.inputs) frame.put(id).put(version);
    frame.put(static_cast<std::uint32_t>(running.outputs.size()));
    for (const auto& [id, makes] : running.outputs) frame.put(id).put(makes);
    frame.put(static_cast<std::uint32_t>(running.writes.size()));
    for (const auto& [id, before] : running.writes) frame.put(id).put(before);
    frame.end();
}

void noteResult(Session& session, Running& running, const at::Tensor& tensor) {
    std::int64_t id = -1;
    bool fresh = false;
    Storage* storage = session.registry.result(tensor, running.place, running.seq, id, fresh);
    if (storage == nullptr) {
        if (!isMeta(tensor) && session.gapTensors++ == 0)
            session.stream.gap("results of " + running.op->name, "they have no plain storage");
        return;
    }
    if (fresh) {
        running.freshBytes += storage->bytes;
        if (running.op->onlyFills) session.unseen.made(storage->id, *storage->key());
        storage->phase = running.place.phase;
    }
    storage->layer = running.place.layer;
    running.outputs.emplace_back(id, fresh);
}

bool anyOfPython(Values values) {
    bool any = false;
    eachTensor(values, [&](const at::Tensor& tensor) {
        any = any || tensor.key_set().has(c10::DispatchKey::Python);
    });
    return any;
}

/// A dispatch mode can answer an op without running it, such as a selective checkpoint with what it
/// has kept: then nothing is new or written, and no result looks at an argument.
bool answeredFromElsewhere(Session& session, const Running& running, Values results) {
    if (!running.written.empty()) return false;
    bool any = false, made = false;
    eachTensor(results, [&](const at::Tensor& tensor) {
        const Storage* storage = session.registry.lookup(tensor);
        any = true;
        made = made || storage == nullptr ||
               std::find(running.read.begin(), running.read.end(), storage) != running.read.end();
    });
    return any && !made;
}

void after(Session& session, Thread& thread, Values results) {
    Running& running = thread.running;
    if (running.underMode &&
        (anyOfPython(results) || answeredFromElsewhere(session, running, results)))
        return;
    session.registry.raiseOpPeak(running.window.peak + session.registry.uncounted());
    if (running.op->adopts)  // what it read is known by the result only; a loader's batch is new
        eachTensor(results, [&](const at::Tensor& tensor) { touch(session, running, tensor); });
    running.place.op = session.ops++;
    running.seq = session.registry.nextSeq();
    for (Storage* storage : running.written) {
        running.writes.emplace_back(storage->id, storage->version++);
        session.unseen.forgetReads(storage->key());
    }
    eachTensor(results, [&](const at::Tensor& tensor) { noteResult(session, running, tensor); });
    sendOp(session, thread);
}

/// Which Python code has led to the op; in the backward, to the op that made its node.
void findStack(Session& session, Running& running) {
    running.stack = Stacks::kNone;
    if (!session.stacks.on()) return;
    if (gContext.layer == kBackwardLayer) running.stack = session.backwardStack;
    if (running.stack != Stacks::kNone) return;
    session.stacks.read(running.sites);
    guarded(session, [&] { running.stack = session.stacks.find(running.sites); });
    if (running.stack != Stacks::kNew) return;
    running.stack = Stacks::kNone;
    try {
        const auto frames = session.stacks.describe(running.sites);
        guarded(session, [&] { running.stack = session.stacks.add(running.sites, frames); });
    } catch (const std::exception& error) {  // no room for its text
        fail(session, error.what());
    }
}

/// Lends the thread's Running to an op.
class Busy {
public:
    explicit Busy(Running& running) : running_(running) { running_.busy = true; }
    ~Busy() { running_.busy = false; }
    Busy(const Busy&) = delete;
    Busy& operator=(const Busy&) = delete;

private:
    Running& running_;
};

/// An op of a thread that was told of by observeBeside().
void besideOp(Watched& thread, const Passing& op, torch::jit::Stack* stack) {
    if (thread.beside <= gLeft) {
        thread.beside = 0;
        leaveThread();
    } else if (const OpHook hook = gBeside; hook != nullptr && gWatch != 0) {
        return hook(op, stack);
    }
    op.handle.redispatchBoxed(op.below, stack);
}

/// The hook for ops whose work other code than kernels may do; null: there is none.
OpHook hookOfOthers(const Watched& thread) {
    const bool told = gHook != nullptr && gWatch != 0 && thread.watch == gWatch && !thread.paused;
    return told ? gBeside.load() : nullptr;
}

/// The hook of a thread that awaits a forward and nothing else.
void onlyAwait(const Passing& op, torch::jit::Stack* stack) {
    op.handle.redispatchBoxed(op.below, stack);
}

void endAwaiting() {
    if (gHook != &onlyAwait) return;
    gWatch = 0;
    gHook = nullptr;
    if (tWatched.watch != 0) unwatch();
}

[[gnu::cold]] void seeForward(Watched& thread) {
    const c10::impl::ExcludeDispatchKeyGuard inside(kKey);
    const auto begins = gForward.load();
    thread.awaits = false;
    if (begins != nullptr) begins(c10::GradMode::is_enabled() ? 1 : 0);
    if (!thread.awaits) endAwaiting();
}

/// Whether somebody was told of one.
bool lookForForward(Watched& thread) {
    if (!thread.awaits || at::sequence_number::peek() == thread.nodes || compiles(thread))
        return false;
    seeForward(thread);
    return true;
}

}  // namespace

/// Every op that a watched thread dispatches comes by here, after autograd and before the device.
/// What is called within it is its work, and goes unseen.
void onOp(const c10::OperatorHandle& handle, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
    const auto below = keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kKey);
    Thread& thread = tThread;
    const Operator& op = thread.operators.of(handle);
    const Values values = torch::jit::last(*stack, op.arguments.size());
    // Under a dispatch mode what the op calls stays unseen, so it is taken as a whole. Tensors of
    // Python's own kind go by, and otherwise ops that only call others: those are seen.
    const bool underMode = keys.has(c10::DispatchKey::Python);
    const bool onCuda = keys.has(c10::DispatchKey::CUDA);
    if (onCuda) countCudaBlocks();
    if (!op.profiler && (underMode ? anyOfPython(values) : !op.worksOn(onCuda))) {
        const OpHook others = underMode ? hookOfOthers(tWatched) : nullptr;
        return others ? others({handle, op, below}, stack) : handle.redispatchBoxed(below, stack);
    }
    Watched& watched = tWatched;
    lookForForward(watched);
    const c10::impl::ExcludeDispatchKeyGuard inside(kKey);
    Session* const session = gSession;
    Running& running = thread.running;
    const bool outlived = watched.watch != 0 && watched.watch != gWatch;  // its watch has been left
    if (outlived) unwatch();
    if (watched.beside != 0) return besideOp(watched, {handle, op, below}, stack);
    if (const OpHook hook = gHook; hook != nullptr && gWatch != 0 && !outlived && !watched.paused) {
        const OpHook taken = compiles(watched) ? gBeside.load() : hook;
        return taken ? taken({handle, op, below}, stack) : handle.redispatchBoxed(below, stack);
    }
    if (session == nullptr || session->failed() || gWatch == 0 || outlived || unseen(watched) ||
        running.busy) {
        handle.redispatchBoxed(below, stack);
        return;
    }
    if (op.profiler) {  // it is no part of the step
        const Pause pause(session->agent);
        handle.redispatchBoxed(below, stack);
        return;
    }
    const Busy busy(running);
    running.restart(op);
    running.underMode = underMode;
    if (!session->lock.isMine()) findStack(*session, running);
    const bool known = guarded(*session, [&] {
        if (onCuda) noteMissedBlocks(*session);
        before(*session, thread, values);
    });
    if (known) session->agent.begin(&running.window);
    handle.redispatchBoxed(below, stack);
    if (!known) return;
    session->agent.end(&running.window);
    guarded(*session, [&] { after(*session, thread, torch::jit::last(*stack, op.results)); });
}

const TypedHook* typedHook(c10::DispatchKeySet keys) {
    const TypedHook* const hook = gTyped.load(std::memory_order_relaxed);
    if (hook == nullptr || gWatch == 0 || keys.has(c10::DispatchKey::Python)) return nullptr;
    Watched& thread = tWatched;
    if (lookForForward(thread)) return typedHook(keys);
    if (unseen(thread) || thread.beside != 0 || (thread.watch != 0 && thread.watch != gWatch))
        return nullptr;
    if (keys.has(c10::DispatchKey::CUDA)) countCudaBlocks();
    return hook;
}

namespace {

/// Ops on names of dimensions take what cannot be put on a stack: they go by, and what they call
/// is seen.
void letNamesBy(c10::Dispatcher& dispatcher) {
    for (const c10::OperatorName& name : dispatcher.getAllOpNames())
        if (takesDimensionNames(name))
            static_cast<void>(new c10::RegistrationHandleRAII(dispatcher.registerImpl(
                name, kKey, c10::KernelFunction::makeFallthrough(), {}, nullptr, "highwater")));
}

/// A node of autograd begins: its ops belong to the layer and the stack of the op that made it.
std::unique_ptr<at::ObserverContext> onNode(const at::RecordFunction& function) {
    Session* session = gSession;
    if (session == nullptr || session->failed() || gWatch == 0 || function.seqNr() < 0 ||
        session->lock.isMine())
        return nullptr;
    const std::lock_guard<SpinLock> guard(session->lock);
    const auto node = static_cast<std::uint64_t>(function.seqNr());
    session->backwardLayer = session->nodes.of(node, session->backwardLayer);
    session->backwardStack = session->nodeStacks.of(node, session->backwardStack);
    return nullptr;
}

void onNodeEnd(const at::RecordFunction&, at::ObserverContext*) {}

}  // namespace

bool prepare() {
    static bool ready = false;
    c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
    if (ready || dispatcher.hasBackendFallbackForDispatchKey(kKey)) return ready;
    letNamesBy(dispatcher);
    // For good: threads may hold the key in a state that they come back to.
    static const auto registered = dispatcher.registerFallback(
        kKey, c10::KernelFunction::makeFromBoxedFunction<&onOp>(), "highwater");
    return ready = true;
}

namespace {

void watchHere() {
    static std::atomic<std::int64_t> watches{0};
    if (tWatched.watch != 0) unwatch();
    tWatched.watch = ++watches;
    gWatch = tWatched.watch;
    c10::impl::tls_set_dispatch_key_included(kKey, true);
}

}  // namespace

void observe() {
    gHook = nullptr;
    watchHere();
    tThread.node = at::addThreadLocalCallback(
        at::RecordFunctionCallback(onNode, onNodeEnd).scopes({at::RecordScope::BACKWARD_FUNCTION}));
    tThread.nextNode = at::sequence_number::peek();
}

void observeWith(OpHook hook, OpHook beside, const TypedHook* typed) {
    gHook = hook;
    gBeside = beside;
    gTyped = typed;
    tWatched.beside = 0;
    watchHere();
}

void observeBeside() {
    if (tWatched.watch != 0) return;
    tWatched.beside = gLeft + 1;
    c10::impl::tls_set_dispatch_key_included(kKey, true);
}

void leave() {
    ++gLeft;
    gWatch = 0;
    gHook = gBeside = nullptr;
    gTyped = nullptr;
    if (tWatched.watch != 0) unwatch();
}

void awaitForward(void (*begins)(int gradients)) {
    Watched& thread = tWatched;
    thread.awaits = false;
    if (begins == nullptr) return endAwaiting();
    gForward = begins;
    if (thread.watch == 0 || thread.watch != gWatch) {
        if (gWatch != 0) return;  // another thread is watched
        observeWith(&onlyAwait);
    }
    thread.awaits = true;
    thread.nodes = at::sequence_number::peek();
    c10::impl::tls_set_dispatch_key_included(kKey, true);
}

void pause(bool paused) {
    tWatched.paused = paused;
    if (gSession != nullptr) gSession->agent.pause(paused ? 1 : 0);
}

void compiling(bool begins) {
    gCompiling = begins ? &tWatched : nullptr;
}

void check(bool begins) {
    tWatched.checked = begins;
}

bool isChecked() {
    return tWatched.checked;
}

void stay() {
    if (!prepare()) return;
    tWatched.stays = true;
    c10::impl::tls_set_dispatch_key_included(kKey, true);
}

void standAside(bool aside) {
    if (tWatched.stays) return;
    if (aside && !tWatched.awaits)
        c10::impl::tls_set_dispatch_key_included(kKey, false);
    else if (tWatched.watch != 0 && tWatched.watch == gWatch)
        c10::impl::tls_set_dispatch_key_included(kKey, true);
}

}  // namespace hw::profiler::native
