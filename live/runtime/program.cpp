// SPDX-License-Identifier: MIT
#include "program.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <utility>

#include "core/graph/nondeterministic_ops.h"
#include "operators.h"
#include "unseen_writes.h"
#include "verifier.h"

namespace hw::live::runtime {
namespace {

/// Reads fields one after another; after the first that does not fit nothing is read any more.
class Reader {
public:
    explicit Reader(const std::string& bytes) : at_(bytes.data()), end_(at_ + bytes.size()) {}

    template <typename Number>
    Number number() {
        Number value{};
        if (static_cast<std::size_t>(end_ - at_) < sizeof(value)) {
            good_ = false;
            return value;
        }
        std::memcpy(&value, at_, sizeof(value));
        at_ += sizeof(value);
        return value;
    }
    /// A count of items of at least `itemBytes` each.
    std::uint32_t count(std::size_t itemBytes) {
        const auto n = number<std::uint32_t>();
        if (n > static_cast<std::size_t>(end_ - at_) / itemBytes) good_ = false;
        return good_ ? n : 0;
    }
    /// An index below `limit`.
    template <typename Number = std::uint32_t>
    Number index(std::size_t limit) {
        const auto value = number<Number>();
        if (value < limit) return value;
        good_ = false;
        return 0;
    }
    std::string text() {
        const std::uint32_t size = count(1);
        std::string value(at_, size);
        at_ += size;
        return value;
    }
    bool good() const { return good_; }
    bool done() const { return at_ == end_; }

private:
    const char* at_;
    const char* end_;
    bool good_ = true;
};

Items<Action> readActions(Reader& from, Program& program, std::size_t ops) {
    std::vector<Action> actions(from.count(5));
    for (Action& action : actions) {
        action.kind =
            static_cast<wire::LiveAction>(from.index<std::uint8_t>(std::size(wire::kLiveActions)));
        const bool recompute = action.kind == wire::LiveAction::Recompute;
        action.target = from.index(recompute ? ops : program.storages.size());
        if (from.good() && !recompute) {
            ProgramStorage& storage = program.storages[action.target];
            storage.moved = true;
            storage.dropped = storage.dropped || traitsOf(action.kind).takes;
        }
        if (action.kind == wire::LiveAction::Encode) {
            action.encoding.codec = static_cast<wire::LiveCodec>(from.number<std::uint8_t>());
            action.encoding.type = static_cast<c10::ScalarType>(from.number<std::uint8_t>());
            action.encoding.bytes = from.number<std::int64_t>();
        }
        if (!recompute) continue;
        std::vector<std::uint32_t> outputs(from.count(4));
        for (std::uint32_t& output : outputs) output = from.number<std::uint32_t>();
        action.outputs = program.items.keep(outputs);
    }
    return program.items.keep(actions);
}

/// Of what comes after the last of these, nothing is left to do where no storage is away: what is
/// held is let go of, and there is nothing to secure. `butHolds`: apart from what is only held.
bool anyMoves(Items<Action> actions, bool butHolds = false) {
    return std::any_of(actions.begin(), actions.end(), [&](const Action& action) {
        return action.kind != wire::LiveAction::Secure &&
               action.kind != wire::LiveAction::Release &&
               !(butHolds && action.kind == wire::LiveAction::Hold);
    });
}

/// Reads ops in their order, and notes what follows from it.
class Ops {
public:
    Ops(Reader& from, Program& program)
        : from_(from), program_(program), versions_(program.storages.size(), 0) {}

