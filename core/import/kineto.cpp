// SPDX-License-Identifier: MIT
#include "core/import/kineto.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string_view>
#include <unordered_map>

#include "core/import/checked.h"
#include "core/import/kineto_events.h"
#include "core/import/trace_writer.h"
#include "core/session/trace_staging.h"

namespace hw::core {
namespace {

constexpr const char* kKinetoHint =
    "export it again with torch.profiler's export_chrome_trace, and copy it whole";

bool isOneOf(std::string_view text, std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), text) != names.end();
}

class KinetoImporter {
public:
    KinetoImporter(TextSource& source, SessionWriter& session,
                   std::unordered_map<std::int64_t, std::int64_t>* opOf)
        : source_(source),
          session_(session),
          writer_(session),
          staging_(required(TraceStaging::create(session))),
          opOf_(opOf) {}

    Status run() {
        require(session_.begin());
        const KinetoHandlers handlers{[this](const KinetoEvent& event) { stage(event); },
                                      [this](const KinetoDevice& device) { describe(device); },
                                      [this](std::int64_t rank) { rank_ = rank; }};
        const std::string stopped = readKinetoEvents(source_, handlers);
        if (staged_ == 0)
            throw std::invalid_argument(stopped.empty()
                                            ? "it holds no event of a trace"
                                            : "nothing of a trace before it ends at " + stopped);
        require(staging_.visitHost([this](const StagedEvent& row) { host(row); }));
        require(staging_.visitDevice(
            [this](const StagedEvent& row, const std::optional<std::int64_t>& op) {
                deviceWork(row, op);
            }));
        finish(stopped);
        return session_.commit();
    }

private:
    struct Span {  // an op, annotation or module that is open on its thread
        StagedKind kind = StagedKind::Op;
        std::int64_t end = 0;
        std::optional<std::int64_t> op, layer, module, stack;
        Phase phase = Phase::Unknown;
        bool loading = false;  // inside the data loader
    };

    struct Live {
        std::int64_t storage = 0;
        Phase phase = Phase::Unknown;  // in which it was allocated
    };

    // --- first pass: the file's order

    void describe(const KinetoDevice& device) {
        if (device.id)
            writer_.describe(writer_.device("cuda", *device.id), device.name, device.bytes);
    }

    static std::optional<StagedKind> kindOf(const KinetoEvent& event) {
        if (event.name == "[memory]") return StagedKind::Memory;
        if (event.phase != "X") return std::nullopt;
        const std::string& category = event.category;
        // "Optimizer.step#SGD.step": annotations of 2021 stand among the operators.
        if (isOneOf(category, {"Operator", "cpu_op"}))
            return event.name.find('#') == std::string::npos ? StagedKind::Op
                                                             : StagedKind::Annotation;
        if (category == "user_annotation") return StagedKind::Annotation;
        if (category == "python_function" && event.name.starts_with("nn.Module: "))
            return StagedKind::Module;
        if (isOneOf(category, {"Runtime", "cuda_runtime", "cuda_driver"}))
            return StagedKind::Runtime;
        if (isOneOf(category, {"Kernel", "kernel"})) return StagedKind::Kernel;
        if (isOneOf(category, {"Memcpy", "Memset", "gpu_memcpy", "gpu_memset"}))
            return StagedKind::Copy;
        return std::nullopt;
    }

    void stage(const KinetoEvent& event) {
        const auto kind = kindOf(event);
        if (!kind) return;
        StagedEvent row;
        row.kind = *kind;
        const bool memory = *kind == StagedKind::Memory;
        if (!event.beginNs || event.durationNs < 0 || (memory && !event.bytes) ||
            __builtin_add_overflow(*event.beginNs, memory ? 0 : event.durationNs, &row.end)) {
            ++unreadable_;
            return;
        }
        row.begin = *event.beginNs;
        row.thread = event.thread.value_or(0);
        row.name = staging_.intern(memory ? std::string() : event.name);
        if (*kind == StagedKind::Op) {
            row.layer = namedLayer(event);
            row.stack = namedStack(event.callStack);
            if (!pid_) pid_ = event.pid;
        }
        row.external = event.recordFunction ? event.recordFunction : event.externalId;
        if (*kind >= StagedKind::Kernel) row.external = event.externalId;
        row.sequence = event.sequence, row.forwardThread = event.forwardThread;
        row.correlation = event.correlation, row.stream = event.stream;
        row.address = event.address, row.bytes = event.bytes;
        row.allocated = event.allocated, row.reserved = event.reserved;
        row.eventIndex = event.eventIndex;
        row.device = memory ? writer_.device(deviceKind(event.deviceType.value_or(0)),
                                             event.deviceId.value_or(-1))
                     : event.device && *kind >= StagedKind::Kernel
                         ? std::optional(writer_.device("cuda", *event.device))
                         : std::nullopt;
        require(staging_.add(row));
        ++staged_;
    }
    static std::string deviceKind(std::int64_t type) {
        // As torch numbers kinds of devices (c10::DeviceType).
        constexpr std::array<const char*, 21> kKindNames{
            "cpu",  "cuda", "mkldnn", "opengl", "opencl", "ideep", "hip",
            "fpga", "maia", "xla",    "vulkan", "metal",  "xpu",   "mps",
            "meta", "hpu",  "ve",     "lazy",   "ipu",    "mtia",  "privateuseone"};
        if (type >= 0 && type < static_cast<std::int64_t>(kKindNames.size()))
            return kKindNames[static_cast<std::size_t>(type)];
        return "device type " + std::to_string(type);
    }

