// SPDX-License-Identifier: MIT
// The program at a size at which it was never recorded, as a session: planned, trained under its
// plan and looked at like a recorded one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/session/session_writer.h"

namespace hw::core {

/// Meta keys: the size, and the files that it was predicted from (separated by newlines).
inline constexpr const char* kPredictedSize = "predicted_size";
inline constexpr const char* kPredictedFrom = "predicted_from";

/// Writes one step of each kind that the sessions have in common with the first one (the first step
/// makes an optimizer's states, say) at `size` into `out`, which is empty; a kind that they do not
/// have in common becomes a gap. Ops keep their numbers and lose their arguments: those depend on
/// the size. Errors: as loadFamily(), of the usual step.
Status writePredicted(const std::vector<Session>& sessions, std::optional<int> vary,
                      std::int64_t size, SessionWriter& out);

/// Where `session` is one: its size.
Result<std::optional<std::int64_t>> predictedSize(const Session& session);

}  // namespace hw::core
