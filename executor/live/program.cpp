// SPDX-License-Identifier: MIT
#include "program.h"

#include <algorithm>
#include <cstring>

namespace hw::executor::live {
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
    std::uint32_t index(std::size_t limit) {
        const auto value = number<std::uint32_t>();
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

std::vector<Action> readActions(Reader& from, const Program& program, std::size_t ops) {
    std::vector<Action> actions(from.count(5));
    for (Action& action : actions) {
        action.kind = static_cast<wire::LiveAction>(from.number<std::uint8_t>());
        const bool recompute = action.kind == wire::LiveAction::Recompute;
        action.target = from.index(recompute ? ops : program.storages.size());
        if (action.kind == wire::LiveAction::Encode) {
            action.encoding.codec = static_cast<wire::LiveCodec>(from.number<std::uint8_t>());
            action.encoding.type = static_cast<c10::ScalarType>(from.number<std::uint8_t>());
            action.encoding.bytes = from.number<std::int64_t>();
        }
        if (!recompute) continue;
        action.outputs.resize(from.count(4));
        for (std::uint32_t& output : action.outputs) output = from.number<std::uint32_t>();
    }
    return actions;
}

void readOp(Reader& from, const Program& program, std::size_t ops, ProgramOp& op) {
    op.name = from.text();
    op.overload = from.text();
    const auto flags = from.number<std::uint8_t>();
    op.keep = (flags & wire::kLiveKeep) != 0;
    op.random = (flags & wire::kLiveRandom) != 0;
    op.inputs.resize(from.count(12));
    for (Input& input : op.inputs) {
        input.storage = from.index(program.storages.size());
        input.form = from.number<std::uint64_t>();
    }
    op.outputs.resize(from.count(13));
    for (Output& output : op.outputs) {
        output.storage = from.index(program.storages.size());
        output.form = from.number<std::uint64_t>();
        output.makes = from.number<std::uint8_t>() != 0;
    }
    op.writes.resize(from.count(4));
    for (std::uint32_t& storage : op.writes) storage = from.index(program.storages.size());
    op.before = readActions(from, program, ops);
    op.after = readActions(from, program, ops);
}

void derive(Program& program) {
    std::vector<std::int32_t> version(program.storages.size(), 0);
    for (std::uint32_t i = 0; i < program.ops.size(); ++i) {
        ProgramOp& op = program.ops[i];
        op.onlyViews = op.writes.empty() && !op.outputs.empty() &&
                       std::none_of(op.outputs.begin(), op.outputs.end(),
                                    [](const Output& output) { return output.makes; });
        op.comparesWithZero = op.name == "aten::threshold_backward";
        for (Input& input : op.inputs) input.version = version[input.storage];
        for (const Output& output : op.outputs)
            if (output.makes) program.storages[output.storage].chain.push_back(i);
        for (const std::uint32_t storage : op.writes) {
            program.storages[storage].chain.push_back(i);
            ++version[storage];
        }
    }
}

}  // namespace

bool findSchemas(Program& program) {
    c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
    bool all = true;
    for (ProgramOp& op : program.ops) {
        if (op.schema != nullptr) continue;
        const auto handle = dispatcher.findSchema({op.name, op.overload});
        if (handle) op.schema = &handle->schema();
        all = all && handle;
    }
    return all;
}

std::optional<Program> readProgram(const std::string& bytes, std::string& why) {
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
    }
    program.ops.resize(ops);
    for (ProgramOp& op : program.ops)
        if (from.good()) readOp(from, program, ops, op);
    if (!from.good() || !from.done()) {
        why = "the plan arrived damaged";
        return std::nullopt;
    }
    derive(program);
    program.complete = findSchemas(program);
    return program;
}

}  // namespace hw::executor::live
