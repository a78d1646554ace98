// SPDX-License-Identifier: MIT
// A step that goes forward and backward more than once, as one that accumulates gradients over
// micro-batches does, cut into its passes: each is planned by itself, and equal ones once.
#pragma once

#include <vector>

#include "core/memory/graph_window.h"
#include "core/plan/plan.h"

namespace hw::planners {

/// Windows whose graphs are the same, times apart.
struct WindowClass {
    core::GraphWindow window;  // the first of them, with the average times of all and the most
                               // bytes around
    std::size_t count = 0;
};

class StepWindows {
public:
    /// Cuts where memory falls low between two peaks above `level` (core/graph/valleys.h): little
    /// crosses there that a plan would rather drop. None when the step is one pass.
    StepWindows(const core::TrainingGraph& graph, core::Bytes level);
    /// At half of the way from the lowest to the highest memory of the step.
    explicit StepWindows(const core::TrainingGraph& graph);

    bool several() const { return places_.size() > 1; }
    const std::vector<WindowClass>& classes() const { return classes_; }
    /// The op with the highest memory of each window, when everything is kept.
    const std::vector<core::OpIndex>& peaks() const { return peaks_; }
    /// The schedule of the step that follows from one for each class.
    core::Schedule join(const std::vector<core::Schedule>& byClass) const;

private:
    struct Place {
        std::size_t of = 0;  // class
        core::OpIndex from = 0;
        std::vector<core::StorageIndex> storages;
    };
    void cut(const core::TrainingGraph& graph, const core::MemoryByOp& memory,
             const core::Lifetimes& lives, core::Bytes level);

    std::vector<WindowClass> classes_;
    std::vector<Place> places_;  // in captured order
    std::vector<core::OpIndex> peaks_;
};

}  // namespace hw::planners
