// SPDX-License-Identifier: MIT
#include "bench/made_up_events.h"

#include <algorithm>

#include "core/session/session_writer.h"

namespace hw::bench {

core::MemoryEventRow MadeUpEvents::next() {
    core::MemoryEventRow row;
    time_ += 1000 + static_cast<std::int64_t>(random_() % 199'000);
    row.timeNs = time_;
    const bool allocate =
        alive_.empty() || (alive_.size() < 2000 && random_() % (2000 + alive_.size()) < 2000);
    if (allocate) {
        const auto bytes = static_cast<std::int64_t>(512 << random_() % 12);
        const auto address =
            static_cast<std::int64_t>(0x7f0000000000 + random_() % (8LL << 30) / 512 * 512);
        alive_.push_back({address, bytes});
        row.kind = "alloc", row.address = address, row.bytes = core::Bytes(bytes);
    } else {
        std::swap(alive_[random_() % alive_.size()], alive_.back());
        row.kind = "free", row.address = alive_.back().address;
        row.bytes = core::Bytes(-alive_.back().bytes);
        alive_.pop_back();
    }
    allocated_ += row.bytes.count();
    reserved_ = std::max(reserved_, (allocated_ + (2 << 20) - 1) / (2 << 20) * (2 << 20));
    row.allocated = allocated_, row.reserved = reserved_;
    return row;
}

core::Status writeEvents(const std::string& path, std::int64_t count) {
    constexpr std::int64_t kCommit = 100'000;
    core::Result<core::SessionWriter> session = core::SessionWriter::create(path);
    if (!session) return session.error();
    MadeUpEvents events;
    for (std::int64_t i = 0; i < count; ++i) {
        if (i % kCommit == 0)
            if (core::Status begun = session->begin(); !begun) return begun;
        if (core::Status kept = session->insert(events.next()); !kept) return kept;
        if ((i + 1) % kCommit == 0 || i + 1 == count)
            if (core::Status done = session->commit(); !done) return done;
    }
    return {};
}

}  // namespace hw::bench
