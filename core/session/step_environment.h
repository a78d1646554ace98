// SPDX-License-Identifier: MIT
// What a step's environment, as JSON in the session, says of bytes that code which calls no op has
// written (profiler/agent/native/unseen_writes.h).
#pragma once

#include <cstdint>
#include <vector>

#include "core/session/rows.h"

namespace hw::core {

struct StepEnvironment {
    /// Memory that is not the framework's kept its bytes from each op that read it to the step's
    /// end; false where that is not known.
    bool stableSources = false;
    std::vector<std::int64_t> writtenUnseen;  // storages, by their ids
};

StepEnvironment stepEnvironment(const StepRow& step);

}  // namespace hw::core
