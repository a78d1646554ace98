// SPDX-License-Identifier: MIT
// Searches a retention matrix and a choice of implementations together.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "core/memory/stage_judge.h"
#include "core/plan/implementations.h"
#include "planners/schedule/work_budget.h"
#include "planners/search/annealing.h"

namespace hw::planners {

/// The captured graph with the implementations of a choice applied, and its model.
struct ImplementedGraph {
    explicit ImplementedGraph(core::TrainingGraph under) : graph(std::move(under)), model(graph) {}
    ImplementedGraph(const ImplementedGraph&) = delete;
    ImplementedGraph& operator=(const ImplementedGraph&) = delete;

    core::TrainingGraph graph;
    core::StageModel model;
};

/// A choice and a retention matrix for its model; plans within the budget come first, by time.
struct JointPlan {
    core::ImplementationChoice choice;
    std::shared_ptr<const ImplementedGraph> implemented;
    core::RetentionMatrix retention;
    core::Nanoseconds time;
    core::Bytes overflow;

    bool fits() const { return overflow == core::Bytes(0); }
    bool operator<(const JointPlan& other) const {
        return overflow != other.overflow ? overflow < other.overflow : time < other.time;
    }
};

/// Retains in `to` what `from` retains: stages go by their ops, items by their storages, those that
/// one graph has merged by where their tensors are now. An op that reads an item in `to` and did
/// not in `from` finds it kept since its last reader.
void transferRetention(const core::StageJudge& from, core::StageJudge& to);

/// One search over the entries of a menu. It alternates between the matrix, by lookahead.h, a cut
/// relaxation and annealing.h on the graph under the present choice, and the choice: algorithms by
/// what fits beside the matrix (menu.h), the other kinds by local search, each change with the
/// matrix carried over, repaired and annealed for a short time.
class JointSearch {
public:
    /// `captured` and `menu` must outlive the search.
    JointSearch(const core::TrainingGraph& captured, const core::Menu& menu, core::Bytes budget,
                std::uint64_t seed, std::function<bool()> stopped);

    /// Starts from `warm` too; their choices must be of this menu. `enough` ends the search when a
    /// plan takes no more time. The best plan found, never worse than one of `warm`.
    JointPlan run(const std::vector<JointPlan>& warm, const WorkBudget& work,
                  core::Nanoseconds enough);

private:
    bool done() const;
    WorkBudget workShare(double share) const;

    std::shared_ptr<const ImplementedGraph> implement(
        const core::ImplementationChoice& choice) const;
    void addAll(core::ImplementationChoice& choice,
                const std::vector<const core::Implementation*>& entries) const;
    std::vector<core::ImplementationChoice> starts() const;
    std::vector<JointPlan> start(const core::ImplementationChoice& choice,
                                 const std::vector<JointPlan>& warm);
    core::ImplementationChoice flowOf(const core::ImplementationChoice& choice) const;
    void explore(const std::map<core::ImplementationChoice, JointPlan>& flows);
    JointPlan relax(const JointPlan& plan, double share);
    void shrink(const JointPlan& plan, const WorkBudget& work);
    void anneal(const JointPlan& plan, const Cooling& cooling, const WorkBudget& work);
    void withSmallWorkspaces(const JointPlan& plan, const Cooling& cooling, const WorkBudget& work);
    void changeChoices(const WorkBudget& work);
    bool change(core::ImplementationChoice& choice);

    /// What the judge holds, with algorithms that fit it; take() puts it into the pool, fitted()
    /// drops what exceeds the budget before that.
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
    WorkBudget work_;
    core::Nanoseconds enough_;
    std::mt19937_64 random_;
};

}  // namespace hw::planners
