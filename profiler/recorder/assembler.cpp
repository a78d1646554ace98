// SPDX-License-Identifier: MIT
// The taking in of records. Writing them out is in step_writer.cpp.
#include "profiler/recorder/assembler.h"

#include <algorithm>
#include <charconv>
#include <limits>

namespace hw::profiler {
namespace {

using core::badInput;
using core::Status;

/// FSDP2 copies into parameters what it has gathered of all ranks.
constexpr char kFillsGathered[] = "fsdp::split_with_sizes_copy";

// Phases and categories come as numbers and are stored as core's.
template <class Wire, class Core>
constexpr bool same(Wire wire, Core core) {
    return static_cast<int>(wire) == static_cast<int>(core);
}
static_assert(same(wire::Phase::Unknown, core::Phase::Unknown) &&
              same(wire::Phase::Forward, core::Phase::Forward) &&
              same(wire::Phase::Backward, core::Phase::Backward) &&
              same(wire::Phase::Optimizer, core::Phase::Optimizer));
static_assert(same(wire::Category::Parameter, core::Category::Parameter) &&
              same(wire::Category::Gradient, core::Category::Gradient) &&
              same(wire::Category::OptimizerState, core::Category::OptimizerState) &&
              same(wire::Category::Input, core::Category::Input) &&
              same(wire::Category::Activation, core::Category::Activation) &&
              same(wire::Category::Temporary, core::Category::Temporary) &&
              same(wire::Category::Workspace, core::Category::Workspace) &&
              same(wire::Category::GatheredParameter, core::Category::GatheredParameter) &&
              same(wire::Category::Unknown, core::Category::Unknown));
static_assert(static_cast<int>(wire::Category::Unknown) + 1 == core::kCategoryCount);

Status malformed(const std::string& what) {
    return badInput("the agent sent " + what, "the recording stops here; finished steps are kept");
}

std::string jsonArray(const std::vector<std::int64_t>& values) {
    std::string text = "[";
    char digits[24];
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (i > 0) text += ',';
        text.append(digits, std::to_chars(digits, digits + sizeof digits, values[i]).ptr);
    }
    return text += ']';
}

std::optional<std::int64_t> known(std::int64_t id) {
    return id < 0 ? std::nullopt : std::optional(id);
}

template <class Record>
bool decoded(const wire::Frame& frame, Record& record) {
    return wire::decode(frame.payload, record);
}

}  // namespace

Assembler::Assembler(std::shared_ptr<SharedSession> session) : session_(std::move(session)) {}

Assembler::Assembler(std::string sessionPath)
    : Assembler(std::make_shared<SharedSession>(std::move(sessionPath))) {}

