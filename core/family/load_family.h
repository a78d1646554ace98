// SPDX-License-Identifier: MIT
// A family from session files.
#pragma once

#include <optional>
#include <vector>

#include "core/base/result.h"
#include "core/family/family.h"
#include "core/session/rows.h"
#include "core/session/session.h"

namespace hw::core {

/// Of several sessions each gives its last step that is as `step` of the first one (its last one by
/// default), and further ones of that size for their times. Of one session all such steps count,
/// whatever their sizes. Errors: as Family::make() and loadGraph().
Result<Family> loadFamily(const std::vector<Session>& sessions,
                          std::optional<int> vary = std::nullopt,
                          std::optional<std::int64_t> step = std::nullopt);

/// A kind of step that the first session has: its last step of that kind, and its family, where the
/// sessions have the kind in common.
struct StepKind {
    StepRow step;
    Result<Family> family;
};
/// The kinds of the process of the last step, in the order of these steps: the usual one is the
/// last. Errors: as loadGraph().
Result<std::vector<StepKind>> loadKinds(const std::vector<Session>& sessions,
                                        std::optional<int> vary = std::nullopt);

/// Those kinds that have families. Errors: as loadFamily(), of the usual step.
Result<StepFamilies> loadFamilies(const std::vector<Session>& sessions,
                                  std::optional<int> vary = std::nullopt);

}  // namespace hw::core
