// SPDX-License-Identifier: MIT
// A session as a Perfetto trace (TrackEvent protobuf), for ui.perfetto.dev and trace_processor.
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/session/session.h"

namespace hw::core {

/// Writes `path`: for every step the ops as slices by thread (with layer, phase and workspace),
/// live bytes in all and by category as counters, steps and gaps on tracks of their own; for every
/// device its allocated and reserved bytes. Times are the session's nanoseconds. Errors: BadInput.
Status exportPerfetto(const Session& session, const std::string& path);

}  // namespace hw::core
