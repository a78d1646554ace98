// SPDX-License-Identifier: MIT
#include "live/compile/program_writer.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>

#include "core/memory/defer_frees.h"
#include "core/memory/restore_early.h"
#include "core/plan/codec.h"
#include "live/wire/live_program.h"
#include "profiler/wire/element_types.h"

namespace hw::live {

namespace wire = profiler::wire;
namespace {

using namespace core;
using wire::LiveAction;

constexpr OpIndex kEnd = std::numeric_limits<OpIndex>::max();
constexpr Bytes kSmallConstant(256);

/// c10::ScalarType of a type's name; -1: there is none of that name.
int scalarType(const std::string& name) {
    const auto* const found =
        std::find(std::begin(wire::kElementTypes), std::end(wire::kElementTypes), name);
    return found == std::end(wire::kElementTypes)
               ? -1
               : static_cast<int>(found - std::begin(wire::kElementTypes));
}

std::optional<std::uint64_t> formOf(const TensorRow& row) {
    const auto sizes = nlohmann::json::parse(row.sizes, nullptr, false);
    const auto strides = nlohmann::json::parse(row.strides, nullptr, false);
    const int type = scalarType(row.dtype);
    if (!sizes.is_array() || !strides.is_array() || type < 0) return std::nullopt;
    wire::LiveForm form(static_cast<std::uint64_t>(type), sizes.size());
    for (const auto& numbers : {sizes, strides})
        for (const auto& number : numbers) {
            if (!number.is_number_integer()) return std::nullopt;
            form.mix(number.get<std::int64_t>());
        }
    return form.value();
}

class Writer {
public:
    template <class Number>
    Writer& put(Number number) {
        bytes_.append(reinterpret_cast<const char*>(&number), sizeof(number));
        return *this;
    }
    Writer& count(std::size_t number) { return put(static_cast<std::uint32_t>(number)); }
    Writer& text(const std::string& value) {
        count(value.size());
        bytes_ += value;
        return *this;
    }
    std::string take() { return std::move(bytes_); }

private:
    std::string bytes_;
};

struct Placed {
    LiveAction kind;
    std::int32_t target;
    ShortList<std::int32_t> outputs = {};
    bool cancelled = false;
    wire::LiveCodec codec = wire::LiveCodec::Mask;  // of Encode
    Bytes bytes = {};                               // of Encode
};

std::optional<wire::LiveCodec> codecOf(std::string_view name) {
    if (name == kMaskCodec) return wire::LiveCodec::Mask;
    if (name == kSignCodec) return wire::LiveCodec::Sign;
    if (name == kIndexCodec) return wire::LiveCodec::Index;
    return std::nullopt;
}

/// See TrainingGraph::findUnseen().
bool isGathered(const Storage& storage) {
    return storage.isConstant() && storage.unseen && storage.isParameter();
}

/// Where in the program's own order each action of a schedule belongs.
class Compiler {
public:
    Compiler(const TrainingGraph& graph, const Plan& plan)
        : graph_(graph),
          schedule_(deferFrees(graph, restoreEarly(graph, plan.schedule))),
          releasedAt_(graph.storages.size(), kEnd),
          expiry_(graph.storages.size(), kEnd),
          readUntil_(graph.storages.size(), kNone),
          life_(graph.storages.size()),
          before_(graph.ops.size() + 1),
          after_(graph.ops.size() + 1),
          gone_(graph.ops.size() + 1),
          keep_(graph.ops.size(), false),
          followed_(graph.storages.size(), false) {}

    Status run() {
        readEvents();
        for (const Action& action : schedule_)
            if (Status done = place(action); !done) return done;
        closeAll();
        findExpiries();
        settleDrops();
        secureDrops();
        markKept();
        holdSources();
        endWithLastOp();
        markFollowed();
        return {};
    }

    static Error beyond(const Placed& placed) {
        return badInput(std::string("the plan asks to ") +
                            wire::kLiveActionNames[static_cast<int>(placed.kind)] + " storage " +
                            std::to_string(placed.target) + ", which is not done here",
                        "plan again without encodings, or with another planner");
    }

