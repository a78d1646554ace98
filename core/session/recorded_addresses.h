// SPDX-License-Identifier: MIT
// Where blocks of memory lay while a session was recorded.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "core/base/result.h"
#include "core/session/session.h"

namespace hw::core {

/// A block of a device's memory, from the event that gave it out to the one that took it back.
struct RecordedBlock {
    std::int32_t first = 0, end = 0;      // moments of RecordedMemory; end: not there any more
    std::int64_t beginNs = 0, endNs = 0;  // of those events, on the session's clock
    std::int64_t address = 0;
    Bytes bytes;
    std::int64_t storage = -1;  // its id in the session; -1: of a block that events alone tell
    Category category = Category::Unknown;
};

/// The blocks of a device, by `first`; those that are never taken back end after the last moment.
/// They are the storages that have addresses. Where none has, events tell them: an address given
/// out twice was taken back unseen; one that is taken back first was there before. Errors: BadInput
/// when the session cannot be read.
Result<std::vector<RecordedBlock>> recordedBlocks(const Session& session, std::int64_t device);

/// Addresses of storages by their session ids, as far as they were recorded. Errors: as above.
Result<std::unordered_map<std::int64_t, std::int64_t>> storageAddresses(const Session& session);

}  // namespace hw::core
