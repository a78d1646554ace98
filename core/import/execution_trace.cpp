// SPDX-License-Identifier: MIT
#include "core/import/execution_trace.h"

#include <algorithm>
#include <map>
#include <stdexcept>

#include "core/import/execution_nodes.h"
#include "core/import/kineto.h"
#include "core/import/trace_writer.h"

namespace hw::core {
namespace {

constexpr const char* kHint =
    "it is damaged or no execution trace; record it again with torch's ExecutionTraceObserver";
constexpr std::int64_t kUnitNs = 1000;  // of an op without a time

// Which arguments the schema marks as written: "(Tensor(a!) self, …" marks the first.
std::vector<bool> writtenArguments(const std::string& schema) {
    std::vector<bool> written;
    int depth = 0;
    std::string argument;
    for (std::size_t i = schema.find('('); i < schema.size(); ++i) {
        const char c = schema[i];
        if (c == ')' || c == ']') --depth;
        if (depth == 0 || (depth == 1 && c == ',')) {
            // "*" alone separates keyword arguments and is none itself.
            if (!argument.empty() && argument != "*")
                written.push_back(argument.find('!') != std::string::npos);
            argument.clear();
            if (depth == 0 && c == ')') break;
        } else if (c != ' ' || !argument.empty()) {
            argument += c;
        }
        if (c == '(' || c == '[') ++depth;
    }
    return written;
}

class ExecutionImporter {
public:
    ExecutionImporter(ExecutionNodes trace, SessionWriter& session, const RecordedTimes* times)
        : trace_(std::move(trace)), session_(session), writer_(session), times_(times) {}

    Status run() {
        arrange();
        for (const std::size_t root : roots_) follow(root);
        if (ops_.empty())
            throw std::invalid_argument(trace_.stopped.empty()
                                            ? "it holds no op"
                                            : "no op before it ends at " + trace_.stopped);
        return write();
    }
    JoinRate rate() const { return rate_; }

private:
    struct Place {  // of a node while the tree is followed
        std::size_t node, child = 0;
        Phase phase;
        std::optional<std::int64_t> layer;
        std::size_t firstOp;
        bool hasOps = false;  // an op below it
    };
    struct StorageState {
        StorageRow row;
        std::int32_t version = 0;
        std::size_t lastRead = 0;  // op + 1; 0: never
        bool result = false;
    };
    struct TensorState {
        std::int64_t tensor, storage;
    };

    // Children in the order in which they began.
    void arrange() {
        std::unordered_map<std::int64_t, std::size_t> byId;
        for (std::size_t i = 0; i < trace_.nodes.size(); ++i) byId.emplace(trace_.nodes[i].id, i);
        children_.resize(trace_.nodes.size());
        for (std::size_t i = 0; i < trace_.nodes.size(); ++i) {
            const ExecutionNode& node = trace_.nodes[i];
            const auto parent = byId.find(node.parent);
            const bool root = parent == byId.end() || parent->second == i;
            (root ? roots_ : children_[parent->second]).push_back(i);
        }
        const auto earlier = [this](std::size_t a, std::size_t b) {
            return trace_.nodes[a].id < trace_.nodes[b].id;
        };
        std::stable_sort(roots_.begin(), roots_.end(), earlier);
        for (auto& list : children_) std::stable_sort(list.begin(), list.end(), earlier);
    }

    // A node comes after the nodes that it calls. Nesting costs heap, not stack.
    void follow(std::size_t root) {
        std::vector<Place> way{enter(root, nullptr)};
        while (!way.empty()) {
            Place& place = way.back();
            if (place.child < children_[place.node].size()) {
                const Place next = enter(children_[place.node][place.child++], &place);
                way.push_back(next);
                continue;
            }
            const Place done = place;
            way.pop_back();
            const bool isOp = !trace_.nodes[done.node].schema.empty();
            if (isOp && (!done.hasOps || returnsOwnStorage(done))) compute(done);
            if (!way.empty()) way.back().hasOps = way.back().hasOps || isOp || done.hasOps;
        }
    }
    Place enter(std::size_t index, const Place* outer) {
        const ExecutionNode& node = trace_.nodes[index];
        ++visited_;
        Place place{index, 0, outer ? outer->phase : Phase::Unknown, std::nullopt, ops_.size()};
        if (outer) place.layer = outer->layer;
        if (place.phase == Phase::Unknown) {
            if (node.name.starts_with("autograd::engine::") || node.forwardParent != 0)
                place.phase = Phase::Backward;
            else if (node.name.starts_with("Optimizer."))
                place.phase = Phase::Optimizer;
        }
        const bool annotation = node.schema.empty() && node.recordFunction != 0 &&
                                !node.name.starts_with("autograd::engine::");
        if (annotation) place.layer = writer_.layer(place.layer, node.name, "annotation", " > ");
        return place;
    }

