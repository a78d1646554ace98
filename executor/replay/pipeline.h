// SPDX-License-Identifier: MIT
// From a session and a plan to a report: profile, reference, planned run, timing.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "core/base/result.h"
#include "executor/replay/outcome.h"
#include "executor/replay/step.h"

namespace hw::executor {

enum class Offered { Exact, All };  // implementations that keep every bit, or all

struct RunRequest {
    std::string session;
    std::string plan;                  // file; empty: the captured order
    std::optional<std::int64_t> step;  // none: the last complete one
    Device device = Device::Cpu;
    std::vector<std::string> libraries;      // of extensions, whose ops may run, too
    int steps = 0;                           // that many in a row, besides; 0: none
    int repeat = 3;                          // timed passes of each order, at least 1
    std::optional<Offered> implementations;  // measure these for a menu; not with a plan
    bool remeasure = false;  // replace measured times and workspaces that are there already
};

/// Runs the request. From the first op on, the process has no rights but to compute (sandbox.h).
/// `progress` gets a line a stage.
/// Errors: Usage where there is no such device, BadInput for sessions that cannot be replayed and
/// plans for another graph, Verification when the judge refuses the plan, Internal when a kernel
/// fails. Different outputs are no error here: they are in the report.
core::Result<Outcome> runStep(const RunRequest& request,
                              const std::function<void(const std::string&)>& progress);

}  // namespace hw::executor
