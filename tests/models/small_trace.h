// SPDX-License-Identifier: GPL-3.0-or-later
// Traces of an allocator, written by hand: neither a step nor categories.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "core/session/session_writer.h"

namespace hw::viewer::samples {

class TraceMaker {
public:
    explicit TraceMaker(const std::string& path) : session_(core::SessionWriter::create(path)) {
        good_ = session_ && session_->begin() && session_->device("cuda", 0);
        note(session_->insert(core::LayerRow{1, {}, "(before the history)", "frame"}));
    }

    /// A call stack of one frame; its id.
    std::int64_t line(const std::string& file, const std::string& function, std::int64_t number) {
        const std::int64_t id = lines_++;
        note(session_->insert(core::SourceFrameRow{id, file, function, number, false}));
        note(session_->insert(core::StackRow{id, {}, id}));
        return id;
    }
    /// What is there before the first event, all in one.
    void holdBefore(std::int64_t address, std::int64_t bytes) {
        core::StorageRow& row = storage(address, bytes);
        row.layer = 1;
        event("initial", {}, 0);
    }
    void alloc(std::int64_t address, std::int64_t bytes, std::optional<std::int64_t> stack) {
        storage(address, bytes).stack = stack;
        event("alloc", address, bytes);
    }
    void free(std::int64_t address) {
        core::StorageRow& row = storages_[held_.at(address)];
        row.freeSeq = seq_;
        allocated_ -= row.bytes.count();
        event("free_completed", address, -row.bytes.count());
    }
    /// With what the allocator tells alone, when `withStorages` is false.
    bool write(bool withStorages = true) {
        if (withStorages)
            for (const core::StorageRow& row : storages_) note(session_->insert(row));
        return good_ && session_->commit();
    }

private:
    template <class Done>
    void note(const Done& done) {
        good_ = good_ && done;
    }
    core::StorageRow& storage(std::int64_t address, std::int64_t bytes) {
        held_[address] = storages_.size();
        core::StorageRow& row = storages_.emplace_back();
        row.id = static_cast<std::int64_t>(storages_.size()), row.bytes = core::Bytes(bytes);
        row.device = "cuda:0", row.allocSeq = seq_, row.address = address;
        allocated_ += bytes;
        return row;
    }
    void event(const char* kind, std::optional<std::int64_t> address, std::int64_t bytes) {
        core::MemoryEventRow row;
        row.seq = seq_, row.timeNs = 1000 + seq_ * 1000, row.kind = kind;
        row.address = address, row.bytes = core::Bytes(bytes), row.allocated = allocated_;
        note(session_->insert(row));
        ++seq_;
    }

    core::Result<core::SessionWriter> session_;
    std::vector<core::StorageRow> storages_;
    std::map<std::int64_t, std::size_t> held_;  // by address
    std::int64_t seq_ = 0, lines_ = 0, allocated_ = 0;
    bool good_ = true;
};

/// Peak 250 bytes at event 3: 170 of model.py:8, 50 of train.py:3, 30 of before. data.py:5 asks
/// after it for the address that model.py:8 had first.
inline bool writeSmallTrace(const std::string& path, bool withStorages = true) {
    TraceMaker trace(path);
    const std::int64_t model = trace.line("/a/model.py", "forward", 8);
    const std::int64_t train = trace.line("/a/train.py", "main", 3);
    const std::int64_t data = trace.line("/a/data.py", "load", 5);
    trace.holdBefore(0x1000, 30);
    trace.alloc(0x2000, 100, model);
    trace.alloc(0x3000, 50, train);
    trace.alloc(0x4000, 70, model);
    trace.free(0x2000);
    trace.alloc(0x2000, 60, data);
    trace.free(0x4000);
    return trace.write(withStorages);
}

}  // namespace hw::viewer::samples