    bool isOnInput(const ExecutionNode& node, std::int64_t storage) const {
        return std::any_of(node.inputs.begin(), node.inputs.end(),
                           [&](const ExecutionTensor& t) { return t.storage == storage; });
    }
    bool returnsOwnStorage(const Place& place) const {
        const ExecutionNode& node = trace_.nodes[place.node];
        return std::any_of(node.outputs.begin(), node.outputs.end(), [&](const auto& tensor) {
            const auto known = storageOf_.find(tensor.storage);
            const bool below =
                known != storageOf_.end() && storages_[known->second].row.creator &&
                *storages_[known->second].row.creator >= static_cast<std::int64_t>(place.firstOp);
            return !below && !isOnInput(node, tensor.storage);
        });
    }

    std::int64_t newStorage(const ExecutionTensor& tensor, std::optional<std::int64_t> creator) {
        StorageState state;
        state.row.id = static_cast<std::int64_t>(storages_.size());
        state.row.device = tensor.device.empty() ? "cpu" : tensor.device;
        state.row.creator = creator;
        state.row.layer = creator ? ops_[static_cast<std::size_t>(*creator)].layer : std::nullopt;
        storages_.push_back(state);
        storageOf_[tensor.storage] = storages_.size() - 1;
        return state.row.id;
    }
    // The session's tensor on the storage that the id means now.
    std::int64_t tensorOn(const ExecutionTensor& tensor, std::int64_t storage,
                          std::optional<std::int64_t> creator) {
        Bytes& bytes = storages_[static_cast<std::size_t>(storage)].row.bytes;
        bytes = std::max(bytes, Bytes(tensor.bytes()));
        const auto known = tensorOf_.find(tensor.id);
        if (known != tensorOf_.end() && known->second.storage == storage)
            return known->second.tensor;
        TensorRow row;
        row.id = static_cast<std::int64_t>(tensors_.size());
        row.storage = storage, row.creator = creator;
        row.dtype = tensor.dtype, row.sizes = tensor.sizes, row.strides = "[]";
        row.offset = tensor.offset;
        tensors_.push_back(row);
        tensorOf_[tensor.id] = {row.id, storage};
        return row.id;
    }

    void compute(const Place& place) {
        const ExecutionNode& node = trace_.nodes[place.node];
        const std::size_t index = ops_.size();
        OpRow& op = ops_.emplace_back();
        op.id = static_cast<std::int64_t>(index);
        op.name = node.name;
        op.phase = place.phase == Phase::Unknown ? Phase::Forward : place.phase;
        op.layer = place.layer, op.thread = node.thread;
        const std::vector<bool> written = writtenArguments(node.schema);
        std::map<std::int64_t, bool> inputs;  // storages, and whether it writes them
        for (const ExecutionTensor& tensor : node.inputs) {
            if (!storageOf_.contains(tensor.storage)) {
                constantsBefore_.resize(index + 1);
                constantsBefore_[index].push_back(newStorage(tensor, std::nullopt));
            }
            const auto storage = static_cast<std::int64_t>(storageOf_[tensor.storage]);
            StorageState& state = storages_[static_cast<std::size_t>(storage)];
            op.inputs.push_back({tensorOn(tensor, storage, std::nullopt), state.version});
            state.lastRead = index + 1;
            const auto argument = static_cast<std::size_t>(tensor.argument);
            inputs[storage] |= argument < written.size() && written[argument];
        }
        for (const auto& [storage, writes] : inputs)
            if (writes)
                op.writes.push_back(
                    {storage, storages_[static_cast<std::size_t>(storage)].version++});
        for (const ExecutionTensor& tensor : node.outputs) {
            const bool fresh = !isOnInput(node, tensor.storage) && !returned(tensor, index);
            const std::int64_t storage =
                fresh ? newStorage(tensor, op.id)
                      : static_cast<std::int64_t>(storageOf_[tensor.storage]);
            op.outputs.push_back({tensorOn(tensor, storage, op.id), fresh});
        }
        takeTime(node, op);
    }
    // An earlier result of the same op on the same storage.
    bool returned(const ExecutionTensor& tensor, std::size_t op) const {
        const auto known = storageOf_.find(tensor.storage);
        return known != storageOf_.end() &&
               storages_[known->second].row.creator == static_cast<std::int64_t>(op);
    }

