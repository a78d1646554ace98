// SPDX-License-Identifier: MIT
// Memory snapshots of torch (`torch.cuda.memory._snapshot` and `memory_snapshot`), pickled.
#pragma once

#include "core/base/result.h"
#include "core/import/format.h"
#include "core/import/text_source.h"
#include "core/session/session_writer.h"

namespace hw::core {

/// Writes the allocator's history of every device, and of pinned host memory, as memory events, and
/// every allocation as a storage, into an empty session. Allocated bytes are those of the storages
/// that are live (snapshotLifetimes), what was there before the history began included (event
/// `initial`); reserved bytes are anchored at the snapshot itself and followed back. A device
/// without history gets one event `block` for each block in use. Python frames and metadata become
/// layers, annotations ranges, failed allocations `out_of_memory` in meta. What the format cannot
/// tell is stated as gaps. There is no step: nothing to plan. Errors: BadInput when it is no
/// snapshot, damaged, or contradicts itself.
Status importTorchSnapshot(TextSource& source, SessionWriter& session);

const ImportFormat& torchSnapshotFormat();

}  // namespace hw::core