    // Texts repeat with every step: each is taken apart once, as long as they are not too many.
    std::optional<std::int64_t> namedLayer(const KinetoEvent& event) {
        const bool modules = !event.moduleHierarchy.empty();
        const std::string& text = modules ? event.moduleHierarchy : event.callStack;
        if (text.empty()) return std::nullopt;
        if (layerOfText_.size() >= kMostTexts) layerOfText_.clear();
        const auto [at, isNew] = layerOfText_.try_emplace(text);
        if (!isNew) return at->second;
        std::optional<std::int64_t> layer;
        if (modules) {
            for (const auto& [name, type] : modulesOf(text))
                layer = writer_.layer(layer, name, type, ".");
        } else {
            for (const std::string& frame : framesOf(text))
                layer = writer_.layer(layer, frame, "frame", " > ");
            stacks_ = true;
        }
        return at->second = layer;
    }

    std::optional<std::int64_t> namedStack(const std::string& text) {
        if (text.empty()) return std::nullopt;
        if (stackOfText_.size() >= kMostTexts) stackOfText_.clear();
        const auto [at, isNew] = stackOfText_.try_emplace(text);
        if (isNew) at->second = writer_.stack(sourceFramesOf(text));
        return at->second;
    }

    // --- second pass: by time

    void host(const StagedEvent& row) {
        std::vector<Span>& open = open_[row.thread];
        while (!open.empty() && open.back().end < row.end) open.pop_back();
        const Span* outer = open.empty() ? nullptr : &open.back();
        switch (row.kind) {
            case StagedKind::Op:
                op(row, open);
                break;
            case StagedKind::Annotation: {
                Span span = opened(row, outer);
                const std::string& name = staging_.name(row.name);
                if (name.starts_with("Optimizer.")) span.phase = Phase::Optimizer;
                if (name.starts_with("enumerate(DataLoader)")) span.loading = true;
                open.push_back(span);
                break;
            }
            case StagedKind::Module: {
                Span span = opened(row, outer);
                const std::string name = staging_.name(row.name).substr(11);
                span.module = span.layer =
                    writer_.layer(span.module, name, name.substr(0, name.rfind('_')), ".");
                open.push_back(span);
                break;
            }
            case StagedKind::Runtime:
                if (outer && outer->op && row.correlation)
                    require(staging_.launch(*row.correlation, *outer->op));
                break;
            case StagedKind::Memory:
                memory(row, outer);
                break;
            default:
                break;
        }
    }

    static Span opened(const StagedEvent& row, const Span* outer) {
        Span span = outer ? *outer : Span{};
        span.kind = row.kind, span.end = row.end;
        return span;
    }

    Phase phaseOf(const StagedEvent& row, const Span* outer) {
        if (outer && outer->phase != Phase::Unknown) return outer->phase;
        const std::string& name = staging_.name(row.name);
        const bool autograd = name.starts_with("autograd::engine::") ||
                              name.find("AccumulateGrad") != std::string::npos ||
                              row.forwardThread.value_or(0) > 0;
        if (autograd) {
            if (!outer) autogradThreads_[row.thread] = true;
            return Phase::Backward;
        }
        if (autogradThreads_.contains(row.thread)) return Phase::Backward;
        if (outer && outer->loading) return Phase::Unknown;
        return Phase::Forward;
    }