    void takeTime(const ExecutionNode& node, OpRow& op) {
        op.duration = Nanoseconds(kUnitNs);
        if (!times_) return;
        const auto found = times_->byRecordFunction.find(node.recordFunction);
        if (found == times_->byRecordFunction.end()) return;
        op.beginNs = found->second.beginNs;
        op.duration = Nanoseconds(
            std::max<std::int64_t>(0, found->second.deviceNs.value_or(found->second.durationNs)));
    }

    // Places on the axis: constants right before the op that first reads them, releases right after
    // the op that reads last.
    void placeAll() {
        constantsBefore_.resize(ops_.size());
        std::vector<std::vector<std::size_t>> lastReadBy(ops_.size());
        for (std::size_t s = 0; s < storages_.size(); ++s)
            if (storages_[s].row.creator && storages_[s].lastRead > 0)
                lastReadBy[storages_[s].lastRead - 1].push_back(s);
        for (std::size_t i = 0; i < ops_.size(); ++i) {
            for (const std::int64_t s : constantsBefore_[i])
                storages_[static_cast<std::size_t>(s)].row.allocSeq = seq_++;
            ops_[i].seq = seq_++;
            for (const OpRow::Output& output : ops_[i].outputs)
                if (output.makesStorage)
                    storages_[static_cast<std::size_t>(
                                  tensors_[static_cast<std::size_t>(output.tensor)].storage)]
                        .row.allocSeq = ops_[i].seq;
            for (const std::size_t s : lastReadBy[i]) storages_[s].row.freeSeq = seq_++;
        }
    }
    void categorize() {
        for (StorageState& storage : storages_) {
            if (!storage.row.creator) continue;
            const Phase made = ops_[static_cast<std::size_t>(*storage.row.creator)].phase;
            const Phase read = storage.lastRead > 0 ? ops_[storage.lastRead - 1].phase : made;
            if (made == Phase::Forward && read == Phase::Backward)
                storage.row.category = Category::Activation;
            else if (made == Phase::Backward && (read == Phase::Optimizer || !storage.lastRead))
                storage.row.category = Category::Gradient;
            else if (storage.lastRead > 0)
                storage.row.category = Category::Temporary;
        }
    }

    Status write() {
        placeAll();
        categorize();
        require(session_.begin());
        ProcessRow process;
        process.pid = trace_.pid, process.command = "execution trace " + trace_.schema;
        process.framework = "pytorch";
        require(session_.insert(process));
        for (const OpRow& op : ops_) require(session_.insert(op));
        for (const StorageState& storage : storages_) require(session_.insert(storage.row));
        for (const TensorRow& tensor : tensors_) require(session_.insert(tensor));
        StepRow step;
        step.endSeq = seq_;
        require(session_.insert(step, {}));
        joinRate();
        stateGaps();
        return session_.commit();
    }
    void joinRate() {
        if (!times_) return;
        for (const ExecutionNode& node : trace_.nodes) {
            if (node.recordFunction == 0 || node.schema.empty()) continue;
            ++rate_.ops;
            rate_.matched += times_->byRecordFunction.contains(node.recordFunction) ? 1 : 0;
        }
        require(session_.setMeta(
            "join", std::to_string(rate_.matched) + " of " + std::to_string(rate_.ops)));
    }

