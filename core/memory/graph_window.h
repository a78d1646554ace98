// SPDX-License-Identifier: MIT
// A run of ops of a step as a graph of its own, to be planned by itself.
#pragma once

#include <optional>
#include <vector>

#include "core/graph/training_graph.h"
#include "core/memory/lifetimes.h"

namespace hw::core {

/// What is there when the window begins, and used in it, is a constant of its graph; what is needed
/// after it is alive at its end. So a schedule of the window's graph is a piece of a schedule of
/// the step, in which nothing that crosses the window's ends is dropped. Storages that are there
/// throughout and that no op of the window touches are not in its graph. An op that turns a storage
/// which ends in the window into one that goes out of it runs once.
struct GraphWindow {
    OpIndex from = 0, to = 0;  // ops of the step, the last one not included
    TrainingGraph graph;
    std::vector<StorageIndex> storages;  // of the step, by storage of the window
    Bytes around;                        // of what is there throughout and not in the graph
};

/// Cuts a step into windows, one after the other, in time that is linear in the step and in what
/// crosses the windows' ends.
class WindowCutter {
public:
    /// `graph` and `lives` must outlive the cutter.
    WindowCutter(const TrainingGraph& graph, const Lifetimes& lives);

    /// The window from where the last one ended to before op `to`. None when it is no graph by
    /// itself.
    std::optional<GraphWindow> next(OpIndex to);

private:
    void chooseStorages(GraphWindow& window);
    std::vector<TensorIndex> chooseTensors(const GraphWindow& window) const;
    void fill(GraphWindow& window, const std::vector<TensorIndex>& tensors);
    void fillEvents(GraphWindow& window) const;
    void fillFinals(GraphWindow& window, const std::vector<TensorIndex>& tensors) const;
    Op translated(const Op& op) const;
    bool carriesOn(OpIndex op, const GraphWindow& window) const;
    void moveOn(const GraphWindow& window);
    bool crossesOut(StorageIndex s, const GraphWindow& window) const {
        return lives_.until[s] >= window.to;
    }
    std::int32_t versionAt(StorageIndex s, OpIndex op) const;

    const TrainingGraph& graph_;
    const Lifetimes& lives_;
    OpIndex at_ = 0;
    std::vector<OpIndex> tensorUntil_;  // last op that reads it; the number of ops: final
    std::vector<std::vector<StorageIndex>> arrivals_;  // constants, by the op before them + 1
    std::vector<StorageIndex> present_;                // needed at or after at_, made before
    std::vector<TensorIndex> defined_;                 // the same of tensors
    std::vector<std::int32_t> storageIn_, tensorIn_;   // index in the window; kNone: not in it
    std::vector<std::int32_t> entryVersion_;           // by storage of the window
};

}  // namespace hw::core