core::Status Assembler::handle(const wire::Frame& frame) {
    const auto into = [&](auto& record) -> Status {
        if (!decoded(frame, record))
            return malformed("a malformed record of type " +
                             std::to_string(static_cast<int>(frame.type)));
        return take(std::move(record));  // the frequent ones are only read
    };
    const auto as = [&]<class Record>(Record record) -> Status { return into(record); };
    const auto onDevice = [&]<class Record>(Record record) -> Status {
        if (!decoded(frame, record)) return malformed("a malformed record of the GPU");
        device_.take(std::move(record));
        return {};
    };
    using wire::Type;
    if (!process_ && frame.type >= Type::Layer && frame.type <= Type::StepConfirmed)
        return malformed("a record before its introduction");
    switch (frame.type) {
        case Type::Hello: {
            wire::HelloRecord hello;
            if (!decoded(frame, hello)) return malformed("a malformed hello");
            pid_ = hello.pid;
            return {};
        }
        case Type::Process:
            return as(wire::ProcessRecord{});
        case Type::Milestone:
            return as(wire::MilestoneRecord{});
        case Type::Layer:
            return as(wire::LayerRecord{});
        case Type::Storage:
            return into(frequent_.storage);
        case Type::Tensor:
            return into(frequent_.tensor);
        case Type::SourceFrame:
            return as(wire::SourceFrameRecord{});
        case Type::StackNode:
            return as(wire::StackNodeRecord{});
        case Type::Op:
            return into(frequent_.op);
        case Type::Free:
            return into(frequent_.free);
        case Type::Category:
            return as(wire::CategoryRecord{});
        case Type::Resize:
            return as(wire::ResizeRecord{});
        case Type::Contents:
            return as(wire::ContentsRecord{});
        case Type::Generator:
            return as(wire::GeneratorRecord{});
        case Type::StepStart:
            return as(wire::StepStartRecord{});
        case Type::StepEnd:
            return as(wire::StepEndRecord{});
        case Type::StepConfirmed:
            return confirm();
        case Type::Gap:
            return as(wire::GapRecord{});
        case Type::Fault:
            return as(wire::FaultRecord{});
        case Type::Done:
            done_ = true;
            return {};
        case Type::Device:
            return onDevice(wire::DeviceRecord{});
        case Type::Clock:
            return onDevice(wire::ClockRecord{});
        case Type::Name:
            return onDevice(wire::NameRecord{});
        case Type::Activities:
            return onDevice(wire::ActivitiesRecord{});
        case Type::Footprint:
            return onDevice(wire::FootprintRecord{});
        case Type::LiveStep:
            return as(wire::LiveStepRecord{});
        case Type::LiveDivergence:
            return as(wire::LiveDivergenceRecord{});
        case Type::LiveCurve:
            return as(wire::LiveCurveRecord{});
        case Type::LiveRescue:
            return as(wire::LiveRescueRecord{});
        case Type::LiveMismatch:
            return as(wire::LiveMismatchRecord{});
        case Type::LiveNote:
            return as(wire::LiveNoteRecord{});
        case Type::Refusal:
            return as(wire::RefusalRecord{});
        case Type::Config:
        case Type::Native:
            break;
    }
    return malformed("a record that only a recorder sends");
}

bool Assembler::saw(wire::Milestone milestone) const {
    return (milestones_ & (1u << static_cast<std::uint32_t>(milestone))) != 0;
}

Assembler::StorageState* Assembler::storage(std::int64_t id) {
    const auto at = storages_.find(id);
    return at == storages_.end() ? nullptr : &at->second;
}

/// Every event has a seq of its own, and they only grow.
bool Assembler::advance(std::int64_t seq) {
    if (seq <= lastSeq_) return false;
    lastSeq_ = seq;
    return true;
}

core::Status Assembler::take(wire::ProcessRecord record) {
    if (process_) return malformed("a second introduction");
    process_ = std::move(record);
    return {};
}

core::Status Assembler::take(wire::LiveStepRecord record) {
    liveSteps_.push_back(record);
    return {};
}

core::Status Assembler::take(wire::LiveDivergenceRecord record) {
    divergences_.push_back(std::move(record));
    return {};
}

core::Status Assembler::take(wire::LiveRescueRecord record) {
    rescues_.push_back(std::move(record));
    return {};
}

core::Status Assembler::take(wire::LiveMismatchRecord record) {
    mismatches_.push_back(std::move(record));
    return {};
}

core::Status Assembler::take(wire::LiveNoteRecord record) {
    liveNotes_.push_back(std::move(record));
    return {};
}

core::Status Assembler::take(wire::LiveCurveRecord record) {
    liveCurve_ = std::move(record);
    return {};
}

core::Status Assembler::take(wire::MilestoneRecord record) {
    if (record.what >= 32) return malformed("an unknown milestone");
    milestones_ |= 1u << record.what;
    return {};
}

core::Status Assembler::take(wire::LayerRecord record) {
    if (record.id != layers_ || record.parent >= layers_) return malformed("a layer out of order");
    ++layers_;
    core::LayerRow row;
    row.id = record.id;
    row.parent = known(record.parent);
    row.path = std::move(record.path);
    row.type = std::move(record.type);
    pending_.layers.push_back(std::move(row));
    return {};
}