    /// Whether all that is to be done is among `can`.
    Status requireActions(wire::LiveActions can) const {
        for (std::size_t op = 0; op < before_.size(); ++op)
            for (const auto* const list : {&before_[op], &after_[op]})
                for (const Placed& placed : *list)
                    if (!placed.cancelled && !can.has(placed.kind)) return beyond(placed);
        return {};
    }

    Result<LiveProgram> write(const std::vector<TensorRow>& tensors) {
        std::unordered_map<std::int64_t, const TensorRow*> rows;
        for (const TensorRow& row : tensors) rows[row.id] = &row;
        std::vector<std::uint64_t> forms(graph_.tensors.size(), 0);
        for (std::size_t t = 0; t < forms.size(); ++t) {
            const auto row = rows.find(graph_.tensors[t].sessionId);
            const auto form = row == rows.end() ? std::nullopt : formOf(*row->second);
            if (form) forms[t] = *form;
        }
        for (const Storage& storage : graph_.storages) {
            const auto row = rows.find(graph_.tensors[storage.tensors.front()].sessionId);
            types_.push_back(row == rows.end() ? -1 : scalarType(row->second->dtype));
        }
        Writer out;
        out.put(wire::kLiveMagic).put(wire::kLiveVersion);
        out.count(graph_.storages.size()).count(graph_.ops.size());
        for (StorageIndex s = 0; s < static_cast<StorageIndex>(graph_.storages.size()); ++s) {
            const Storage& storage = graph_.storages[s];
            out.put(storage.bytes.count())
                .put(static_cast<std::uint8_t>((storage.isConstant() ? wire::kLiveConstant : 0) |
                                               (followed_[s] ? wire::kLiveFollowed : 0) |
                                               (storage.aliveAtEnd ? wire::kLiveLasting : 0) |
                                               (isGathered(storage) ? wire::kLiveGathered : 0)));
        }
        for (OpIndex i = 0; i < static_cast<OpIndex>(graph_.ops.size()); ++i)
            writeOp(out, i, forms);
        result_.bytes = out.take();
        return std::move(result_);
    }

private:
    /// What the program and the plan do with a storage at the moment.
    struct Life {
        bool resident = false;  // in the plan
        bool dropped = false;   // while the program holds it
        bool held = false;      // by the plan, after the program has let go of it
        bool encoded = false;   // the plan has an encoded form in its place
        bool signs = false;     // that gives, or has given, signs only
        OpIndex since = kNone;  // the op at which it became resident
        std::pair<OpIndex, std::size_t> drop{0, 0};  // where in after_ or before_
        bool dropBefore = false;
    };

    /// A drop, and the last op before which the program may ask for what it took.
    struct Dropped {
        StorageIndex storage;
        bool before;
        std::pair<OpIndex, std::size_t> place;
        OpIndex until;
    };

    void readEvents() {
        OpIndex ops = 0;
        for (const Event& event : graph_.events) {
            if (event.kind == Event::Kind::Compute) ++ops;
            if (event.kind != Event::Kind::Release) continue;
            releasedAt_[event.index] = ops;
            if (!graph_.storages[event.index].isConstant()) gone_[ops].push_back(event.index);
        }
        for (StorageIndex s = 0; s < static_cast<StorageIndex>(life_.size()); ++s) {
            const bool constant = graph_.storages[s].isConstant();
            life_[s].resident = constant;
            // The plan holds constants until the op before which the program has let go of them.
            if (releasedAt_[s] != kEnd) expiry_[s] = releasedAt_[s] - (constant ? 0 : 1);
        }
    }

    /// Nothing makes it again: it stays as long as the program refers to it or the plan holds it.
    bool isSource(StorageIndex s) const {
        const Storage& storage = graph_.storages[s];
        return storage.isConstant() || graph_.ops[storage.creator].once;
    }

