// SPDX-License-Identifier: MIT
#include "planners/program/cut_relaxation.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

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

// A storage as the program sees it.
struct Subject {
    bool counts = false;       // it has bytes, and enough of them
    bool rebuildable = false;  // otherwise, once evicted it is gone
    StageIndex born = kNone;   // there from the stage after this one
    StageIndex until = kNone;  // last stage that may read it
    /// Not rebuildable: last stage whose op reads or writes it for the first time; it is there
    /// until then in any plan. Views do not count, they may be made at any time.
    StageIndex stays = kNone;
};

// Builds the program row by row.
class Program {
public:
    Program(const StageModel& model, Bytes budget, const std::vector<StageIndex>& cuts)
        : model_(model),
          graph_(*model.graph),
          budget_(budget),
          baseline_(std::max(1.0, static_cast<double>(graph_.totalTime().count()))),
          subjects_(graph_.storages.size()),
          rerun_(cuts.size()),
          resident_(cuts.size()) {
        // Only ops that keep their place mark an instant; views do not.
        for (StageIndex cut : cuts) {
            while (cut < model.end && graph_.ops[model.stageOps[cut]].viewOnly()) ++cut;
            cuts_.push_back(cut);
        }
        finals_.reserve(graph_.finalTensors.size());
        for (const TensorIndex tensor : graph_.finalTensors) {
            const Storage& storage = graph_.storages[graph_.storageOf(tensor)];
            finals_.push_back({tensor, static_cast<std::int32_t>(storage.writers.size())});
        }
    }