    void stateGaps() {
        writer_.gap("lifetimes",
                    "execution traces record no frees: a storage counts as freed after the last op "
                    "that reads it, so the peak is a lower bound");
        if (!times_)
            writer_.gap("times",
                        "execution traces record no times: every op counts as 1 us; join "
                        "the profiler's trace of the same run");
        else if (rate_.matched < rate_.ops)
            writer_.gap("times", std::to_string(rate_.ops - rate_.matched) + " of " +
                                     std::to_string(rate_.ops) +
                                     " ops have no time in the joined trace and count as 1 us");
        writer_.gap("workspace", "execution traces hold no workspaces");
        writer_.gap("categories", "parameters, optimizer states and inputs are not told apart");
        if (trace_.unreadable > 0)
            writer_.gap("nodes", std::to_string(trace_.unreadable) + " nodes lack an id or a name");
        if (visited_ < trace_.nodes.size())
            writer_.gap("order", std::to_string(trace_.nodes.size() - visited_) +
                                     " nodes are their own ancestors and are left out");
        if (!trace_.stopped.empty())
            writer_.gap("end", "the trace is cut short or damaged, what comes after is missing: " +
                                   trace_.stopped);
    }

    const ExecutionNodes trace_;
    SessionWriter& session_;
    TraceWriter writer_;
    const RecordedTimes* times_;
    JoinRate rate_;
    std::vector<std::size_t> roots_;
    std::vector<std::vector<std::size_t>> children_;
    std::vector<OpRow> ops_;
    std::vector<StorageState> storages_;
    std::vector<TensorRow> tensors_;
    std::unordered_map<std::int64_t, std::size_t> storageOf_;  // by the trace's id, as it stands
    std::unordered_map<std::int64_t, TensorState> tensorOf_;
    std::vector<std::vector<std::int64_t>> constantsBefore_;  // by op
    std::int64_t seq_ = 0;
    std::size_t visited_ = 0;
};

}  // namespace

Result<RecordedTimes> readRecordedTimes(const std::string& path) {
    auto source = TextSource::open(path);
    if (!source) return source.error();
    SessionWriter session = SessionWriter::inMemory();
    std::unordered_map<std::int64_t, std::int64_t> opOf;
    if (const Status status = importKineto(*source, session, &opOf); !status)
        return badInput("'" + path + "': " + status.error().what, status.error().hint);
    const auto rows = session.opTimes();
    if (!rows) return rows.error();
    std::unordered_map<std::int64_t, const OpTimeRow*> timeOf;
    for (const OpTimeRow& row : *rows) timeOf[row.op] = &row;
    RecordedTimes times;
    for (const auto& [recordFunction, id] : opOf)
        if (const auto at = timeOf.find(id); at != timeOf.end())
            times.byRecordFunction[recordFunction] = {at->second->beginNs, at->second->durationNs,
                                                      at->second->deviceNs};
    if (times.byRecordFunction.empty())
        return badInput("'" + path + "' has no op with a record function id",
                        "join the profiler's trace of the same run");
    return times;
}

Result<JoinRate> importExecutionTrace(TextSource& source, SessionWriter& session,
                                      const RecordedTimes* times) {
    JoinRate rate;
    const Status status = importing("execution trace", kHint, [&] {
        ExecutionImporter importer(readExecutionNodes(source), session, times);
        Status done = importer.run();
        rate = importer.rate();
        return done;
    });
    if (!status) return status.error();
    return rate;
}

static Result<Joined> readJoined(const std::string& path, const std::string& join,
                                 SessionWriter& session) {
    std::optional<RecordedTimes> times;
    if (!join.empty()) {
        auto read = readRecordedTimes(join);
        if (!read) return read.error();
        times = std::move(*read);
    }
    auto source = TextSource::open(path);
    if (!source) return inFile(path, source.error());
    const auto rate = importExecutionTrace(*source, session, times ? &*times : nullptr);
    if (!rate) return inFile(path, rate.error());
    return times ? Joined(*rate) : Joined();
}

const ImportFormat& executionTraceFormat() {
    static const ImportFormat format{.name = "execution-trace",
                                     .patterns = {"*.json", "*.json.gz"},
                                     .recognizes =
                                         [](const FileStart& file) {
                                             return file.first() == '{' &&
                                                    file.holds("\"nodes\"") &&
                                                    !file.holds("\"traceEvents\"");
                                         },
                                     .read = readJoined,
                                     .joins = true};
    return format;
}

}  // namespace hw::core
