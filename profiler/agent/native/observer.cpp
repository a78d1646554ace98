// SPDX-License-Identifier: MIT
#include "observer.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/SequenceNumber.h>
#include <ATen/core/grad_mode.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <memory>

#include "arguments.h"
#include "operators.h"
#include "session.h"

namespace hw::profiler::native {
namespace {

using Use = std::pair<std::int64_t, std::int32_t>;

struct Running;

/// What the framework holds for us between the start and the end of an op, and deletes.
struct Context : at::ObserverContext {
    explicit Context(Running& op) : running(op) {}
    static void* operator new(std::size_t, void* place) { return place; }
    static void operator delete(void*) {}  // it lies in the op
    static void operator delete(void*, void*) {}
    Running& running;
};

/// An op in progress.
struct Running {
    alignas(Context) unsigned char context[sizeof(Context)];

    const Operator* op = nullptr;
    Running* outer = nullptr;
    Buffer arguments;
    std::vector<Use> inputs;
    std::vector<std::pair<std::int64_t, std::uint8_t>> outputs;  // tensor, whether it made it
    std::vector<Storage*> written;  // alive as long as the op's arguments are
    std::vector<Use> writes;        // storage, version before
    Place place;
    std::int64_t seq = -1;  // once its work is known to be done
    std::int64_t freshBytes = 0;
    c10::TensorImpl* firstWritten = nullptr;
    std::uint32_t versionBefore = 0;  // of autograd, of what is written first
    bool held = false;                // ops of its own follow it
    bool explicitGenerator = false;
    int exceptions = 0;
    std::int64_t figures[5]{};
};

/// Ops in progress on a thread, one in the autograd part of the other; used again and again.
struct Nest {
    std::vector<std::unique_ptr<Running>> levels;
    std::size_t depth = 0;

