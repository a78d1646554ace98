// SPDX-License-Identifier: MIT
// A family from session files.
#pragma once

#include <optional>
#include <vector>

#include "core/base/result.h"
#include "core/family/family.h"
#include "core/session/session.h"

namespace hw::core {

/// Of several sessions each gives its last step that is as `step` of the first one (its last one by
/// default), and further ones of that size for their times. Of one session all such steps count,
/// whatever their sizes. Errors: as Family::make() and loadGraph().
Result<Family> loadFamily(const std::vector<Session>& sessions,
                          std::optional<int> vary = std::nullopt,
                          std::optional<std::int64_t> step = std::nullopt);

}  // namespace hw::core
