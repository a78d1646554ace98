// SPDX-License-Identifier: MIT
#include "planners/cut_relaxation.h"

#include <algorithm>
#include <cmath>
#include <map>

#ifdef HIGHWATER_HIGHS
#include <Highs.h>
#endif

namespace hw::planners {

using namespace hw::core;

#ifndef HIGHWATER_HIGHS

bool haveSolver() {
    return false;
}

std::optional<CutSolution> solveCuts(const StageModel&, Bytes, const std::vector<StageIndex>&,
                                     const CutOptions&) {
    return std::nullopt;
}

#else

bool haveSolver() {
    return true;
}

namespace {

constexpr double kTimeScale = 1000;     // the baseline's time in the program's unit
constexpr double kIgnoredShare = 3e-3;  // of the budget: smallest items counted as no bytes

// Builds the program row by row.
class Program {
public:
    Program(const StageModel& model, Bytes budget, const std::vector<StageIndex>& cuts)
        : model_(model),
          budget_(budget),
          cuts_(cuts),
          baseline_(std::max(1.0, static_cast<double>(model.graph->totalTime().count()))),
          rerun_(cuts.size()),
          resident_(cuts.size()) {}

    /// False when a cut alone exceeds the budget.
    bool build() {
        chooseIgnored();
        for (std::size_t k = 0; k < cuts_.size(); ++k) {
            addResidents(k);
            for (StageIndex stage = cuts_[k]; stage < segmentEnd(k); ++stage)
                for (const ItemIndex i : model_.inputs[model_.opOf(stage)]) cover(k, i);
            if (k > 0)
                for (const auto& [i, column] : resident_[k])
                    if (model_.born[i] < cuts_[k - 1]) addAtMost(column, k - 1, i);
            if (!addMemory(k)) return false;
        }
        addViews();
        return true;
    }

    HighsLp lp(bool integer) const {
        HighsLp lp;
        lp.num_col_ = static_cast<HighsInt>(cost_.size());
        lp.num_row_ = static_cast<HighsInt>(rowLower_.size());
        lp.col_cost_ = cost_;
        lp.col_lower_ = lower_;
        lp.col_upper_.assign(cost_.size(), 1.0);
        lp.row_lower_ = rowLower_;
        lp.row_upper_ = rowUpper_;
        lp.offset_ = offset_;
        lp.a_matrix_.format_ = MatrixFormat::kRowwise;
        lp.a_matrix_.num_col_ = lp.num_col_;
        lp.a_matrix_.num_row_ = lp.num_row_;
        lp.a_matrix_.start_ = rowStart_;
        lp.a_matrix_.start_.push_back(static_cast<HighsInt>(index_.size()));
        lp.a_matrix_.index_ = index_;
        lp.a_matrix_.value_ = value_;
        if (integer) lp.integrality_.assign(cost_.size(), HighsVarType::kInteger);
        return lp;
    }

    std::vector<std::vector<bool> > residents(const std::vector<double>& values) const {
        std::vector<std::vector<bool> > table(cuts_.size(),
                                              std::vector<bool>(model_.itemCount(), false));
        for (std::size_t k = 0; k < cuts_.size(); ++k) {
            for (const auto& [i, column] : resident_[k]) table[k][i] = values[column] > 0.5;
            for (ItemIndex i = 0; i < static_cast<ItemIndex>(model_.itemCount()); ++i)
                if (exists(i, k) && ignored_[i]) table[k][i] = true;
        }
        return table;
    }

    /// Objective of the program, in nanoseconds beyond the baseline, rounded to the safe side.
    std::int64_t nanoseconds(double objective) const {
        constexpr double kSolverTolerance = 1e-6;  // of the baseline's time, above HiGHS's own
        const double safe = objective / kTimeScale - kSolverTolerance;
        return static_cast<std::int64_t>(std::floor(std::max(0.0, safe) * baseline_));
    }

private:
    StageIndex segmentEnd(std::size_t k) const {
        return k + 1 < cuts_.size() ? cuts_[k + 1] : model_.end + 1;
    }
    /// May be resident at cut k, and matters.
    bool exists(ItemIndex i, std::size_t k) const {
        return model_.born[i] < cuts_[k] && model_.neededUntil[i] >= cuts_[k];
    }

