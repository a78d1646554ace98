// SPDX-License-Identifier: MIT
// Simulated annealing over the retention matrix of an incremental judge.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <vector>

#include "core/memory/stage_judge.h"

namespace hw::planners {

/// Temperatures, as shares of the baseline's time.
struct Cooling {
    double hot = 2e-4, cold = 2e-6;
};

/// Improves the retention matrix of `judge`: the energy is the plan's time plus a penalty on its
/// overflow whose weight swings about the value at which plans just fit. Moves drop or retain an
/// item between two of its readers, begin or end a lifetime elsewhere, exchange two items, or move
/// a block of neighbours. The same seed and number of moves give the same result.
class Annealing {
public:
    Annealing(core::StageJudge& judge, std::uint64_t seed);

    /// Moves until `done`, given the number of moves so far and asked every few hundred of them,
    /// says 1 or more; what it says is also how far the cooling has come. Leaves the judge in its
    /// last state.
    void run(const Cooling& cooling, const std::function<double(std::int64_t moves)>& done);

    /// Forgets the best matrix: the judge's budget has changed.
    void forget();
    /// The fastest one within the budget seen so far; empty when there was none.
    const core::RetentionMatrix& best() const { return best_; }
    core::Nanoseconds bestTime() const { return bestTime_; }
    core::StageJudge& judge() const { return judge_; }
    /// Takes the judge's present matrix as a candidate.
    void note();

private:
    struct Gap {
        core::ItemIndex item;
        core::StageIndex from, to;  // stages between two that involve the item
    };
    /// Flips that lately made a plan far worse are tried less and less often, as most of them
    /// always will: what they would take goes to others.
    class Hopeless {
    public:
        void resize(std::size_t gaps);
        void forget();
        /// To be passed over this time.
        bool passes(const Gap& gap, bool retain);
        /// What the flip that was asked about last has come to.
        void note(bool far);
        /// What comes to be noted next is no flip.
        void noFlip() { last_ = kNoFlip; }

    private:
        static constexpr std::size_t kNoFlip = SIZE_MAX;
        struct Entry {
            std::uint8_t left = 0, patience = 0;
        };
        std::vector<Entry> entries_;
        std::size_t last_ = kNoFlip;
    };
    enum class Draw : std::uint8_t { Nothing, PassedOver, Move };
    Draw propose();
    core::ItemIndex randomItem();
    core::StageIndex randomStage(core::ItemIndex i);
    Gap gapAt(core::ItemIndex i, core::StageIndex k) const;
    bool flip(core::ItemIndex i, core::StageIndex k);
    bool shift(core::ItemIndex i, core::StageIndex k);
    bool exchange(core::ItemIndex i, core::StageIndex k);
    bool block(core::ItemIndex i, core::StageIndex k);
    double uniform();
    std::uint64_t below(std::uint64_t n) { return random_() % n; }

    core::StageJudge& judge_;
    const core::StageModel& model_;
    std::mt19937_64 random_;
    std::vector<core::ItemIndex> movable_;
    std::vector<double> weight_;  // cumulative
    double penalty_ = 0.02;
    Hopeless hopeless_;
    core::RetentionMatrix best_;
    core::Nanoseconds bestTime_{INT64_MAX};
};

}  // namespace hw::planners