    void op(const StagedEvent& row, std::vector<Span>& open) {
        const Span* outer = open.empty() ? nullptr : &open.back();
        OpRow made;
        made.id = ops_++;
        made.seq = seq_++;
        made.name = staging_.name(row.name);
        made.phase = phaseOf(row, outer);
        made.layer = row.layer;
        if (outer && outer->module) made.layer = outer->module;
        const bool forward = made.phase == Phase::Forward;
        if (!made.layer && !forward && row.sequence) {
            const auto at = layerOfSequence_.find(*row.sequence);
            if (at != layerOfSequence_.end()) made.layer = at->second;
        }
        if (!made.layer && outer) made.layer = outer->layer;
        if (forward && row.sequence && made.layer)
            layerOfSequence_.insert_or_assign(*row.sequence, *made.layer);
        made.stack = stackOf(row, outer, made.phase);
        made.thread = row.thread;
        made.beginNs = row.begin;
        made.duration = Nanoseconds(row.end - row.begin);
        require(session_.insert(made));
        if (row.external) require(staging_.external(*row.external, made.id));
        if (row.external && opOf_) opOf_->emplace(*row.external, made.id);
        Span span = opened(row, outer);
        span.op = made.id, span.layer = made.layer, span.phase = made.phase;
        span.stack = made.stack;
        if (made.phase != Phase::Unknown) phase_ = made.phase;
        open.push_back(span);
    }

    // Its own; in the backward, of the forward op with its sequence number; else of what encloses
    // it.
    std::optional<std::int64_t> stackOf(const StagedEvent& row, const Span* outer, Phase phase) {
        std::optional<std::int64_t> stack = row.stack;
        if (!stack && phase != Phase::Forward && row.sequence) {
            const auto at = stackOfSequence_.find(*row.sequence);
            if (at != stackOfSequence_.end()) stack = at->second;
        }
        if (!stack && outer) stack = outer->stack;
        if (stack && row.sequence && phase == Phase::Forward)
            stackOfSequence_.insert_or_assign(*row.sequence, *stack);
        return stack;
    }

    // What an allocation was for, by the phases in which it begins and ends.
    static Category categoryOf(Phase begin, std::optional<Phase> end) {
        switch (begin) {
            case Phase::Forward:
                if (!end) return Category::Unknown;
                return end == Phase::Forward ? Category::Temporary : Category::Activation;
            case Phase::Backward:
                return end == Phase::Backward ? Category::Temporary : Category::Gradient;
            case Phase::Optimizer:
                return end ? Category::Temporary : Category::OptimizerState;
            default:
                return Category::Unknown;
        }
    }

    void memory(const StagedEvent& row, const Span* outer) {
        MemoryEventRow event;
        event.seq = seq_++;
        event.device = writer_.deviceOf(*row.device).ordinal;
        event.timeNs = row.begin;
        event.kind = *row.bytes < 0 ? "free" : "alloc";
        event.address = row.address;
        event.bytes = Bytes(*row.bytes);
        event.allocated = row.allocated, event.reserved = row.reserved;
        if (outer) event.op = outer->op;
        if (!event.allocated) {
            std::int64_t& level = levelOf(*row.device);
            event.allocated = level = checkedAdd(level, *row.bytes);
        }
        writer_.memory(event);
        ++memoryEvents_;
        if (outer && outer->phase != Phase::Unknown) phase_ = outer->phase;
        if (row.address) lifetime(row, event, outer);
    }

    // Addresses tell which free ends which allocation.
    void lifetime(const StagedEvent& row, const MemoryEventRow& event, const Span* outer) {
        ++addressed_;
        auto& live = live_[*row.device];
        const auto at = live.find(*row.address);
        if (event.bytes < Bytes(0)) {
            if (at == live.end()) return;  // allocated before the trace
            require(session_.setFreed(at->second.storage, *event.seq));
            categorize(at->second, phase_);
            live.erase(at);
            return;
        }
        StorageRow storage;
        storage.id = storages_++;
        storage.bytes = event.bytes;
        storage.device = writer_.deviceOf(*row.device).label();
        if (outer) storage.layer = outer->layer, storage.stack = outer->stack;
        storage.allocSeq = *event.seq;
        storage.address = row.address;
        require(session_.insert(storage));
        live[*row.address] = {storage.id, phase_};
    }
    void categorize(const Live& live, std::optional<Phase> end) {
        if (const Category category = categoryOf(live.phase, end); category != Category::Unknown) {
            require(session_.setCategory(live.storage, category, std::nullopt));
            ++deduced_;
        }
    }
    // Bytes of a device whose events have no totals. It starts so high that no release makes it
    // negative.
    std::int64_t& levelOf(std::int64_t device) {
        const auto [at, isNew] = levels_.try_emplace(device);
        if (isNew) {
            std::int64_t level = 0, lowest = 0;
            require(staging_.visitUntotalled(device, [&](std::int64_t bytes) {
                level = checkedAdd(level, bytes);
                lowest = std::min(lowest, level);
            }));
            at->second = -lowest;
        }
        return at->second;
    }