core::Status Assembler::take(wire::SourceFrameRecord record) {
    if (record.id != frames_ || record.line < 0 || record.framework > 1)
        return malformed("a source line out of order");
    ++frames_;
    pending_.frames.push_back({record.id, std::move(record.file), std::move(record.function),
                               record.line, record.framework != 0});
    return {};
}

core::Status Assembler::take(wire::StackNodeRecord record) {
    if (record.id != stacks_ || record.parent >= stacks_ || record.source < 0 ||
        record.source >= frames_)
        return malformed("a call stack out of order");
    ++stacks_;
    pending_.stacks.push_back({record.id, known(record.parent), record.source});
    return {};
}

core::Status Assembler::take(const wire::StorageRecord& record) {
    const bool byOp = record.creator >= 0;
    // Ids only grow: those of what is gone are not looked up any more.
    if (record.id <= lastStorage_ || record.bytes < 0 || record.category >= core::kCategoryCount ||
        record.layer >= layers_ || (byOp && record.creator != nextOp_) || record.seq < 0)
        return malformed("an impossible storage");
    // The storages of an op share its seq, which the op itself is about to use. What a step's end
    // shows to have been there all along comes with the seq of its start.
    const bool older = !byOp && start_ && record.seq == start_->seq;
    if (byOp ? record.seq <= lastSeq_ : !older && !advance(record.seq))
        return malformed("a storage out of order");
    lastStorage_ = record.id;
    StorageState state;
    state.row.id = record.id;
    state.row.bytes = core::Bytes(record.bytes);
    state.row.device = record.device;
    state.row.category = static_cast<core::Category>(record.category);
    state.row.layer = known(record.layer);
    state.row.creator = known(record.creator);
    state.row.allocSeq = record.seq;
    if (record.address > 0) state.row.address = record.address;
    storages_.emplace(record.id, std::move(state));
    pending_.storages.push_back(record.id);
    return {};
}

core::Status Assembler::take(const wire::TensorRecord& record) {
    const StorageState* owner = storage(record.storage);
    if (record.id <= lastTensor_ || owner == nullptr || !owner->alive || record.offset < 0 ||
        record.creator > nextOp_)
        return malformed("an impossible tensor");
    lastTensor_ = record.id;
    core::TensorRow row;
    row.id = record.id;
    row.storage = record.storage;
    row.creator = known(record.creator);
    row.dtype = record.dtype;
    row.sizes = jsonArray(record.sizes);
    row.strides = jsonArray(record.strides);
    row.offset = record.offset;
    // A tensor is announced right before the op that makes it, and belongs to the op's step.
    const bool ofNextOp = record.creator == nextOp_;
    const std::int64_t seq = std::max(lastSeq_ + (ofNextOp ? 1 : 0), owner->row.allocSeq);
    tensors_.emplace(record.id, TensorState{record.storage, seq});
    pending_.tensors.emplace_back(seq, std::move(row));
    return {};
}

core::Status Assembler::applyOp(const wire::OpRecord& record) {
    for (const auto& input : record.inputs) {
        const auto tensor = tensors_.find(input.tensor);
        if (tensor == tensors_.end()) return malformed("an op with an unknown input");
        StorageState& state = *storage(tensor->second.storage);
        if (!state.alive || input.version != state.version)
            return malformed("an op that reads what is not there");
        if (state.readInForward || record.phase != static_cast<int>(wire::Phase::Forward)) continue;
        state.readInForward = true;
        if (state.written && !state.row.creator && state.row.category == core::Category::Unknown) {
            state.row.category = core::Category::Input;  // of a later step than the one it came in
            pending_.changed.push_back(tensor->second.storage);
        }
    }
    for (const auto& output : record.outputs) {
        const auto tensor = tensors_.find(output.tensor);
        if (tensor == tensors_.end()) return malformed("an op with an unknown output");
        const StorageState& state = *storage(tensor->second.storage);
        if (!state.alive || (output.makes && state.row.creator != record.id))
            return malformed("an op with an impossible output");
    }
    for (const auto& write : record.writes) {
        StorageState* state = storage(write.storage);
        if (state == nullptr || !state->alive || state->version != write.before)
            return malformed("an op that writes what is not there");
        ++state->version;
        if (record.name == kFillsGathered && !state->row.creator &&
            (state->row.category == core::Category::Unknown ||
             state->row.category == core::Category::Parameter)) {
            state->row.category = core::Category::GatheredParameter;
            if (state->written) pending_.changed.push_back(write.storage);
        }
    }
    return {};
}

