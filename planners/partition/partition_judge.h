// SPDX-License-Identifier: MIT
// The buffers and the time of a region, where certain values are kept across its cut.
#pragma once

#include <cstdint>
#include <vector>

#include "planners/partition/partition.h"

namespace hw::planners {

/// By storage: kept across the cut.
using KeptFlags = std::vector<bool>;

class PartitionJudge {
public:
    /// `region` must outlive the judge.
    explicit PartitionJudge(const JointRegion& region);

    PartitionFigures figures(const KeptFlags& kept, core::Bytes budget) const;
    /// Storages that the forward makes and that may be kept or not.
    const std::vector<core::StorageIndex>& choices() const { return choices_; }

private:
    struct Order {
        std::vector<core::OpIndex> ops;
        std::vector<core::StorageIndex> atBegin;  // that are there
        std::vector<bool> stays;                  // by storage: when it ends
    };

    bool isForward(core::OpIndex op) const { return op < region_.backward; }
    std::vector<bool> madeAgain(const KeptFlags& kept, std::vector<bool>& saved) const;
    Order forward(const std::vector<bool>& saved) const;
    Order backward(const std::vector<bool>& again, const std::vector<bool>& saved) const;
    void replay(const Order& order, core::Bytes budget, PartitionFigures& figures) const;
    std::vector<bool> fusedAway(const Order& order, const std::vector<std::int32_t>& last) const;

    const JointRegion& region_;
    const core::TrainingGraph& graph_;
    std::vector<core::OpIndex> makers_;  // by tensor: the op that gives it first, or kNone
    std::vector<bool> fixed_;            // by storage: kept in any case
    std::vector<bool> forwardOutput_;    // by storage: the forward gives it back
    std::vector<bool> backwardOutput_;   // by storage
    std::vector<core::StorageIndex> choices_;
    std::vector<core::StorageIndex> tangents_;  // that come to the backward
};

}  // namespace hw::planners
