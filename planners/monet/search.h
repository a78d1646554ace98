// SPDX-License-Identifier: MIT
// Searches a retain table and a choice of implementations together.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "core/memory/stage_judge.h"
#include "core/plan/implementations.h"
#include "planners/search/annealing.h"

namespace hw::planners {

/// The graph under a choice, with its model.
struct Variant {
    explicit Variant(core::TrainingGraph under) : graph(std::move(under)), model(graph) {}
    Variant(const Variant&) = delete;
    Variant& operator=(const Variant&) = delete;

    core::TrainingGraph graph;
    core::StageModel model;
};

/// A choice and a table for its model; plans within the budget come first, by time.
struct JointPlan {
    core::ImplementationChoice choice;
    std::shared_ptr<const Variant> variant;
    std::vector<std::uint64_t> table;
    core::Nanoseconds time;
    core::Bytes overflow;

    bool fits() const { return overflow == core::Bytes(0); }
    bool operator<(const JointPlan& other) const {
        return overflow != other.overflow ? overflow < other.overflow : time < other.time;
    }
};

/// What a search may take: annealing moves, or seconds.
struct Effort {
    std::optional<std::int64_t> moves;
    double seconds = 10;
};

/// Retains in `to` what `from` retains: stages go by their ops, items by their storages, those that
/// one variant has merged by where their tensors are now. An op that reads an item in `to` and did
/// not in `from` finds it kept since its last reader.
void transferTable(const core::StageJudge& from, core::StageJudge& to);

/// One search over the entries of a menu. It alternates between the table, by lookahead.h, a cut
/// relaxation and annealing.h on the graph under the present choice, and the choice: algorithms by
/// what fits beside the table (monet_menu.h), the other kinds by local search, each change with the
/// table carried over, repaired and annealed for a short time.
class JointSearch {
public:
    /// `captured` and `menu` must outlive the search.
    JointSearch(const core::TrainingGraph& captured, const core::Menu& menu, core::Bytes budget,
                std::uint64_t seed, std::function<bool()> stopped);

    /// Starts from `warm` too; their choices must be of this menu. `enough` ends the search when a
    /// plan takes no more time. The best plan found, never worse than one of `warm`.
    JointPlan run(const std::vector<JointPlan>& warm, const Effort& effort,
                  core::Nanoseconds enough);

private:
    using Clock = std::chrono::steady_clock;
    struct Piece;

    bool done() const;
    double left() const;
    Piece piece(double share) const;

    std::shared_ptr<const Variant> variantFor(const core::ImplementationChoice& choice) const;
    void addAll(core::ImplementationChoice& choice,
                const std::vector<const core::Implementation*>& entries) const;
    std::vector<core::ImplementationChoice> starts() const;
    std::vector<JointPlan> start(const core::ImplementationChoice& choice,
                                 const std::vector<JointPlan>& warm);
    core::ImplementationChoice flowOf(const core::ImplementationChoice& choice) const;
    void explore(const std::map<core::ImplementationChoice, JointPlan>& flows);
    JointPlan relax(const JointPlan& plan, double share);
    void shrink(const JointPlan& plan, const Piece& piece);
    void anneal(const JointPlan& plan, const Cooling& cooling, const Piece& piece);
    void withSmallWorkspaces(const JointPlan& plan, const Cooling& cooling, const Piece& piece);
    void changeChoices(const Piece& piece);
    bool change(core::ImplementationChoice& choice);

    /// What the judge holds, with algorithms that fit it; take() puts it into the pool, fitted()
    /// first drops what exceeds the budget.
    JointPlan withFittingAlgorithms(core::StageJudge& judge, const JointPlan& of) const;
    JointPlan take(core::StageJudge& judge, const JointPlan& of);
    JointPlan fitted(core::StageJudge& judge, const JointPlan& of);
    void offer(JointPlan plan);
    const JointPlan& best() const { return pool_.front(); }

    const core::TrainingGraph& captured_;
    const core::Menu& menu_;
    core::Bytes budget_;
    std::uint64_t seed_;
    std::function<bool()> stopped_;
    bool algorithms_ = false;
    std::vector<const core::Implementation*> dataflow_;  // entries of the other kinds
    std::vector<JointPlan> pool_;                        // best first
    Effort effort_;
    Clock::time_point begin_;
    core::Nanoseconds enough_;
    std::mt19937_64 random_;
};

}  // namespace hw::planners
