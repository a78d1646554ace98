// SPDX-License-Identifier: MIT
// Stretches of time that the program, or torch for it, gave a name while its memory was recorded.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/session/session.h"

namespace hw::core {

struct Annotation {
    std::string name;                     // "Optimizer.step#AdamW.step"
    std::int64_t ordinal = 0;             // of the device
    std::int64_t beginNs = 0, endNs = 0;  // on the session's clock
};

/// The kind of their rows among the session's ranges.
inline constexpr const char* kAnnotationKind = "annotation";

/// By begin. Empty where there are none. Errors: BadInput when the session cannot be read.
Result<std::vector<Annotation>> loadAnnotations(const Session& session);

}  // namespace hw::core