    void chooseIgnored() {
        std::vector<ItemIndex> bySize(model_.itemCount());
        for (std::size_t i = 0; i < bySize.size(); ++i) bySize[i] = static_cast<ItemIndex>(i);
        std::stable_sort(bySize.begin(), bySize.end(), [&](ItemIndex a, ItemIndex b) {
            return model_.bytes[a] < model_.bytes[b];
        });
        ignored_.assign(model_.itemCount(), false);
        double sum = 0;
        for (const ItemIndex i : bySize) {
            sum += static_cast<double>(model_.bytes[i].count());
            if (sum > kIgnoredShare * static_cast<double>(budget_.count())) break;
            ignored_[i] = true;
        }
    }

    int column(double cost, double lower) {
        cost_.push_back(cost);
        lower_.push_back(lower);
        return static_cast<int>(cost_.size()) - 1;
    }
    void beginRow(double lower, double upper) {
        rowStart_.push_back(static_cast<HighsInt>(index_.size()));
        rowLower_.push_back(lower);
        rowUpper_.push_back(upper);
    }
    void entry(int column, double value) {
        index_.push_back(column);
        value_.push_back(value);
    }

    void addResidents(std::size_t k) {
        const OpIndex own = model_.opOf(cuts_[k]);
        const auto inputs = model_.inputs[own];
        for (ItemIndex i = 0; i < static_cast<ItemIndex>(model_.itemCount()); ++i) {
            if (!exists(i, k) || ignored_[i]) continue;
            const bool read = std::find(inputs.begin(), inputs.end(), i) != inputs.end();
            resident_[k][i] = column(0, read ? 1 : 0);
        }
    }

    // Last op of the item's chain that was captured before cut k.
    OpIndex rebuilder(ItemIndex i, std::size_t k) const {
        OpIndex last = kNone;
        for (const OpIndex op : model_.chain[i])
            if (model_.stageOf[op] < cuts_[k]) last = op;
        return last;
    }

    // (1)
    void cover(std::size_t k, ItemIndex i) {
        if (model_.born[i] >= cuts_[k] || ignored_[i]) return;
        if (!covered_.insert({{static_cast<std::int64_t>(k), i}, true}).second) return;
        const int run = rerun(k, rebuilder(i, k));
        beginRow(1, kHighsInf);
        entry(resident_[k].at(i), 1);
        entry(run, 1);
    }

    // column <= U[k,i] + R[k,p(i)], for (2) and (4).
    void addAtMost(int column, std::size_t k, ItemIndex i) {
        if (ignored_[i] || !resident_[k].contains(i)) return;
        const int run = rerun(k, rebuilder(i, k));
        if (run == column) return;
        beginRow(0, kHighsInf);
        entry(column, -1);
        entry(resident_[k].at(i), 1);
        entry(run, 1);
    }

    // The column of R[k,op], with (2) and (3) for it; depth first over what it reads.
    int rerun(std::size_t k, OpIndex op) {
        if (const auto known = rerun_[k].find(op); known != rerun_[k].end()) return known->second;
        const int made =
            column(static_cast<double>(model_.time[op].count()) / baseline_ * kTimeScale, 0);
        rerun_[k][op] = made;
        pending_.emplace_back(k, op);
        if (expanding_) return made;
        expanding_ = true;
        while (!pending_.empty()) {
            const auto [segment, next] = pending_.back();
            pending_.pop_back();
            expand(segment, next);
        }
        expanding_ = false;
        return made;
    }

    void expand(std::size_t k, OpIndex op) {
        const int own = rerun_[k].at(op);
        for (const ItemIndex i : model_.inputs[op]) {
            const auto chain = model_.chain[i];
            const auto at = std::find(chain.begin(), chain.end(), op);
            if (at == chain.end()) {
                addAtMost(own, k, i);
            } else if (at != chain.begin()) {
                const int before = rerun(k, *(at - 1));
                beginRow(0, kHighsInf);
                entry(before, 1);
                entry(own, -1);
            }
        }
    }