    /// The last op before which a storage can be made again from sources: they must still be there,
    /// at the version that was read. An op that writes one is never run again.
    void findExpiries() {
        for (StorageIndex s = 0; s < static_cast<StorageIndex>(graph_.storages.size()); ++s)
            if (!isSource(s)) expiry_[s] = kEnd;
        for (OpIndex i = 0; i < static_cast<OpIndex>(graph_.ops.size()); ++i) {
            const Op& op = graph_.ops[i];
            OpIndex until = kEnd;
            for (const Use& use : op.inputs) {
                const StorageIndex s = graph_.storageOf(use.tensor);
                until = std::min(until, expiry_[s]);
                const auto& writers = graph_.storages[s].writers;
                if (isSource(s) && static_cast<std::size_t>(use.version) < writers.size())
                    until = std::min(until, writers[static_cast<std::size_t>(use.version)]);
            }
            for (const Write& write : op.writes)
                if (isSource(write.storage)) until = i;
            for (const OpOutput& output : op.outputs)
                if (output.makesStorage && !isSource(graph_.storageOf(output.tensor)))
                    lower(graph_.storageOf(output.tensor), until);
            for (const Write& write : op.writes)
                if (!isSource(write.storage)) lower(write.storage, until);
        }
    }
    void lower(StorageIndex s, OpIndex until) { expiry_[s] = std::min(expiry_[s], until); }

    /// An op without results reads bytes, and the program runs it at its own place wherever a plan
    /// has it.
    bool readsOnly(OpIndex op) const {
        return graph_.ops[op].viewOnly && graph_.ops[op].outputs.empty();
    }

    OpIndex nextFixed(OpIndex after) const {
        OpIndex i = after + 1;
        while (i < static_cast<OpIndex>(graph_.ops.size()) && graph_.ops[i].viewOnly &&
               !readsOnly(i))
            ++i;
        return i;
    }

    Status place(const Action& action) {
        switch (action.kind) {
            case ActionKind::Compute:
                if (readsOnly(action.target) && action.target != nextFixed(fixed_)) {
                    for (const Use& use : graph_.ops[action.target].inputs) {
                        OpIndex& until = readUntil_[graph_.storageOf(use.tensor)];
                        until = std::max(until, action.target);
                    }
                    return {};
                }
                if (graph_.ops[action.target].viewOnly && !readsOnly(action.target)) {
                    // What runs before the next op that keeps its place; others come early or late.
                    if (action.target > fixed_ && action.target < nextFixed(fixed_))
                        latest_ = std::max(latest_, action.target);
                    return {};
                }
                if (Status served = requireServed(action.target); !served) return served;
                fixed_ = latest_ = action.target;
                leading_ = true;
                for (const OpOutput& output : graph_.ops[action.target].outputs)
                    if (output.makesStorage) appear(graph_.storageOf(output.tensor), fixed_);
                return {};
            case ActionKind::Recompute:
                return recompute(action);
            case ActionKind::Free:
                free(action.target);
                return {};
            case ActionKind::Encode:
                return encode(action);
            case ActionKind::Decode:
                decode(action.target);
                return {};
        }
        return {};
    }

    /// Signs are not the storage's elements: only what compares with 0 may take them for these.
    Status requireServed(OpIndex op) const {
        for (const Use& use : graph_.ops[op].inputs) {
            const StorageIndex s = graph_.storageOf(use.tensor);
            if (life_[s].signs && !life_[s].encoded && !codecServes(graph_, kSignCodec, op, s))
                return badInput("the plan has op " + std::to_string(op) + " (" +
                                    graph_.ops[op].name + ") read signs for elements",
                                "plan again; a plan file should not be edited by hand");
        }
        return {};
    }

    Status encode(const Action& action) {
        const StorageIndex s = action.target;
        const auto codec = codecOf(action.encoding->codec);
        if (!codec || graph_.storages[s].isConstant())
            return badInput("the plan encodes storage " + std::to_string(s) + " as '" +
                                action.encoding->codec +
                                "', which a running program cannot be given",
                            "plan again without encodings: --options encodings=off");
        Life& life = life_[s];
        const OpIndex next = nextFixed(fixed_);
        hold(s, leading_ ? fixed_ : next);
        const OpIndex at = leading_ ? std::max(latest_, OpIndex{0}) : next;
        auto& list = leading_ ? after_[at] : before_[next];
        life.dropBefore = !leading_;
        life.drop = {at, list.size()};
        list.push_back({LiveAction::Encode, s, {}, false, *codec, action.encoding->bytes});
        life.resident = life.held = false;
        life.encoded = true;
        life.signs = *codec == wire::LiveCodec::Sign;
        if (!life.signs) return {};
        // What the program might ask for cannot be had from signs.
        const auto end = static_cast<OpIndex>(graph_.ops.size());
        drops_.push_back({s, life.dropBefore, life.drop, std::min(end, releasedAt_[s])});
        return {};
    }

