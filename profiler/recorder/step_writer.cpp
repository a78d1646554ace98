// SPDX-License-Identifier: MIT
// The part of Assembler that writes finished steps.
#include <unistd.h>

#include <algorithm>
#include <set>

#include "core/session/arguments.h"
#include "profiler/recorder/assembler.h"

namespace hw::profiler {

using core::Status;

namespace {

std::string hostName() {
    char name[256] = {};
    return gethostname(name, sizeof(name) - 1) == 0 ? name : "";
}

}  // namespace

core::Status Assembler::openSession() {
    if (member_) return {};
    core::ProcessRow row;
    row.pid = pid_;
    row.command = process_->command;
    row.host = hostName();
    row.framework = process_->framework;
    row.frameworkVersion = process_->version;
    row.startedNs = process_->startedNs;
    row.rank = static_cast<int>(std::max<std::int64_t>(0, process_->rank));
    if (process_->worldSize > 0) row.worldSize = process_->worldSize;
    row.run = process_->run;
    const auto entered = session_->enter(std::move(row));
    if (!entered) return entered.error();
    member_ = *entered;
    return {};
}

/// Without a category so far: read by forward and not computed, an input; computed, temporary.
void Assembler::settleCategories(std::int64_t endSeq) {
    for (const std::int64_t id : pending_.storages) {
        StorageState& state = storages_.at(id);
        if (state.row.allocSeq >= endSeq || state.row.category != core::Category::Unknown) continue;
        if (state.row.creator)
            state.row.category = core::Category::Temporary;
        else if (state.readInForward)
            state.row.category = core::Category::Input;
    }
}

/// Of steps whose ops nothing asks for one by one.
bool Assembler::packs() const {
    const bool rank = process_->worldSize > 0 || !process_->run.empty();
    return steps_ >= packAfter_ && !rank && !device_.any();
}

core::StorageRow Assembler::inSession(core::StorageRow row) const {
    row.id = at(row.id);
    row.layer = layerAt(row.layer);
    row.creator = at(row.creator);
    row.allocSeq = at(row.allocSeq);
    row.freeSeq = at(row.freeSeq);
    return row;
}

core::TensorRow Assembler::inSession(core::TensorRow row) const {
    row.id = at(row.id);
    row.storage = at(row.storage);
    row.creator = at(row.creator);
    return row;
}

void Assembler::moveToSession(core::OpRow& row) const {
    if (member_->base > 0) {
        row.id = at(row.id);
        row.seq = at(row.seq);
        for (auto& input : row.inputs) input.tensor = at(input.tensor);
        for (auto& output : row.outputs) output.tensor = at(output.tensor);
        for (auto& write : row.writes) write.storage = at(write.storage);
        row.args = core::withTensorsMoved(row.args, member_->base);
    }
    row.layer = layerAt(row.layer);
    if (row.stack) row.stack = stackIds_.at(static_cast<std::size_t>(*row.stack));
}

bool Assembler::cameAndWent(const StorageState& state, std::int64_t endSeq) const {
    return state.isOver(endSeq) && state.row.allocSeq >= start_->seq;
}

/// `packed`: null where the step's rows go into tables. What outlives the step always does.
core::Status Assembler::writeStorages(std::int64_t endSeq, core::StepContents* packed) {
    core::SessionWriter& session = session_->session();
    for (const std::int64_t id : pending_.frees) {
        const StorageState& state = storages_.at(id);
        const std::int64_t freeSeq = *state.row.freeSeq;
        if (state.written && freeSeq < endSeq) HW_TRY(session.setFreed(at(id), at(freeSeq)));
    }
    for (const std::int64_t id : pending_.storages) {
        StorageState& state = storages_.at(id);
        if (state.row.allocSeq >= endSeq) continue;
        if (packed != nullptr && cameAndWent(state, endSeq)) {
            packed->storages.push_back(inSession(state.row));
            continue;
        }
        core::StorageRow row = state.row;
        if (row.freeSeq && *row.freeSeq >= endSeq) row.freeSeq.reset();
        HW_TRY(session.insert(inSession(std::move(row))));
        state.written = true;
    }
    for (const std::int64_t id : pending_.changed) {
        const core::StorageRow& row = storages_.at(id).row;
        HW_TRY(session.setCategory(at(id), row.category, layerAt(row.layer)));
        HW_TRY(session.setStorageBytes(at(id), row.bytes));
    }
    return {};
}

core::Status Assembler::writeTensors(std::int64_t endSeq, core::StepContents* packed) {
    for (auto& [seq, tensor] : pending_.tensors) {
        const StorageState& state = storages_.at(tensor.storage);
        if (state.row.allocSeq >= endSeq || seq >= endSeq) continue;
        core::TensorRow row = inSession(std::move(tensor));
        if (packed != nullptr && cameAndWent(state, endSeq))
            packed->tensors.push_back(std::move(row));
        else
            HW_TRY(session_->session().insert(row));
    }
    return {};
}

core::Status Assembler::writeOps(std::int64_t endSeq, core::StepContents* packed) {
    opsOfLastStep_ = 0;
    if (packed != nullptr) packed->ops.reserve(pending_.ops.size());
    for (auto& row : pending_.ops) {
        const std::int64_t seq = row.seq;
        if (seq >= endSeq) break;
        moveToSession(row);
        if (device_.any())
            device_.op({row.beginNs, row.beginNs + row.duration.count(), row.thread, row.id});
        if (packed != nullptr)
            packed->ops.push_back(std::move(row));
        else
            HW_TRY(session_->session().insert(row));
        row.seq = seq;  // all that is looked at afterwards
        ++opsOfLastStep_;
    }
    return {};
}

core::Status Assembler::writeLayers() {
    for (core::LayerRow row : pending_.layers) {
        row.parent = layerAt(row.parent);
        const auto id = session_->common().layer(session_->session(), std::move(row));
        if (!id) return id.error();
        layerIds_.push_back(*id);
    }
    return {};
}

core::Status Assembler::writeStacks() {
    for (core::SourceFrameRow& row : pending_.frames) {
        const auto id = session_->common().sourceFrame(session_->session(), std::move(row));
        if (!id) return id.error();
        frameIds_.push_back(*id);
    }
    for (core::StackRow row : pending_.stacks) {
        if (row.parent) row.parent = stackIds_.at(static_cast<std::size_t>(*row.parent));
        row.frame = frameIds_.at(static_cast<std::size_t>(row.frame));
        const auto id = session_->common().stack(session_->session(), row);
        if (!id) return id.error();
        stackIds_.push_back(*id);
    }
    return {};
}

/// `step`: in the session; the step being written, none when the recording ends.
core::Status Assembler::writeGaps(std::optional<std::int64_t> step) {
    for (core::GapRow row : pending_.gaps) {
        const auto known = static_cast<std::int64_t>(stepIds_.size());
        if (row.step)
            row.step = *row.step < known ? stepIds_[static_cast<std::size_t>(*row.step)] : step;
        HW_TRY(session_->session().insert(row));
    }
    return {};
}

core::Status Assembler::writeContents(std::int64_t step, std::int64_t endSeq) {
    std::set<std::int64_t> stored, seeded;
    for (const auto& item : pending_.contents) {
        const core::StorageRow& row = storages_.at(item.storage).row;
        const bool constant = !row.creator || row.allocSeq < start_->seq;
        const bool whole = static_cast<std::int64_t>(item.data.size()) == item.total;
        if (item.seq >= endSeq || !constant || !whole || !stored.insert(item.storage).second)
            continue;
        HW_TRY(session_->session().insertContents(step, at(item.storage), item.data));
    }
    for (const auto& [seq, generator] : pending_.generators)
        if (seq < endSeq && seeded.insert(generator.id).second)
            HW_TRY(session_->session().insertGenerator(step, generator));
    return {};
}

core::Status Assembler::writeDeviceRecords(const core::StepRow* step) {
    const core::Status done =
        device_.write(session_->session(), step == nullptr ? 0 : step->beginNs,
                      step == nullptr ? 0 : step->endNs, step == nullptr);
    if (done) return {};
    return core::badInput("writing what the GPU did failed: " + done.error().what,
                          "check that the folder is writable and has room");
}

core::Status Assembler::writeRows(const wire::StepEndRecord& end) {
    core::SessionWriter& session = session_->session();
    HW_TRY(writeLayers());
    HW_TRY(writeStacks());
    settleCategories(end.seq);
    core::StepContents contents;
    core::StepContents* const packed = packs() ? &contents : nullptr;
    HW_TRY(writeStorages(end.seq, packed));
    HW_TRY(writeTensors(end.seq, packed));
    HW_TRY(writeOps(end.seq, packed));
    core::StepRow row;
    row.id = session_->nextStep();
    stepIds_.push_back(row.id);
    HW_TRY(writeGaps(row.id));
    HW_TRY(writeContents(row.id, end.seq));
    row.process = member_->process;
    row.firstSeq = at(start_->seq);
    row.endSeq = at(end.seq);
    row.beginNs = start_->timeNs;
    row.endNs = end.timeNs;
    if (end.peak > 0) {
        row.allocatorBeginBytes = start_->live;
        row.allocatorPeakBytes = end.peak;
    }
    row.environment = end.environment;
    std::vector<std::int64_t> finals;
    for (const std::int64_t id : end.tensors) finals.push_back(at(id));
    HW_TRY(session.insert(row, finals, contents));
    return writeDeviceRecords(&row);
}

core::Status Assembler::writeStep(const wire::StepEndRecord& end) {
    HW_TRY(openSession());
    HW_TRY(session_->session().begin());
    HW_TRY(writeRows(end));
    HW_TRY(session_->session().commit());
    ++steps_;
    // Keep what came after the end: the beginning of the next step.
    const auto before = [&](std::int64_t seq) { return seq < end.seq; };
    std::erase_if(pending_.ops, [&](const auto& op) { return before(op.seq); });
    std::erase_if(pending_.tensors, [&](const auto& item) { return before(item.first); });
    std::erase_if(pending_.storages,
                  [&](std::int64_t id) { return before(storages_.at(id).row.allocSeq); });
    std::erase_if(pending_.frees,
                  [&](std::int64_t id) { return before(*storages_.at(id).row.freeSeq); });
    std::erase_if(pending_.contents, [&](const auto& item) { return before(item.seq); });
    std::erase_if(pending_.generators, [&](const auto& item) { return before(item.first); });
    forgetBefore(end.seq);
    pending_.layers.clear();
    pending_.frames.clear();
    pending_.stacks.clear();
    pending_.changed.clear();
    pending_.gaps.clear();
    start_ = wire::StepStartRecord{end.seq, end.timeNs, end.live};
    return {};
}

core::Status Assembler::confirm() {
    if (!start_ || !end_) return core::badInput("the agent confirmed a step that has not ended");
    const wire::StepEndRecord end = std::move(*end_);
    end_.reset();
    return writeStep(end);
}

core::Status Assembler::finish() {
    if (!session_) return {};
    if (start_ && end_) HW_TRY(confirm());
    if (member_ && (device_.any() || !pending_.gaps.empty())) {
        core::SessionWriter& session = session_->session();
        HW_TRY(session.begin());
        HW_TRY(writeDeviceRecords(nullptr));
        HW_TRY(writeGaps(std::nullopt));
        HW_TRY(session.commit());
        pending_.gaps.clear();
    }
    session_.reset();
    return {};
}

}  // namespace hw::profiler
