// SPDX-License-Identifier: MIT
// Steps of a program while it trains, as they are met: Mimose's collection phase, and what follows.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planners/mimose/mimose.h"

namespace hw::planners {

/// A kind of step that has come by.
struct SeenStep {
    std::int64_t kind = 0;
    std::vector<std::int64_t> inputs;  // bytes of each of inputStorages(), ascending
    std::vector<StepProfile::Layer> layers;
    core::Bytes peak;      // baseline's, with what no op touches
    bool planned = false;  // it has got what there is for it
};
SeenStep seenStep(std::int64_t kind, const core::TrainingGraph& graph, core::Bytes untouched);

class Collection {
public:
    /// Different sizes that the estimator learns from: the first ones (the paper's collector ends
    /// after some tens of iterations).
    static constexpr std::size_t kMostSizes = 10;
    static constexpr std::size_t kFewestSizes = 3;
    /// Steps after which those whose layers are not the ones of others are planned for themselves.
    static constexpr std::size_t kPatience = 5;

    explicit Collection(std::vector<SeenStep> steps = {}) : steps_(std::move(steps)) {}
    void add(SeenStep step) { steps_.push_back(std::move(step)); }
    const std::vector<SeenStep>& steps() const { return steps_; }
    void notePlanned(std::size_t step) { steps_[step].planned = true; }

    /// Steps that can be planned now.
    struct Due {
        struct Step {
            std::size_t index = 0;  // of steps()
            double size = 0;        // for the planner
        };
        std::vector<Step> steps;
        std::optional<InputAwarePlanner> planner;  // none: each for itself
    };
    /// Of those with the layers of the last one. Nothing as long as the collection phase lasts.
    Due due(core::Bytes budget) const;

private:
    std::vector<SeenStep> steps_;
};

}  // namespace hw::planners