    // (5)
    bool addMemory(std::size_t k) {
        const OpIndex own = model_.opOf(cuts_[k]);
        Bytes room = budget_ - model_.fixedBytes[cuts_[k]] - model_.footprint[own];
        const auto scale = std::max(1.0, static_cast<double>(budget_.count()));
        Bytes needed;
        for (const auto& [i, column] : resident_[k])
            if (lower_[column] > 0) needed += model_.bytes[i];
        if (needed > room) return false;
        beginRow(-kHighsInf, static_cast<double>(room.count()) / scale);
        for (const auto& [i, column] : resident_[k])
            entry(column, static_cast<double>(model_.bytes[i].count()) / scale);
        return true;
    }

    // (6), with one cut for each pair of readers.
    void addViews() {
        std::map<OpIndex, std::vector<StageIndex> > readers;
        for (StageIndex stage = 0; stage <= model_.end; ++stage)
            for (const OpIndex view : model_.lazyViews[model_.opOf(stage)])
                readers[view].push_back(stage);
        for (const auto& [view, stages] : readers) {
            const ItemIndex i =
                model_
                    .itemOf[model_.graph->storageOf(model_.graph->ops[view].inputs.front().tensor)];
            const double cost =
                static_cast<double>(model_.time[view].count()) / baseline_ * kTimeScale;
            if (ignored_[i]) continue;
            for (std::size_t r = 1; r < stages.size(); ++r)
                for (std::size_t k = 0; k < cuts_.size(); ++k) {
                    if (cuts_[k] <= stages[r - 1] || cuts_[k] > stages[r]) continue;
                    cost_[resident_[k].at(i)] -= cost;
                    offset_ += cost;
                    break;
                }
        }
    }

    const StageModel& model_;
    Bytes budget_;
    const std::vector<StageIndex>& cuts_;
    double baseline_;
    std::vector<bool> ignored_;
    std::vector<std::map<OpIndex, int> > rerun_;       // per segment
    std::vector<std::map<ItemIndex, int> > resident_;  // per cut
    std::map<std::pair<std::int64_t, ItemIndex>, bool> covered_;
    std::vector<std::pair<std::size_t, OpIndex> > pending_;
    bool expanding_ = false;
    std::vector<double> cost_, lower_, rowLower_, rowUpper_, value_;
    std::vector<HighsInt> rowStart_, index_;
    double offset_ = 0;
};

}  // namespace

std::optional<CutSolution> solveCuts(const StageModel& model, Bytes budget,
                                     const std::vector<StageIndex>& cuts,
                                     const CutOptions& options) {
    Program program(model, budget, cuts);
    CutSolution solution;
    if (!program.build()) {
        solution.infeasible = true;
        return solution;
    }
    Highs highs;
    highs.setOptionValue("output_flag", false);
    highs.setOptionValue("threads", options.threads);
    highs.setOptionValue("time_limit", options.timeLimitSeconds);
    highs.setOptionValue("mip_rel_gap", 1e-4);
    if (options.nodeLimit >= 0)
        highs.setOptionValue("mip_max_nodes", static_cast<HighsInt>(options.nodeLimit));
    if (highs.passModel(program.lp(options.integer)) == HighsStatus::kError) return std::nullopt;
    if (highs.run() == HighsStatus::kError) return std::nullopt;
    const HighsModelStatus status = highs.getModelStatus();
    solution.infeasible = status == HighsModelStatus::kInfeasible;
    solution.optimal = status == HighsModelStatus::kOptimal;
    if (solution.infeasible) return solution;
    if (!solution.optimal && status != HighsModelStatus::kTimeLimit &&
        status != HighsModelStatus::kSolutionLimit)
        return std::nullopt;
    const HighsInfo& info = highs.getInfo();
    double bound = 0;
    if (options.integer)
        bound = info.mip_dual_bound;
    else if (solution.optimal)
        bound = info.objective_function_value;
    if (!std::isfinite(bound)) bound = 0;
    solution.bound = Nanoseconds(model.graph->totalTime().count() + program.nanoseconds(bound));
    if (info.primal_solution_status == kSolutionStatusFeasible)
        solution.resident = program.residents(highs.getSolution().col_value);
    return solution;
}

#endif

}  // namespace hw::planners
