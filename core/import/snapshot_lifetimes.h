// SPDX-License-Identifier: MIT
// The storages of an allocator's history: from which event to which one each was allocated.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/import/snapshot_reader.h"

namespace hw::core {

struct SnapshotLifetime {
    /// Before the first event.
    static constexpr std::int32_t kBefore = -1;
    /// Allocated when the snapshot was taken.
    static constexpr std::int32_t kNever = INT32_MAX;

    std::int64_t address = 0, size = 0;
    std::int32_t begin = kBefore, end = kNever;  // index of the event
    std::optional<PickleRef> frames;             // of its allocation
    std::vector<std::string_view> metadata;      // of its allocation, then those annotated later
};

struct SnapshotLifetimes {
    std::vector<SnapshotLifetime> all;  // by begin
    std::int64_t unseen = 0;            // allocations or frees that the history does not show
    std::int64_t unaccounted = 0;       // allocated by the history, not in use by the snapshot
    std::int64_t rounding = 0;          // bytes by which the blocks in use are larger
};

/// Whichever free of an address comes first ends its storage: histories may lack `free_requested`
/// or `free_completed` (`skip_actions`). What is freed without having been allocated was there
/// before, and so was what is in use at the end without any event. An address that is allocated
/// twice was freed unseen in between; one that is freed twice was allocated unseen after the first
/// free. Sizes are those that were asked for.
SnapshotLifetimes snapshotLifetimes(const SnapshotDevice& device);

}  // namespace hw::core