    /// False when a cut alone exceeds the budget.
    bool build() {
        describeSubjects();
        chooseIgnored();
        for (std::size_t k = 0; k < cuts_.size(); ++k) {
            addResidents(k);
            for (StageIndex stage = cuts_[k]; stage < segmentEnd(k); ++stage)
                if (firstRunIsTied(stage))
                    forEachRead(model_.opOf(stage), [&](StorageIndex s, std::int32_t version) {
                        cover(k, s, version);
                    });
            if (k > 0)
                for (const auto& [s, column] : resident_[k])
                    if (subjects_[s].born < cuts_[k - 1])
                        addAtMost(column, k - 1, s,
                                  subjects_[s].rebuildable ? graph_.storages[s].creator : kNone);
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
        for (std::size_t k = 0; k < cuts_.size(); ++k)
            for (ItemIndex i = 0; i < static_cast<ItemIndex>(model_.itemCount()); ++i) {
                const auto column = resident_[k].find(model_.storages[i]);
                table[k][i] = column == resident_[k].end() ? exists(model_.storages[i], k)
                                                           : values[column->second] > 0.5;
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
    bool firstRunIsTied(StageIndex stage) const {
        return stage == model_.end || !graph_.ops[model_.opOf(stage)].viewOnly();
    }
    /// May be resident at cut k, and matters.
    bool exists(StorageIndex s, std::size_t k) const {
        return subjects_[s].born < cuts_[k] && subjects_[s].until >= cuts_[k];
    }
    /// Is resident at cut k in any plan.
    bool fixed(StorageIndex s, std::size_t k) const {
        return !subjects_[s].rebuildable && subjects_[s].born < cuts_[k] &&
               subjects_[s].stays >= cuts_[k];
    }

    // Calls visit(storage, version) for what the op, or the end of the step, reads or writes.
    template <class Visit>
    void forEachRead(OpIndex op, Visit visit) const {
        const bool end = op == static_cast<OpIndex>(graph_.ops.size());
        for (const Use& use : end ? finals_ : graph_.ops[op].inputs)
            visit(graph_.storageOf(use.tensor), use.version);
        if (end) return;
        for (const Write& write : graph_.ops[op].writes) visit(write.storage, write.versionBefore);
    }

    void describeSubjects() {
        for (StorageIndex s = 0; s < static_cast<StorageIndex>(subjects_.size()); ++s) {
            const Storage& storage = graph_.storages[s];
            Subject& subject = subjects_[s];
            const ItemIndex i = model_.itemOf[s];
            subject.until = i == kNone ? model_.storageNeededUntil[s] : model_.neededUntil[i];
            if (storage.isConstant()) continue;
            subject.born = model_.stageOf[storage.creator];
            const auto& writes = graph_.ops[storage.creator].writes;
            subject.rebuildable = std::none_of(writes.begin(), writes.end(), [&](const Write& w) {
                return graph_.storages[w.storage].isConstant();
            });
        }
        StageIndex last = kNone;  // of the ops before an arriving constant
        for (const Event& event : graph_.events) {
            if (event.kind == Event::Kind::Compute && !graph_.ops[event.index].viewOnly())
                last = model_.stageOf[event.index];
            if (event.kind == Event::Kind::Constant) subjects_[event.index].born = last;
        }
        for (StageIndex stage = 0; stage <= model_.end; ++stage)
            if (firstRunIsTied(stage))
                forEachRead(model_.opOf(stage),
                            [&](StorageIndex s, std::int32_t) { subjects_[s].stays = stage; });
    }

    void chooseIgnored() {
        std::vector<StorageIndex> bySize(subjects_.size());
        std::iota(bySize.begin(), bySize.end(), 0);
        const auto bytes = [&](StorageIndex s) { return graph_.storages[s].bytes; };
        std::stable_sort(bySize.begin(), bySize.end(),
                         [&](StorageIndex a, StorageIndex b) { return bytes(a) < bytes(b); });
        double sum = 0;
        for (const StorageIndex s : bySize) {
            if (bytes(s) <= Bytes(0)) continue;
            if (subjects_[s].rebuildable) sum += static_cast<double>(bytes(s).count());
            subjects_[s].counts = !subjects_[s].rebuildable ||
                                  sum > kIgnoredShare * static_cast<double>(budget_.count());
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
        for (StorageIndex s = 0; s < static_cast<StorageIndex>(subjects_.size()); ++s)
            if (subjects_[s].counts && exists(s, k) && !fixed(s, k)) resident_[k][s] = column(0, 0);
        forEachRead(model_.opOf(cuts_[k]), [&](StorageIndex s, std::int32_t) {
            if (const auto at = resident_[k].find(s); at != resident_[k].end())
                lower_[at->second] = 1;
        });
    }

    // Last op captured before cut k that takes the storage to the version; kNone: it cannot be
    // rebuilt.
    OpIndex rebuilder(StorageIndex s, std::int32_t version, std::size_t k) const {
        if (!subjects_[s].rebuildable) return kNone;
        OpIndex last = graph_.storages[s].creator;
        for (std::int32_t v = 0; v < version; ++v) {
            const OpIndex writer = graph_.storages[s].writers[v];
            if (model_.stageOf[writer] < cuts_[k]) last = writer;
        }
        return last;
    }

    // (1)
    void cover(std::size_t k, StorageIndex s, std::int32_t version) {
        const auto at = resident_[k].find(s);
        if (at == resident_[k].end()) return;
        const OpIndex maker = rebuilder(s, version, k);
        if (!covered_.insert({k, s, maker}).second) return;
        const int run = maker == kNone ? kNone : rerun(k, maker);
        beginRow(1, kHighsInf);
        entry(at->second, 1);
        if (run != kNone) entry(run, 1);
    }

    // column <= U[k,s] + R[k,maker], for (2), (3) and (4).
    void addAtMost(int column, std::size_t k, StorageIndex s, OpIndex maker) {
        const auto at = resident_[k].find(s);
        if (at == resident_[k].end()) return;
        const int run = maker == kNone ? kNone : rerun(k, maker);
        if (run == column) return;
        beginRow(0, kHighsInf);
        entry(column, -1);
        entry(at->second, 1);
        if (run != kNone) entry(run, 1);
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
            const int own = rerun_[segment].at(next);
            forEachRead(next, [&, k = segment](StorageIndex s, std::int32_t version) {
                addAtMost(own, k, s, rebuilder(s, version, k));
            });
        }
        expanding_ = false;
        return made;
    }

    // (5)
    bool addMemory(std::size_t k) {
        const OpIndex own = model_.opOf(cuts_[k]);
        Bytes room = budget_ - model_.footprint[own];
        for (StorageIndex s = 0; s < static_cast<StorageIndex>(subjects_.size()); ++s)
            if (fixed(s, k)) room -= graph_.storages[s].bytes;
        const auto scale = std::max(1.0, static_cast<double>(budget_.count()));
        Bytes needed;
        for (const auto& [s, column] : resident_[k])
            if (lower_[column] > 0) needed += graph_.storages[s].bytes;
        if (needed > room) return false;
        beginRow(-kHighsInf, static_cast<double>(room.count()) / scale);
        for (const auto& [s, column] : resident_[k])
            entry(column, static_cast<double>(graph_.storages[s].bytes.count()) / scale);
        return true;
    }

    // (6), with one cut for each pair of readers.
    void addViews() {
        std::map<OpIndex, std::vector<StageIndex> > readers;
        for (StageIndex stage = 0; stage <= model_.end; ++stage) {
            if (!firstRunIsTied(stage)) continue;
            for (const OpIndex view : model_.lazyViews[model_.opOf(stage)])
                readers[view].push_back(stage);
        }
        for (const auto& [view, stages] : readers) {
            const StorageIndex s = graph_.storageOf(graph_.ops[view].inputs.front().tensor);
            const double cost =
                static_cast<double>(model_.time[view].count()) / baseline_ * kTimeScale;
            for (std::size_t r = 1; r < stages.size(); ++r)
                for (std::size_t k = 0; k < cuts_.size(); ++k) {
                    if (cuts_[k] <= stages[r - 1] || cuts_[k] > stages[r]) continue;
                    const auto at = resident_[k].find(s);
                    if (at == resident_[k].end()) break;
                    cost_[at->second] -= cost;
                    offset_ += cost;
                    break;
                }
        }
    }

    const StageModel& model_;
    const TrainingGraph& graph_;
    Bytes budget_;
    std::vector<StageIndex> cuts_;
    double baseline_;
    std::vector<Use> finals_;
    std::vector<Subject> subjects_;                       // per storage
    std::vector<std::map<OpIndex, int> > rerun_;          // per segment
    std::vector<std::map<StorageIndex, int> > resident_;  // per cut
    std::set<std::tuple<std::size_t, StorageIndex, OpIndex> > covered_;
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
    solution.optimal =
        status == HighsModelStatus::kOptimal || status == HighsModelStatus::kModelEmpty;
    if (solution.infeasible) return solution;
    if (!solution.optimal && status != HighsModelStatus::kTimeLimit &&
        status != HighsModelStatus::kSolutionLimit)
        return std::nullopt;
    const HighsInfo& info = highs.getInfo();
    double bound = 0;
    if (status == HighsModelStatus::kModelEmpty)
        bound = 0;
    else if (options.integer)
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