    void decode(StorageIndex s) {
        const OpIndex next = nextFixed(fixed_);
        leading_ = false;
        before_[next].push_back({LiveAction::Decode, s});
        const bool signs = life_[s].signs;
        appear(s, next);
        life_[s].signs = signs;
    }

    void appear(StorageIndex s, OpIndex at) {
        Life& life = life_[s];
        life.resident = true;
        life.encoded = life.signs = false;
        life.since = at;
        if (!graph_.storages[s].isConstant() && releasedAt_[s] <= at) life.held = true;
    }

    Status recompute(const Action& action) {
        const Op& op = graph_.ops[action.target];
        if (op.viewOnly) return {};
        const OpIndex next = nextFixed(fixed_);
        leading_ = false;
        before_[next].push_back({LiveAction::Recompute, action.target, action.outputs});
        ++result_.recomputes;
        for (const std::int32_t output : action.outputs) {
            const StorageIndex s = graph_.storageOf(op.outputs[output].tensor);
            if (!op.outputs[output].makesStorage || life_[s].resident) continue;
            if (lastWriter(s, next) == kNone) endDrop(s, next);
            appear(s, next);
        }
        for (const Write& write : op.writes)
            if (lastWriter(write.storage, next) == action.target) endDrop(write.storage, next);
        return {};
    }

    /// What has brought a storage to its version before op `end`: until it has run again, too, the
    /// storage is not what the program left.
    OpIndex lastWriter(StorageIndex s, OpIndex end) const {
        OpIndex last = kNone;
        for (const OpIndex writer : graph_.storages[s].writers)
            if (writer < end) last = writer;
        return last;
    }

    /// A few bytes, such as those of a scalar, or none at all: without them nothing that was made
    /// from them could be restored, and much may be.
    bool costsNothing(StorageIndex s) const {
        return graph_.storages[s].isConstant() && graph_.storages[s].bytes <= kSmallConstant;
    }

    void free(StorageIndex s) {
        if (costsNothing(s) || readUntil_[s] > fixed_) return;
        Life& life = life_[s];
        const OpIndex next = nextFixed(fixed_);
        auto& list = leading_ ? after_[std::max(latest_, OpIndex{0})] : before_[next];
        if (life.resident) {
            hold(s, leading_ ? fixed_ : next);
            if (life.held) {
                list.push_back({LiveAction::Release, s});
                expiry_[s] = leading_ ? latest_ : next;
            } else if (releasedAt_[s] > next && !isSource(s)) {
                life.dropped = true;
                life.dropBefore = !leading_;
                life.drop = {leading_ ? std::max(latest_, OpIndex{0}) : next, list.size()};
                list.push_back({LiveAction::Drop, s});
            }
        }
        if (life.encoded) list.push_back({LiveAction::Drop, s});
        life.resident = life.held = life.encoded = life.signs = false;
    }

    /// The plan has kept the storage up to an op before which the program lets go of it.
    void hold(StorageIndex s, OpIndex until) {
        Life& life = life_[s];
        if (life.held || releasedAt_[s] > until || releasedAt_[s] <= life.since) return;
        life.held = true;
        const Storage& storage = graph_.storages[s];
        if (storage.isConstant()) return;  // held from the start: holdSources()
        OpIndex last = life.since;
        for (const auto& touchers : {storage.readers, storage.writers})
            for (const OpIndex op : touchers)
                if (op < releasedAt_[s]) last = std::max(last, op);
        holds_.push_back({last, s});
    }

    /// The program has the storage back, or lets go of it: until here it had to be restorable.
    void endDrop(StorageIndex s, OpIndex at) {
        Life& life = life_[s];
        if (!std::exchange(life.dropped, false)) return;
        drops_.push_back({s, life.dropBefore, life.drop, std::min(at, releasedAt_[s])});
    }

