// SPDX-License-Identifier: MIT
// A session with several input sizes: each is planned and run natively under the plan that it gets.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/session/session.h"
#include "planners/mimose/sizes.h"

namespace hw::executor {

/// One input size: what was planned for it, and what came of it.
struct SizeRun {
    std::int64_t step = 0;
    double size = 0;   // bytes of the inputs
    core::Bytes peak;  // of the recorded step
    planners::SizePlan plan;
    double overhead = 0;  // predicted time under the plan, as a multiple of the recorded
    std::vector<std::string> dropped;  // the layers that are recomputed
    nlohmann::json run;                // what the executor answered; null where nothing fits

    /// Only of a size that was run.
    double measuredOverhead() const {
        return run.at("time_ns").get<double>() / run.at("baseline_time_ns").get<double>();
    }
};

struct SizesRun {
    std::vector<SizeRun> sizes;  // the smallest first
    std::int64_t plans = 0;      // that were made; every other size shares one, or has none
};

/// What is run, and how.
struct SizesRequest {
    std::string file;  // of the session
    core::Bytes budget;
    std::string executor;              // the command that runs a step under a plan
    std::vector<std::string> options;  // more of its arguments
};

/// Plans each input size by Mimose's estimator, fitted to all `recorded` steps, in the order in
/// which they came, and runs one step of each. Errors: BadInput where the steps cannot be planned,
/// Internal where plans cannot be written, and as the executor ends, which says why itself.
core::Result<SizesRun> runEverySize(const core::Session& session,
                                    const std::vector<planners::ProfiledStep>& recorded,
                                    const SizesRequest& request);

}  // namespace hw::executor
