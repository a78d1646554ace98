// SPDX-License-Identifier: MIT
// What a memory snapshot of torch holds, taken out of its pickle: the allocators' blocks and
// events.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/import/pickle_reader.h"

namespace hw::core {

/// A block in use when the snapshot was taken.
struct SnapshotBlock {
    std::int64_t address = 0, size = 0;
    std::int64_t requested = 0;  // bytes that were asked for, at most `size`
    std::optional<PickleRef> frames;
};

enum class SnapshotEffect : std::uint8_t {
    None,
    Allocate,
    RequestFree,   // the program gave the bytes back
    CompleteFree,  // every stream is done with them
    Reserve,       // from the driver
    Release
};

/// What an allocator's action does ("alloc", "free_requested", "segment_map", …).
SnapshotEffect effectOf(std::string_view action);

/// An event of an allocator's history. Texts live as long as the document.
struct SnapshotEntry {
    std::string_view action;
    SnapshotEffect effect = SnapshotEffect::None;
    std::int64_t address = 0, size = 0;
    std::optional<std::int64_t> timeNs;
    std::optional<std::int64_t> deviceFree;  // of "oom": bytes that the driver still had
    std::string_view metadata;               // `user_metadata`; empty where there is none
    std::optional<PickleRef> frames;
};

/// One allocator: of a GPU, or of pinned host memory.
struct SnapshotDevice {
    std::vector<SnapshotBlock> blocks;
    std::vector<SnapshotEntry> entries;
    std::int64_t reserved = 0;  // bytes, at the snapshot
    bool segments = false;      // the snapshot tells them
};

/// A part of `external_annotations` ("Optimizer.step#AdamW.step").
struct SnapshotAnnotation {
    std::string_view name;
    std::int64_t device = 0;
    std::int64_t beginNs = 0;
    std::optional<std::int64_t> endNs;  // none: it had no end yet
};

inline constexpr std::int64_t kSnapshotHost = -1;

struct SnapshotContents {
    std::map<std::int64_t, SnapshotDevice> devices;  // by ordinal; kSnapshotHost: pinned memory
    std::vector<SnapshotAnnotation> annotations;     // by begin
};

/// Throws std::invalid_argument, which says what is wrong with the snapshot.
SnapshotContents readSnapshot(const PickleDocument& document);

}  // namespace hw::core