    void settleDrops() {
        for (const Dropped& drop : drops_) {
            Placed& action = (drop.before ? before_ : after_)[drop.place.first][drop.place.second];
            if (expiry_[drop.storage] >= drop.until) {
                ++result_.drops;
                dropped_.push_back(drop.storage);
            } else {
                action.cancelled = true;
                result_.kept += graph_.storages[drop.storage].bytes;
            }
        }
        for (const auto& [op, s] : holds_)
            after_[op].insert(after_[op].begin(), {LiveAction::Hold, s});
    }

    void closeAll() {
        const auto end = static_cast<OpIndex>(graph_.ops.size());
        for (StorageIndex s = 0; s < static_cast<StorageIndex>(life_.size()); ++s) {
            endDrop(s, end);
            if (!life_[s].resident) continue;
            hold(s, end);
            if (life_[s].held) expiry_[s] = kEnd;
        }
    }

    /// The program may hold on to what it let go of when it was recorded. One place does for many:
    /// where any of them expires, all are secured that the program had let go of by then.
    void secureDrops() {
        std::vector<StorageIndex> expiring;
        for (const StorageIndex s : dropped_)
            if (expiry_[s] != kEnd) expiring.push_back(s);
        std::sort(expiring.begin(), expiring.end());
        expiring.erase(std::unique(expiring.begin(), expiring.end()), expiring.end());
        std::set<OpIndex> places;
        for (const StorageIndex s : expiring) places.insert(expiry_[s]);
        for (const StorageIndex s : expiring) {
            const auto first = places.lower_bound(std::min(releasedAt_[s], expiry_[s]));
            auto& list = before_[*first];
            list.insert(list.begin(), {LiveAction::Secure, s});
        }
    }

    /// Whatever may have to run again, for the plan or because the program leaves it.
    void markKept() {
        std::vector<OpIndex> open;
        const auto chain = [&](StorageIndex s) {
            const Storage& storage = graph_.storages[s];
            if (isSource(s)) return;
            open.push_back(storage.creator);
            open.insert(open.end(), storage.writers.begin(), storage.writers.end());
        };
        for (const StorageIndex s : dropped_) chain(s);
        for (const auto& list : before_)
            for (const Placed& action : list)
                if (action.kind == LiveAction::Recompute) open.push_back(action.target);
        while (!open.empty()) {
            const OpIndex op = open.back();
            open.pop_back();
            if (keep_[op]) continue;
            keep_[op] = true;
            for (const Use& use : graph_.ops[op].inputs) chain(graph_.storageOf(use.tensor));
        }
    }

    /// What recomputations start from stays, even if the program should let go of it earlier than
    /// it did when it was recorded.
    void holdSources() {
        std::vector<bool> held(graph_.storages.size(), false);
        for (OpIndex i = 0; i < static_cast<OpIndex>(graph_.ops.size()); ++i)
            for (const Use& use : graph_.ops[i].inputs)
                if (const StorageIndex s = graph_.storageOf(use.tensor);
                    keep_[i] && graph_.storages[s].isConstant() && !held[s]) {
                    held[s] = true;
                    holdConstant(s);
                }
    }
    void holdConstant(StorageIndex s) {
        const Storage& storage = graph_.storages[s];
        OpIndex first = storage.readers.front();
        if (!storage.writers.empty()) first = std::min(first, storage.writers.front());
        auto& list = before_[first];
        list.insert(list.begin(), {LiveAction::Hold, s});
        if (releasedAt_[s] != kEnd && expiry_[s] == releasedAt_[s])
            before_[expiry_[s]].push_back({LiveAction::Release, s});
    }

    /// What a plan makes again for the step's end, no op of the step comes after.
    void endWithLastOp() {
        if (graph_.ops.empty()) return;
        auto& last = after_[graph_.ops.size() - 1];
        const auto& atEnd = before_[graph_.ops.size()];
        last.insert(last.end(), atEnd.begin(), atEnd.end());
    }

