// SPDX-License-Identifier: MIT
#pragma once

#include <optional>

#include "planners/dtr/heuristics.h"
#include "planners/dtr/score_blocks.h"

namespace hw::planners {

/// Scores of a compute over size and staleness (dtrScore()): in large pools not every storage is
/// looked at, so that accesses are fewer than the simulator's; choices and evaluations are the
/// same.
class BlockwiseHeuristic : public EvictionHeuristic {
public:
    /// @param everywhere choose() is called, and must be quick in large pools
    BlockwiseHeuristic(DtrState& state, bool everywhere);

    void resize(std::size_t storages) override;
    void entered(core::StorageIndex s) override;
    void left(core::StorageIndex s) override;
    core::StorageIndex choose(const EvictionPool& pool) override;

protected:
    /// What it would take to have `s` again (ns).
    virtual std::int64_t computeOf(core::StorageIndex s) = 0;
    double score(core::StorageIndex s) final { return scoreOf(s, computeOf(s)); }

    /// To be told when a compute falls; null: nobody asks.
    ScoreBlocks* blocks() { return blocks_ ? &*blocks_ : nullptr; }

private:
    std::optional<ScoreBlocks> blocks_;
};

}  // namespace hw::planners
