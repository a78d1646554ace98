// SPDX-License-Identifier: GPL-3.0-or-later
// `run --planner`: a session with several input sizes, each under the plan that it gets.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/cli.h"

namespace hw::app {

struct SizesArguments {
    std::string planner;          // one that plans sizes; empty: the plan is given
    std::string budget;           // of --budget; empty: by ratio
    std::optional<double> ratio;  // of the highest recorded peak
};

/// Fits Mimose's estimator to all recorded steps, plans each input size in the order in which they
/// came, and runs one step of each natively under its plan. `executor`: the command that runs them,
/// to which file, plan, step and --json are added as arguments. Prints a table or one JSON object;
/// returns the exit code: 3 where a size has no plan within the budget, 6 where results differ.
int runSizes(const std::string& file, const SizesArguments& arguments, const std::string& executor,
             const std::vector<std::string>& options, const Common& common);

}  // namespace hw::app