core::Status Assembler::take(const wire::OpRecord& record) {
    if (record.id != nextOp_ || !advance(record.seq) || record.layer >= layers_ ||
        record.durationNs < 0 || record.workspace < 0 || record.stack >= stacks_ ||
        record.phase > static_cast<int>(wire::Phase::Optimizer) || record.random > 1 ||
        record.name.empty())
        return malformed("an op out of order");
    if (const Status applied = applyOp(record); !applied) return applied;
    ++nextOp_;
    core::OpRow row;
    row.id = record.id;
    row.seq = record.seq;
    row.name = record.name;
    row.overload = record.overload;
    row.phase = static_cast<core::Phase>(record.phase);
    row.layer = known(record.layer);
    row.thread = record.thread;
    row.beginNs = record.beginNs;
    row.duration = core::Nanoseconds(record.durationNs);
    row.workspace = core::Bytes(record.workspace);
    row.liveBytes = known(record.live);
    row.random = record.random != 0;
    row.args = record.args;
    row.stack = known(record.stack);
    row.inputs.reserve(record.inputs.size());
    row.outputs.reserve(record.outputs.size());
    row.writes.reserve(record.writes.size());
    for (const auto& input : record.inputs) row.inputs.push_back({input.tensor, input.version});
    for (const auto& output : record.outputs) row.outputs.push_back({output.tensor, output.makes});
    for (const auto& write : record.writes) row.writes.push_back({write.storage, write.before});
    pending_.ops.push_back(std::move(row));
    return {};
}

core::Status Assembler::take(const wire::FreeRecord& record) {
    StorageState* state = storage(record.storage);
    if (state == nullptr || !state->alive || !advance(record.seq))
        return malformed("a release of what is not there");
    state->alive = false;
    state->row.freeSeq = record.seq;
    pending_.frees.push_back(record.storage);
    return {};
}

core::Status Assembler::take(wire::CategoryRecord record) {
    if (record.category >= core::kCategoryCount || record.layer >= layers_)
        return malformed("an unknown category");
    for (const std::int64_t id : record.storages) {
        StorageState* state = storage(id);
        if (state == nullptr) return malformed("a category of an unknown storage");
        const auto category = static_cast<core::Category>(record.category);
        // What a module has as its parameter meanwhile is the gathered one.
        if (category != core::Category::Parameter ||
            state->row.category != core::Category::GatheredParameter)
            state->row.category = category;
        if (record.layer >= 0) state->row.layer = record.layer;
        if (state->written) pending_.changed.push_back(id);
    }
    return {};
}

core::Status Assembler::take(wire::ResizeRecord record) {
    StorageState* state = storage(record.storage);
    if (state == nullptr || record.bytes < 0) return malformed("a new size of an unknown storage");
    state->row.bytes = core::Bytes(record.bytes);
    if (state->written) pending_.changed.push_back(record.storage);
    return {};
}

core::Status Assembler::take(wire::ContentsRecord record) {
    const StorageState* state = storage(record.storage);
    const auto bytes = static_cast<std::int64_t>(record.data.size());
    if (state == nullptr || record.total != state->row.bytes.count() || record.offset < 0 ||
        record.offset + bytes > record.total || record.offset > record.total)
        return malformed("contents that do not fit their storage");
    auto& contents = pending_.contents;
    if (record.offset == 0) {
        contents.push_back(std::move(record));
    } else {
        if (contents.empty() || contents.back().storage != record.storage ||
            static_cast<std::int64_t>(contents.back().data.size()) != record.offset)
            return malformed("contents out of order");
        auto& data = contents.back().data;
        data.insert(data.end(), record.data.begin(), record.data.end());
    }
    return {};
}

