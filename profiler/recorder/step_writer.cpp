// SPDX-License-Identifier: MIT
// The part of Assembler that writes finished steps.
#include <unistd.h>

#include <algorithm>
#include <set>

#include "profiler/recorder/assembler.h"

namespace hw::profiler {

using core::Status;

namespace {

std::string hostName() {
    char name[256] = {};
    return gethostname(name, sizeof(name) - 1) == 0 ? name : "";
}

/// Stops at the first error.
#define HW_TRY(expression) \
    if (Status status = (expression); !status) return status

}  // namespace

core::Status Assembler::openSession() {
    if (session_) return {};
    auto created = core::Session::create(path_);
    if (!created) return created.error();
    session_.emplace(std::move(*created));
    trace_.emplace(*session_);
    core::ProcessRow row;
    row.pid = pid_;
    row.command = process_->command;
    row.host = hostName();
    row.framework = process_->framework;
    row.frameworkVersion = process_->version;
    row.startedNs = process_->startedNs;
    return session_->insert(row);
}

/// What nobody has claimed: read by forward and not computed, an input; computed, temporary.
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

core::Status Assembler::writeStorages(std::int64_t endSeq) {
    for (const std::int64_t id : pending_.storages) {
        StorageState& state = storages_.at(id);
        if (state.row.allocSeq >= endSeq) continue;
        core::StorageRow row = state.row;
        if (row.freeSeq && *row.freeSeq >= endSeq) row.freeSeq.reset();
        HW_TRY(session_->insert(row));
        state.written = true;
    }
    for (const std::int64_t id : pending_.changed) {
        const core::StorageRow& row = storages_.at(id).row;
        HW_TRY(session_->setCategory(id, row.category, row.layer));
        HW_TRY(session_->setStorageBytes(id, row.bytes));
    }
    for (const std::int64_t id : pending_.frees) {
        const core::StorageRow& row = storages_.at(id).row;
        if (*row.freeSeq < endSeq) HW_TRY(session_->setFreed(id, *row.freeSeq));
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
        HW_TRY(session_->insertContents(step, item.storage, item.data));
    }
    for (const auto& [seq, generator] : pending_.generators)
        if (seq < endSeq && seeded.insert(generator.id).second)
            HW_TRY(session_->insertGenerator(step, generator));
    return {};
}

core::Status Assembler::writeDeviceRecords(const core::StepRow* step) {
    try {
        device_.write(*session_, *trace_, step == nullptr ? 0 : step->beginNs,
                      step == nullptr ? 0 : step->endNs, step == nullptr);
        return {};
    } catch (const core::DatabaseError& error) {
        return core::badInput(
            "writing what the GPU did to '" + path_ + "' failed: " + error.message,
            "check that the folder is writable and has room");
    }
}

core::Status Assembler::writeRows(const wire::StepEndRecord& end) {
    for (const auto& layer : pending_.layers) HW_TRY(session_->insert(layer));
    settleCategories(end.seq);
    HW_TRY(writeStorages(end.seq));
    for (const auto& [seq, tensor] : pending_.tensors)
        if (storages_.at(tensor.storage).row.allocSeq < end.seq && seq < end.seq)
            HW_TRY(session_->insert(tensor));
    opsOfLastStep_ = 0;
    for (const auto& op : pending_.ops) {
        if (op.seq >= end.seq) break;
        HW_TRY(session_->insert(op));
        if (device_.any())
            device_.op({op.beginNs, op.beginNs + op.duration.count(), op.thread, op.id});
        ++opsOfLastStep_;
    }
    for (const auto& gap : pending_.gaps) HW_TRY(session_->insert(gap));
    HW_TRY(writeContents(steps_, end.seq));
    core::StepRow row;
    row.id = steps_;
    row.firstSeq = start_->seq;
    row.endSeq = end.seq;
    row.beginNs = start_->timeNs;
    row.endNs = end.timeNs;
    if (end.peak > 0) {
        row.allocatorBeginBytes = start_->live;
        row.allocatorPeakBytes = end.peak;
    }
    row.environment = end.environment;
    HW_TRY(session_->insert(row, end.tensors));
    return writeDeviceRecords(&row);
}

core::Status Assembler::writeStep(const wire::StepEndRecord& end) {
    HW_TRY(openSession());
    HW_TRY(session_->begin());
    HW_TRY(writeRows(end));
    HW_TRY(session_->commit());
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
    pending_.layers.clear();
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
    if (start_ && end_) HW_TRY(confirm());
    if (session_ && (device_.any() || !pending_.gaps.empty())) {
        HW_TRY(session_->begin());
        HW_TRY(writeDeviceRecords(nullptr));
        for (const auto& gap : pending_.gaps) HW_TRY(session_->insert(gap));
        HW_TRY(session_->commit());
        pending_.gaps.clear();
    }
    trace_.reset();
    session_.reset();
    return {};
}

}  // namespace hw::profiler