    Running& enter() {
        if (depth == levels.size()) levels.push_back(std::make_unique<Running>());
        Running& running = *levels[depth];
        running.outer = depth > 0 ? levels[depth - 1].get() : nullptr;
        running.arguments.clear();
        running.inputs.clear();
        running.written.clear();
        running.writes.clear();
        running.outputs.clear();
        running.seq = -1;
        running.freshBytes = 0;
        running.firstWritten = nullptr;
        running.held = false;
        running.explicitGenerator = false;
        return running;
    }
    Running* innermost() { return depth > 0 ? levels[depth - 1].get() : nullptr; }
};
thread_local Nest tNest;
thread_local bool tPaused = false;

std::int64_t threadId() {
    thread_local const std::int64_t id = syscall(SYS_gettid);
    return id;
}

void sendGenerator(Session& session, std::size_t index) {
    auto& [generator, epoch] = session.generators[index];
    if (epoch == session.registry.epoch()) return;
    epoch = session.registry.epoch();
    session.agent.pause(1);
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
    state.reset();
    session.agent.pause(0);
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
        if (session.gapTensors++ == 0)
            session.stream.gap("arguments of " + running.op->name, "they have no plain storage");
        return -1;
    }
    session.registry.storeContents(*storage, tensor);
    running.inputs.emplace_back(id, storage->version);
    return id;
}

class Arguments : public ArgumentVisitor {
public:
    Arguments(Session& session, Running& running) : session_(session), running_(running) {}
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

bool onCuda(c10::ArrayRef<const c10::IValue> values) {
    for (const c10::IValue& value : values)
        if (value.isTensor() && value.toTensor().defined()) return value.toTensor().is_cuda();
    return false;
}

template <typename Visit>
void eachTensor(const c10::IValue& value, const Visit& visit) {
    if (value.isTensor()) {
        if (value.toTensor().defined()) visit(value.toTensor());
    } else if (value.isTensorList()) {
        for (const at::Tensor& tensor : value.toTensorVector())
            if (tensor.defined()) visit(tensor);
    } else if (value.isList()) {
        for (const c10::IValue& item : value.toListRef()) eachTensor(item, visit);
    } else if (value.isTuple()) {
        for (const c10::IValue& item : value.toTupleRef().elements()) eachTensor(item, visit);
    }
}

/// As autograd counts in-place changes; inference tensors have none.
std::uint32_t versionOf(c10::TensorImpl& impl) {
    return impl.is_inference() ? 0 : impl.version_counter().current_version();
}

/// The function's inputs can be read at its start only.
void noteWritten(Session& session, Running& running, c10::ArrayRef<const c10::IValue> values) {
    auto& written = running.written;
    for (const std::size_t index : running.op->writes) {
        if (index >= values.size()) continue;
        eachTensor(values[index], [&](const at::Tensor& tensor) {
            Storage* storage = session.registry.lookup(tensor);
            if (storage == nullptr) return;
            if (written.empty()) {
                running.firstWritten = tensor.unsafeGetTensorImpl();
                running.versionBefore = versionOf(*running.firstWritten);
            }
            if (std::find(written.begin(), written.end(), storage) == written.end())
                written.push_back(storage);
        });
    }
}

void before(Session& session, Running& running, const at::RecordFunction& function) {
    session.registry.poll();
    running.place = {-1, session.phase, session.layerNow()};
    const auto values = function.inputs();
    Arguments arguments(session, running);
    encodeArguments(*running.op, values, arguments, running.arguments);
    if (running.op->random && !running.explicitGenerator)
        useGenerator(session, running, at::detail::getDefaultCPUGenerator());
    noteWritten(session, running, values);
    if (c10::GradMode::is_enabled())
        session.nodes.mark(at::sequence_number::peek(), running.place.layer);
}

void sendOp(Session& session, const Running& running) {
    const std::int64_t* figures = running.figures;
    const std::int64_t workspace = figures[3] - figures[0] - running.freshBytes;
    Stream& frame = session.stream;
    frame.begin(FrameType::Op)
        .put(running.place.op)
        .put(running.seq)
        .put(figures[1])
        .put(figures[4] - figures[1])
        .put(std::max<std::int64_t>(0, workspace))
        .put(figures[0] + session.registry.foreign())
        .put(running.place.layer)
        .put(threadId())
        .put(static_cast<std::uint8_t>(running.place.phase))
        .put(static_cast<std::uint8_t>(running.op->random))
        .text(running.op->name)
        .text(running.op->overload)
        .text(running.arguments.view());
    frame.put(static_cast<std::uint32_t>(running.inputs.size()));
    for (const auto& [id, version] : running.inputs) frame.put(id).put(version);
    frame.put(static_cast<std::uint32_t>(running.outputs.size()));
    for (const auto& [id, makes] : running.outputs) frame.put(id).put(makes);
    frame.put(static_cast<std::uint32_t>(running.writes.size()));
    for (const auto& [id, before] : running.writes) frame.put(id).put(before);
    frame.end();
}

/// The work is done: the op gets its place among the others, and what it has written is written.
void conclude(Session& session, Running& running) {
    session.registry.raiseOpPeak(running.figures[3] + session.registry.foreign());
    running.place.op = session.ops++;
    running.seq = session.registry.nextSeq();
    for (Storage* storage : running.written)
        running.writes.emplace_back(storage->id, storage->version++);
}

void noteResult(Session& session, Running& running, const at::Tensor& tensor) {
    std::int64_t id = -1;
    bool fresh = false;
    Storage* storage = session.registry.result(tensor, running.place, running.seq, id, fresh);
    if (storage == nullptr) {
        if (session.gapTensors++ == 0)
            session.stream.gap("results of " + running.op->name, "they have no plain storage");
        return;
    }
    if (fresh) {
        running.freshBytes += storage->bytes;
        storage->phase = running.place.phase;
    }
    storage->layer = running.place.layer;
    running.outputs.emplace_back(id, fresh);
}

void after(Session& session, Running& running, const at::RecordFunction& function, bool failed) {
    if (failed && !running.held) return;
    if (!running.held) conclude(session, running);
    const Buffer later = running.held ? session.stream.release() : Buffer();
    // Results that an op of its own has used already are listed in their order all the same.
    decltype(running.outputs) early;
    if (!running.outputs.empty()) early.swap(running.outputs);
    for (const c10::IValue& value : function.outputs())
        eachTensor(value, [&](const at::Tensor& tensor) { noteResult(session, running, tensor); });
    for (const auto& [id, makes] : early) {
        const auto listed =
            std::find_if(running.outputs.begin(), running.outputs.end(),
                         [id = id](const auto& output) { return output.first == id; });
        if (listed == running.outputs.end())
            running.outputs.emplace_back(id, makes);
        else
            listed->second = makes;
    }
    sendOp(session, running);
    session.stream.append(later);
}

/// Hooks on saved tensors, and autograd itself, run ops in the autograd part of another op. Those
/// that come after its work follow it, though it has not ended.
void placeOuter(Session& session, Running& outer, c10::ArrayRef<const c10::IValue> values) {
    if (outer.held) return;
    std::vector<at::Tensor> unknown;
    for (const c10::IValue& value : values)
        eachTensor(value, [&](const at::Tensor& tensor) {
            if (hasPlainStorage(tensor) && !tensor.unsafeGetTensorImpl()->is_wrapped_number() &&
                session.registry.lookup(tensor) == nullptr)
                unknown.push_back(tensor);
        });
    const bool wrote =
        outer.firstWritten != nullptr && versionOf(*outer.firstWritten) != outer.versionBefore;
    if (unknown.empty() && !wrote) return;
    conclude(session, outer);
    for (const at::Tensor& tensor : unknown) noteResult(session, outer, tensor);
    outer.held = true;
    session.stream.hold();
}

/// Whether a call belongs to the work of the op in progress rather than to its autograd part,
/// which runs other ops of its own (copies of what it saves).
bool insideWork(const Running& running) {
    return !running.op->autograd ||
           c10::impl::tls_is_dispatch_key_excluded(c10::DispatchKey::AutogradOther);
}

std::unique_ptr<at::ObserverContext> onStart(const at::RecordFunction& function) {
    Session* session = gSession;
    if (session == nullptr || session->failed || tPaused) return nullptr;
    Running* outer = tNest.innermost();
    if (outer != nullptr && insideWork(*outer)) return nullptr;
    const Operator* op = operatorOf(function);
    if (op == nullptr || !op->worksOn(onCuda(function.inputs()))) return nullptr;
    Running& running = tNest.enter();
    running.op = op;
    running.exceptions = std::uncaught_exceptions();
    if (op->profiler)
        session->agent.pause(1);
    else if (!guarded(*session, [&] {
                 if (outer != nullptr && !outer->held) session->agent.end(outer->figures);
                 if (outer != nullptr) placeOuter(*session, *outer, function.inputs());
                 before(*session, running, function);
             }))
        return nullptr;
    ++tNest.depth;
    std::unique_ptr<at::ObserverContext> context(new (running.context) Context(running));
    if (!op->profiler) session->agent.begin(running.figures);
    return context;
}

void onEnd(const at::RecordFunction& function, at::ObserverContext* context) {
    if (context == nullptr) return;
    Running& running = static_cast<Context*>(context)->running;
    Session* session = gSession;
    if (session != nullptr && !running.op->profiler && !running.held)
        session->agent.end(running.figures);
    --tNest.depth;
    if (session == nullptr) return;
    if (running.op->profiler) {
        session->agent.pause(0);
        return;
    }
    const bool failed = std::uncaught_exceptions() > running.exceptions;
    guarded(*session, [&] { after(*session, running, function, failed); });
    // An op before the work of another one is no part of it.
    Running* outer = tNest.innermost();
    if (outer != nullptr && !outer->held) session->agent.begin(outer->figures);
}

/// A node of autograd begins: its ops belong to the layer of the op that made it.
std::unique_ptr<at::ObserverContext> onNode(const at::RecordFunction& function) {
    Session* session = gSession;
    if (session == nullptr || session->failed || function.seqNr() < 0) return nullptr;
    const std::lock_guard<std::mutex> guard(session->lock);
    session->backwardLayer =
        session->nodes.of(static_cast<std::uint64_t>(function.seqNr()), session->backwardLayer);
    return nullptr;
}

void onNodeEnd(const at::RecordFunction&, at::ObserverContext*) {}

}  // namespace

void observe(Session& session) {
    session.handles[0] = at::addThreadLocalCallback(at::RecordFunctionCallback(onStart, onEnd)
                                                        .needsInputs(true)
                                                        .needsOutputs(true)
                                                        .scopes({at::RecordScope::FUNCTION}));
    session.handles[1] = at::addThreadLocalCallback(
        at::RecordFunctionCallback(onNode, onNodeEnd).scopes({at::RecordScope::BACKWARD_FUNCTION}));
    session.entered = true;
}

void leave(Session& session) {
    if (!session.entered) return;
    session.entered = false;
    for (const at::CallbackHandle handle : session.handles) at::removeCallback(handle);
}

void pause(bool paused) {
    tPaused = paused;
    gSession->agent.pause(paused ? 1 : 0);
}

}  // namespace hw::profiler::native