core::Status Assembler::take(wire::GeneratorRecord record) {
    if (record.id < 0) return malformed("an impossible generator");
    pending_.generators.emplace_back(
        record.seq, core::Generator{record.id, std::move(record.device), std::move(record.state)});
    return {};
}

core::Status Assembler::take(wire::StepStartRecord record) {
    if (record.seq <= lastSeq_) return malformed("a step that starts in the past");
    discardBefore(record.seq);
    lastSeq_ = record.seq - 1;
    start_ = record;
    end_.reset();
    return {};
}

core::Status Assembler::take(wire::StepEndRecord record) {
    if (!start_ || record.seq <= lastSeq_ || record.seq < start_->seq)
        return malformed("the end of a step that has not begun");
    for (const std::int64_t id : record.tensors) {
        const auto tensor = tensors_.find(id);
        if (tensor == tensors_.end() || !storage(tensor->second.storage)->alive)
            return malformed("a step that ends with a tensor that is not there");
    }
    lastSeq_ = record.seq - 1;
    end_ = std::move(record);
    return {};
}

core::Status Assembler::take(wire::GapRecord record) {
    core::GapRow row;
    if (start_) row.step = steps_;
    if (record.beginNs > 0) row.beginNs = record.beginNs;
    if (record.endNs > 0) row.endNs = record.endNs;
    row.what = std::move(record.what);
    row.why = std::move(record.why);
    if (row.what == "compiled code") compiledCode_ = row.why;
    const bool repeated = std::any_of(pending_.gaps.begin(), pending_.gaps.end(), [&](auto& gap) {
        return gap.what == row.what && gap.why == row.why;
    });
    if (!repeated) pending_.gaps.push_back(std::move(row));
    return {};
}

core::Status Assembler::take(wire::RefusalRecord record) {
    wire::GapRecord gap;
    gap.what = "kernels, copies and driver memory";
    gap.why = record.what;
    refusal_ = std::move(record);
    return take(std::move(gap));
}

core::Status Assembler::take(wire::FaultRecord record) {
    faults_.push_back(std::move(record.what));
    return {};
}

/// Ops between two captures, or before what turned out to be the start, belong to no step. What
/// they made is a constant of the steps that follow.
void Assembler::discardBefore(std::int64_t seq) {
    std::erase_if(pending_.ops, [&](const core::OpRow& op) { return op.seq < seq; });
    std::erase_if(pending_.contents, [&](const auto& item) { return item.seq < seq; });
    std::erase_if(pending_.generators, [&](const auto& item) { return item.first < seq; });
    std::erase_if(pending_.storages, [&](std::int64_t id) {
        StorageState& state = storages_.at(id);
        if (state.row.allocSeq >= seq) return false;
        state.row.creator.reset();
        state.dropped = !state.alive;
        return state.dropped;
    });
    std::erase_if(pending_.tensors,
                  [&](const auto& item) { return storages_.at(item.second.storage).dropped; });
    for (auto& [arrival, tensor] : pending_.tensors)
        if (arrival < seq) tensor.creator.reset();
    std::erase_if(pending_.frees, [&](std::int64_t id) { return storages_.at(id).dropped; });
}

/// Storages that are gone, and their tensors: no later record can name them.
void Assembler::forgetBefore(std::int64_t seq) {
    std::erase_if(tensors_,
                  [&](const auto& item) { return storages_.at(item.second.storage).isOver(seq); });
    std::erase_if(storages_, [&](const auto& item) { return item.second.isOver(seq); });
    std::erase_if(pending_.contents,
                  [&](const auto& item) { return !storages_.contains(item.storage); });
}

}  // namespace hw::profiler