    void deviceWork(const StagedEvent& row, const std::optional<std::int64_t>& op) {
        DeviceWorkRow work{row.device, row.stream, staging_.name(row.name), 0, row.begin,
                           row.end,    op,         row.correlation};
        work.bytes = row.bytes.value_or(0);
        unlaunched_ += op ? 0 : 1;
        row.kind == StagedKind::Kernel ? writer_.kernel(work) : writer_.copy(work);
    }

    void finish(const std::string& stopped) {
        require(session_.chargeKernels());
        ProcessRow process;
        process.pid = pid_.value_or(0);
        process.command = "Kineto trace";
        process.framework = "pytorch";
        process.rank = static_cast<int>(std::clamp<std::int64_t>(rank_, 0, 1 << 20));
        require(session_.insert(process));
        require(session_.setMeta(
            "no_step", "a Kineto trace names ops and sizes, but not which tensors an op reads"));
        for (const auto& [device, live] : live_)
            for (const auto& [address, storage] : live) categorize(storage, std::nullopt);
        stateGaps(stopped);
    }

    void stateGaps(const std::string& stopped) {
        if (!stopped.empty())
            writer_.gap("end", "the trace is cut short or damaged, what comes after is missing: " +
                                   stopped);
        writer_.gap("tensors", "Kineto traces do not say which tensors an op reads and makes");
        if (memoryEvents_ == 0)
            writer_.gap("memory", "no [memory] event: the profiler ran without profile_memory");
        if (!levels_.empty())
            writer_.gap("levels",
                        "the [memory] events of this form have no totals: bytes count "
                        "from the start of the trace, whatever was allocated before");
        if (memoryEvents_ > addressed_)
            writer_.gap("lifetimes", std::to_string(memoryEvents_ - addressed_) +
                                         " [memory] events have no address: which free ends which "
                                         "allocation is unknown");
        if (deduced_ > 0)
            writer_.gap("categories",
                        "the trace has none: they are deduced from the phases in which memory is "
                        "taken and given back; what was there before has none");
        if (stacks_)
            writer_.gap("layers", "the trace names no modules: layers are Python call stacks");
        if (unlaunched_ > 0)
            writer_.gap("kernels", std::to_string(unlaunched_) +
                                       " kernels and copies have no op that launched them");
        if (unreadable_ > 0)
            writer_.gap("events", std::to_string(unreadable_) +
                                      " events have no time, a negative one or no size, and are "
                                      "left out");
    }

    TextSource& source_;
    SessionWriter& session_;
    TraceWriter writer_;
    TraceStaging staging_;
    std::unordered_map<std::int64_t, std::int64_t>* opOf_;
    static constexpr std::size_t kMostTexts = 20'000;
    std::unordered_map<std::string, std::optional<std::int64_t>> layerOfText_, stackOfText_;
    std::unordered_map<std::int64_t, std::vector<Span>> open_;  // by thread
    std::unordered_map<std::int64_t, bool> autogradThreads_;
    std::unordered_map<std::int64_t, std::int64_t> layerOfSequence_, stackOfSequence_;
    std::unordered_map<std::int64_t, std::int64_t> levels_;  // device
    std::unordered_map<std::int64_t, std::unordered_map<std::int64_t, Live>> live_;
    Phase phase_ = Phase::Unknown;  // of the op that was last seen
    std::int64_t deduced_ = 0;      // categories
    std::optional<std::int64_t> pid_;
    std::int64_t rank_ = 0, seq_ = 0, ops_ = 0, storages_ = 0;
    std::int64_t staged_ = 0, unreadable_ = 0, memoryEvents_ = 0, addressed_ = 0, unlaunched_ = 0;
    bool stacks_ = false;
};

}  // namespace

Status importKineto(TextSource& source, SessionWriter& session,
                    std::unordered_map<std::int64_t, std::int64_t>* opOf) {
    return importing("Kineto trace", kKinetoHint,
                     [&] { return KinetoImporter(source, session, opOf).run(); });
}

static Status importWhole(TextSource& source, SessionWriter& session) {
    return importKineto(source, session);
}

const ImportFormat& kinetoFormat() {
    static const ImportFormat format{
        .name = "kineto",
        .patterns = {"*.json", "*.json.gz"},
        .recognizes =
            [](const FileStart& file) {
                return (file.first() == '{' || file.first() == '[') &&
                       (file.holds("\"traceEvents\"") || file.holds("\"ph\""));
            },
        .read = readText<importWhole>};
    return format;
}

}  // namespace hw::core
