// SPDX-License-Identifier: MIT
// What the recorded training itself left behind, to be compared with what a run leaves.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "executor/replay/observer.h"
#include "executor/replay/step.h"

namespace hw::executor {

/// Bytes of storages as the step after a recorded one found them.
using RecordedEnd = std::map<core::StorageIndex, std::vector<std::byte>>;

/// Those of the storages alive at the end of `step` that the session holds; empty where the next
/// step was not recorded, or without the contents of tensors (`record --contents`).
/// Errors: those of the session.
core::Result<RecordedEnd> loadRecordedEnd(const core::Session& session, const Step& step);

/// Tensors that a run leaves, element by element beside those of the training.
struct Agreement {
    std::int64_t compared = 0, different = 0;
    std::string first;  // "parameter of encoder.linear1 (tensor 12)"; empty when none differs
};
Agreement compareWithRecorded(const RecordedEnd& recorded, const Step& step,
                              const FinalState& state);

}  // namespace hw::executor