    /// What actions work on, and all that may have to run again.
    void markFollowed() {
        for (OpIndex i = 0; i < static_cast<OpIndex>(graph_.ops.size()); ++i) {
            if (!keep_[i]) continue;
            const Op& op = graph_.ops[i];
            for (const Use& use : op.inputs) followed_[graph_.storageOf(use.tensor)] = true;
            for (const Write& write : op.writes) followed_[write.storage] = true;
            for (const OpOutput& output : op.outputs)
                followed_[graph_.storageOf(output.tensor)] = true;
        }
        for (const auto* const lists : {&before_, &after_})
            for (const std::vector<Placed>& list : *lists)
                for (const Placed& action : list)
                    if (action.kind != LiveAction::Recompute) followed_[action.target] = true;
        for (StorageIndex s = 0; s < static_cast<StorageIndex>(graph_.storages.size()); ++s)
            if (isGathered(graph_.storages[s])) followed_[s] = true;
    }

    void writeActions(Writer& out, const std::vector<Placed>& actions) const {
        out.count(static_cast<std::size_t>(std::count_if(
            actions.begin(), actions.end(), [](const Placed& a) { return !a.cancelled; })));
        for (const Placed& action : actions) {
            if (action.cancelled) continue;
            out.put(static_cast<std::uint8_t>(action.kind)).count(action.target);
            if (action.kind == LiveAction::Encode)
                out.put(static_cast<std::uint8_t>(action.codec))
                    .put(static_cast<std::uint8_t>(types_[action.target]))
                    .put(action.bytes.count());
            if (action.kind != LiveAction::Recompute) continue;
            out.count(action.outputs.size());
            for (const std::int32_t output : action.outputs) out.count(output);
        }
    }

    void writeOp(Writer& out, OpIndex i, const std::vector<std::uint64_t>& forms) const {
        const Op& op = graph_.ops[i];
        const std::size_t dot = op.name.find('.');
        out.text(op.name.substr(0, dot));
        out.text(dot == std::string::npos ? "" : op.name.substr(dot + 1));
        out.put(static_cast<std::uint8_t>((keep_[i] ? wire::kLiveKeep : 0) |
                                          (op.random ? wire::kLiveRandom : 0)));
        out.count(op.inputs.size());
        for (const Use& use : op.inputs)
            out.count(graph_.storageOf(use.tensor)).put(forms[use.tensor]);
        out.count(op.outputs.size());
        for (const OpOutput& output : op.outputs)
            out.count(graph_.storageOf(output.tensor))
                .put(forms[output.tensor])
                .put(static_cast<std::uint8_t>(output.makesStorage));
        out.count(op.writes.size());
        for (const Write& write : op.writes) out.count(write.storage);
        out.count(gone_[i].size());
        for (const StorageIndex s : gone_[i]) out.count(s);
        writeActions(out, before_[i]);
        writeActions(out, after_[i]);
    }

    const TrainingGraph& graph_;
    const Schedule schedule_;
    std::vector<OpIndex> releasedAt_;  // ops before the program lets go of it
    std::vector<OpIndex> expiry_;      // last op before which it is there or can be made again
    std::vector<OpIndex> readUntil_;   // last op without results that a plan has had before it
    std::vector<Life> life_;
    std::vector<std::vector<Placed>> before_, after_;
    std::vector<std::vector<StorageIndex>> gone_;  // let go of by the program right before the op
    std::vector<std::pair<OpIndex, StorageIndex>> holds_;
    std::vector<Dropped> drops_;
    std::vector<StorageIndex> dropped_;
    std::vector<bool> keep_;
    std::vector<bool> followed_;
    std::vector<int> types_;  // c10::ScalarType of each storage's elements
    OpIndex fixed_ = -1, latest_ = -1;
    bool leading_ = true;
    LiveProgram result_;
};

}  // namespace

Result<LiveProgram> liveProgram(const TrainingGraph& graph, const Plan& plan,
                                const std::vector<TensorRow>& tensors, wire::LiveActions can) {
    if (!plan.implementations.empty()) {
        const auto& [op, name] = *plan.implementations.begin();
        return badInput("the plan runs " + graph.ops[op].name + " (op " + std::to_string(op) +
                            ") as '" + name + "', which a running program cannot be given",
                        "plan again without --menu");
    }
    Compiler compiler(graph, plan);
    if (Status done = compiler.run(); !done) return done.error();
    if (Status able = compiler.requireActions(can); !able) return able.error();
    return compiler.write(tensors);
}

}  // namespace hw::live
