// SPDX-License-Identifier: MIT
// Raw memory timelines of torch's profiler (`export_memory_timeline` to a name that ends in
// `.raw.json.gz`): a list of [time, action, bytes, category].
#pragma once

#include "core/base/result.h"
#include "core/import/format.h"
#include "core/import/text_source.h"
#include "core/session/session_writer.h"

namespace hw::core {

/// Writes the events as memory events and each stretch of bytes in one category as a storage, into
/// an empty session. What was there before (time -1) is event `initial`. There are no addresses: a
/// release ends the latest storage of its size and category, so bytes by category are exact and
/// storages are one of several possible pairings. The format does not name its device, which is
/// called "memory". There is no step. Errors: BadInput when it is no such list or is damaged.
Status importMemoryTimeline(TextSource& source, SessionWriter& session);

const ImportFormat& memoryTimelineFormat();

}  // namespace hw::core