    void read(std::uint32_t index) {
        ProgramOp& op = program_.ops[index];
        op.name = readName();
        const auto flags = from_.number<std::uint8_t>();
        op.keep = (flags & wire::kLiveKeep) != 0;
        op.random = (flags & wire::kLiveRandom) != 0;
        const OpName& name = program_.names[op.name];
        op.onlyFills = profiler::native::onlyFills(name.name);
        op.undefined = leavesBytesUndefined(name.name);
        op.hasStatistics = hasStatistics(name.name);
        op.comparesWithZero = name.name == "aten::threshold_backward";
        const std::vector<Input> inputs = readInputs();
        // Its only argument that is a tensor, and what that is set upon.
        op.adopts = inputs.size() == 2 && profiler::native::adoptsStorage(name.name, name.overload);
        const std::vector<Output> outputs = readOutputs(index);
        std::vector<std::uint32_t> writes(from_.count(4));
        for (std::uint32_t& storage : writes) {
            storage = from_.index(program_.storages.size());
            if (!from_.good()) return;
            program_.storages[storage].chain.push_back(index);
            ++versions_[storage];
        }
        std::vector<std::uint32_t> gone(from_.count(4));
        for (std::uint32_t& storage : gone) storage = from_.index(program_.storages.size());
        const auto followed = [&](std::uint32_t storage) {
            return program_.storages[storage].followed;
        };
        op.followedGone = static_cast<std::size_t>(
            std::stable_partition(gone.begin(), gone.end(), followed) - gone.begin());
        op.onlyViews =
            writes.empty() && !outputs.empty() &&
            std::none_of(outputs.begin(), outputs.end(), [](const Output& o) { return o.makes; });
        op.inputs = program_.items.keep(inputs);
        op.outputs = program_.items.keep(outputs);
        op.writes = program_.items.keep(writes);
        op.gone = program_.items.keep(gone);
        op.before = readActions(from_, program_, program_.ops.size());
        op.after = readActions(from_, program_, program_.ops.size());
        const bool empty = outputs.size() == 1 && outputs.front().bytes == 0;
        op.receives = receivesBatch(name.name, name.overload, empty) && !op.keep &&
                      writes.empty() && (op.adopts || op.onlyViews || empty) &&
                      !anyMoves(op.before, true) && !anyMoves(op.after, true);
        op.followed = op.keep || op.adopts || op.hasStatistics || !op.before.empty() ||
                      !op.after.empty() || std::any_of(writes.begin(), writes.end(), followed);
        for (const Input& input : inputs) op.followed = op.followed || input.followed;
        for (const Output& output : outputs) op.followed = op.followed || output.followed;
    }

private:
    std::uint32_t readName() {
        OpName op;
        op.name = from_.text();
        op.overload = from_.text();
        const auto [at, fresh] = numbers_.try_emplace(
            {op.name, op.overload}, static_cast<std::uint32_t>(program_.names.size()));
        if (fresh) program_.names.push_back(std::move(op));
        return at->second;
    }
    std::vector<Input> readInputs() {
        std::vector<Input> inputs(from_.count(12));
        for (Input& input : inputs) {
            input.storage = from_.index(program_.storages.size());
            input.form = from_.number<std::uint64_t>();
            if (!from_.good()) break;
            input.version = versions_[input.storage];
            input.followed = program_.storages[input.storage].followed;
        }
        return inputs;
    }
    std::vector<Output> readOutputs(std::uint32_t op) {
        std::vector<Output> outputs(from_.count(13));
        for (Output& output : outputs) {
            output.storage = from_.index(program_.storages.size());
            output.form = from_.number<std::uint64_t>();
            output.makes = from_.number<std::uint8_t>() != 0;
            if (!from_.good()) break;
            output.bytes = program_.storages[output.storage].bytes;
            output.followed = program_.storages[output.storage].followed;
            if (output.makes) program_.storages[output.storage].chain.push_back(op);
        }
        return outputs;
    }

    Reader& from_;
    Program& program_;
    std::vector<std::int32_t> versions_;  // of the storages, before the op
    std::map<std::pair<std::string, std::string>, std::uint32_t> numbers_;  // of names
};

}  // namespace

/// A tensor without elements is made first, and set upon the storage then.
bool receivesBatch(const std::string& name, const std::string& overload, bool empty) {
    return name == "aten::lift_fresh" || (empty && name == "aten::empty") ||
           profiler::native::adoptsStorage(name, overload);
}

bool findSchemas(Program& program) {
    c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
    bool all = true;
    for (OpName& op : program.names) {
        if (op.schema != nullptr) continue;
        const auto handle = dispatcher.findSchema({op.name, op.overload});
        all = all && handle;
        if (!handle) continue;
        op.schema = &handle->schema();
        op.writesWhole = writesWhole(*op.schema);
    }
    for (ProgramOp& op : program.ops) {
        const OpName& name = program.names[op.name];
        op.schema = name.schema;
        op.writesWhole = name.writesWhole;
    }
    return all;
}

std::string Program::fullName(const ProgramOp& op) const {
    const OpName& of = names[op.name];
    return of.overload.empty() ? of.name : of.name + "." + of.overload;
}

char* ItemStore::take(std::size_t bytes) {
    constexpr std::size_t kChunk = 1 << 16;
    bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    if (bytes > left_) {
        left_ = std::max(kChunk, bytes);
        chunks_.push_back(std::make_unique<char[]>(left_));
        next_ = chunks_.back().get();
    }
    left_ -= bytes;
    return std::exchange(next_, next_ + bytes);
}

/// What follows from what such ops make, as far as the plan recomputes it.
void findVarying(Program& program) {
    std::vector<Varies> varying(program.storages.size());
    for (ProgramOp& op : program.ops) {
        const std::string& name = program.names[op.name].name;
        op.varies = {core::isNondeterministic(name, false), core::isNondeterministic(name, true)};
        for (const Input& input : op.inputs)
            if (program.storages[input.storage].dropped) op.varies.add(varying[input.storage]);
        for (const Output& output : op.outputs) varying[output.storage].add(op.varies);
        for (const std::uint32_t storage : op.writes) varying[storage].add(op.varies);
    }
}

/// What leaves before the step has shown which storage it is. That the step shows it is waited for.
void findEarly(Program& program) {
    std::vector<bool> read(program.storages.size(), false);
    const auto note = [&](Items<Action> actions) {
        for (const Action& action : actions) {
            ProgramStorage& storage = program.storages[action.target];
            if (action.kind != wire::LiveAction::Offload || read[action.target] || storage.early)
                continue;
            storage.early = true;
            program.early.push_back(action.target);
        }
    };
    for (std::size_t i = 0; i < program.ops.size(); ++i) {
        const ProgramOp& op = program.ops[i];
        note(op.before);
        for (const Input& input : op.inputs) {
            if (program.storages[input.storage].early && !read[input.storage])
                program.settledAt = std::max(program.settledAt, i + 1);
            read[input.storage] = true;
        }
        for (const Output& output : op.outputs) read[output.storage] = true;
        note(op.after);
    }
}

/// The name of an action that is not among `can`, if there is one.
const char* actionBeyond(const Program& program, wire::LiveActions can) {
    for (const ProgramOp& op : program.ops)
        for (const Items<Action> actions : {op.before, op.after})
            for (const Action& action : actions)
                if (!can.has(action.kind)) return traitsOf(action.kind).name;
    return nullptr;
}

std::optional<Program> readProgram(const std::string& bytes, wire::LiveActions can,
                                   std::string& why) {
    Reader from(bytes);
    if (from.number<std::uint32_t>() != wire::kLiveMagic ||
        from.number<std::uint32_t>() != wire::kLiveVersion) {
        why = "the plan is of another build of Highwater";
        return std::nullopt;
    }
    Program program;
    program.storages.resize(from.count(0 + 1));
    const std::uint32_t ops = from.count(1);
    for (ProgramStorage& storage : program.storages) {
        storage.bytes = from.number<std::int64_t>();
        const auto flags = from.number<std::uint8_t>();
        storage.constant = (flags & wire::kLiveConstant) != 0;
        storage.lasting = (flags & wire::kLiveLasting) != 0;
        storage.gathered = (flags & wire::kLiveGathered) != 0;
        storage.followed = (flags & wire::kLiveFollowed) != 0;
    }
    program.ops.resize(ops);
    for (std::uint32_t s = 0; s < program.storages.size(); ++s)
        if (program.storages[s].constant) program.constants.push_back(s);
    Ops reading(from, program);
    for (std::uint32_t i = 0; i < ops && from.good(); ++i) reading.read(i);
    if (!from.good() || !from.done()) {
        why = "the plan arrived damaged";
        return std::nullopt;
    }
    if (const char* const beyond = actionBeyond(program, can)) {
        why = std::string("the plan asks to ") + beyond + ", which is not done here";
        return std::nullopt;
    }
    program.complete = findSchemas(program);
    for (std::size_t i = 0; i < program.ops.size(); ++i) {
        const ProgramOp& op = program.ops[i];
        if (op.keep || anyMoves(op.before) || anyMoves(op.after)) program.settledAt = i + 1;
    }
    findEarly(program);
    program.doneAt = program.settledAt;
    findVarying(program);
    return program;
}

}  // namespace hw::live::runtime
