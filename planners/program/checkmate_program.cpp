// SPDX-License-Identifier: MIT
#include "planners/program/checkmate_program.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>

#ifdef HIGHWATER_HIGHS
#include <Highs.h>
#endif

namespace hw::planners {

using namespace hw::core;

#ifndef HIGHWATER_HIGHS

std::optional<CheckmateSolution> solveCheckmate(const StageModel&, Bytes, const CheckmateSize&,
                                                const CheckmateOptions&) {
    return std::nullopt;
}

#else

namespace {

constexpr double kTimeScale = 1000;  // the baseline's time in the program's unit
constexpr int kAbsent = -1;

/// A sum of columns and a constant.
struct Expression {
    std::vector<std::pair<int, double> > terms;
    double constant = 0;

    void add(int column, double factor) { terms.emplace_back(column, factor); }
    bool empty() const { return terms.empty() && constant == 0; }
};

// Builds the program, group by group.
class Program {
public:
    Program(const StageModel& model, Bytes budget, const CheckmateSize& size)
        : model_(model),
          size_(size),
          budget_(budget),
          scale_(std::max(1.0, static_cast<double>(budget.count()))),
          baseline_(std::max(1.0, static_cast<double>(model.graph->totalTime().count()))),
          useful_(usefulUntil(model, size)),
          keptBytes_(static_cast<std::size_t>(model.end) + 2),
          rerun_(model.graph->ops.size() + 1, kAbsent),
          position_(model.graph->ops.size() + 1, kAbsent),
          defined_(model.graph->ops.size(), kAbsent) {}

    /// False when what is fixed exceeds the budget by itself.
    bool build() {
        for (ItemIndex i = 0; i < itemCount(); ++i)
            if (isKept(size_, i) && model_.neededUntil[i] > model_.born[i]) {
                keptBytes_[model_.born[i] + 1] += model_.bytes[i];
                keptBytes_[model_.neededUntil[i] + 1] -= model_.bytes[i];
            }
        for (std::size_t k = 1; k < keptBytes_.size(); ++k) keptBytes_[k] += keptBytes_[k - 1];
        for (std::size_t g = 0; g < size_.begin.size(); ++g) addRetained(g);
        for (std::size_t g = 0; g < size_.begin.size() && possible_; ++g) addGroup(g);
        return possible_;
    }

    HighsLp lp(bool integer) const {
        HighsLp lp;
        lp.num_col_ = static_cast<HighsInt>(cost_.size());
        lp.num_row_ = static_cast<HighsInt>(rowLower_.size());
        lp.col_cost_ = cost_;
        lp.col_lower_.assign(cost_.size(), 0);
        lp.col_upper_ = upper_;
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
        if (!integer) return lp;
        // R is whole by itself where S is; said to the solver, it can round up what it proves.
        lp.integrality_.assign(cost_.size(), HighsVarType::kContinuous);
        for (std::size_t c = 0; c < cost_.size(); ++c)
            if (cost_[c] > 0) lp.integrality_[c] = HighsVarType::kInteger;
        for (const auto& group : retained_)
            for (const int column : group)
                if (column != kAbsent) lp.integrality_[column] = HighsVarType::kInteger;
        return lp;
    }

    /// Gives the solver the table's S to begin with; the other variables follow from it.
    void begin(Highs& highs, const StageJudge& start) const {
        std::vector<HighsInt> index;
        std::vector<double> value;
        for (std::size_t g = 0; g < retained_.size(); ++g)
            for (ItemIndex i = 0; i < itemCount(); ++i)
                if (retained_[g][i] != kAbsent) {
                    index.push_back(retained_[g][i]);
                    value.push_back(start.retained(i, size_.begin[g]) ? 1 : 0);
                }
        highs.setSolution(static_cast<HighsInt>(index.size()), index.data(), value.data());
    }

    std::vector<std::vector<double> > retained(const std::vector<double>& values) const {
        std::vector<std::vector<double> > table;
        for (std::size_t g = 0; g < retained_.size(); ++g) {
            table.emplace_back(model_.itemCount(), 0.0);
            for (ItemIndex i = 0; i < itemCount(); ++i)
                if (retained_[g][i] != kAbsent)
                    table[g][i] = values[retained_[g][i]];
                else if (isKept(size_, i) && exists(g, i))
                    table[g][i] = 1;
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
    ItemIndex itemCount() const { return static_cast<ItemIndex>(model_.itemCount()); }
    bool exists(std::size_t g, ItemIndex i) const {
        return model_.born[i] < size_.begin[g] && model_.neededUntil[i] >= size_.begin[g];
    }
    double share(Bytes bytes) const { return static_cast<double>(bytes.count()) / scale_; }
    double cost(OpIndex op) const {
        return static_cast<double>(model_.time[op].count()) / baseline_ * kTimeScale;
    }

    int column(double cost, double upper = 1) {
        cost_.push_back(cost);
        upper_.push_back(upper);
        return static_cast<int>(cost_.size()) - 1;
    }
    void entry(int column, double value) {
        index_.push_back(column);
        value_.push_back(value);
    }
    void beginRow(double lower, double upper) {
        rowStart_.push_back(static_cast<HighsInt>(index_.size()));
        rowLower_.push_back(lower);
        rowUpper_.push_back(upper);
    }
    // small <= sum of large; an absent small is 1, an absent column of large is 0.
    void atMost(int small, std::initializer_list<int> large) {
        beginRow(small == kAbsent ? 1 : 0, kHighsInf);
        if (small != kAbsent) entry(small, -1);
        for (const int column : large)
            if (column != kAbsent) entry(column, 1);
    }

    void addRetained(std::size_t g) {
        retained_.emplace_back(model_.itemCount(), kAbsent);
        for (ItemIndex i = 0; i < itemCount(); ++i)
            if (exists(g, i) && !isKept(size_, i)) retained_[g][i] = column(0);
    }
    int retainedAfter(std::size_t g, ItemIndex i) const {
        return g + 1 < retained_.size() ? retained_[g + 1][i] : kAbsent;
    }

    void addGroup(std::size_t g) {
        begin_ = size_.begin[g];
        end_ = groupEnd(model_, size_, g);
        std::fill(rerun_.begin(), rerun_.end(), kAbsent);
        std::fill(position_.begin(), position_.end(), kAbsent);
        order_.clear();
        for (OpIndex op = 0; op < static_cast<OpIndex>(model_.graph->ops.size()); ++op) {
            if (model_.lazy(op) || model_.stageOf[op] >= begin_ || useful_[op] < begin_) continue;
            position_[op] = static_cast<int>(order_.size());
            order_.push_back(op);
            rerun_[op] = column(cost(op));
        }
        for (StageIndex k = begin_; k < end_; ++k) {
            position_[model_.opOf(k)] = static_cast<int>(order_.size());
            order_.push_back(model_.opOf(k));
        }
        addDependencies(g);
        addMemory(g);
        addViews(g);
    }

    // (1b), (1c)
    void addDependencies(std::size_t g) {
        std::vector<bool> covered(model_.itemCount(), false);
        for (const OpIndex op : order_)
            for (const ItemIndex i : model_.inputs[op])
                if (rerun_[op] != kAbsent)
                    require(rerun_[op], op, g, i);
                else if (!covered[i])
                    covered[i] = true, require(kAbsent, op, g, i);
        for (ItemIndex i = 0; i < itemCount(); ++i)
            if (const int after = retainedAfter(g, i); after != kAbsent)
                require(after, kNone, g, i);
    }
    void require(int reader, OpIndex op, std::size_t g, ItemIndex i) {
        if (model_.born[i] >= begin_ || isKept(size_, i)) return;
        for (const OpIndex maker : model_.chain[i])
            if (model_.stageOf[maker] < begin_ && maker != op)
                atMost(reader, {retained_[g][i], rerun_[maker]});
    }

    // (2) to (9)
    void addMemory(std::size_t g) {
        changes_.assign(order_.size() + 1, {});
        readers_.assign(model_.itemCount(), {});
        for (const OpIndex op : order_)
            for (const ItemIndex i : model_.inputs[op]) readers_[i].push_back(op);
        for (ItemIndex i = 0; i < itemCount(); ++i)
            if (model_.born[i] < end_ && !isKept(size_, i)) addLifetime(g, i);
        int used = kAbsent;  // U
        for (std::size_t p = 0; p < order_.size(); ++p) {
            if (used == kAbsent || !changes_[p].empty()) used = addUsed(used, changes_[p]);
            const OpIndex op = order_[p];
            const bool again = rerun_[op] != kAbsent;
            const StageIndex stage =
                again ? begin_
                      : begin_ + static_cast<StageIndex>(p) - position_[model_.opOf(begin_)];
            const Bytes fixed = model_.fixedBytes[stage] + keptBytes_[stage];
            if (again) {
                beginRow(-kHighsInf, share(budget_ - fixed));
                entry(used, 1);
                entry(rerun_[op], share(model_.footprint[op]));
            } else {
                const Bytes own =
                    std::max(model_.footprint[op], model_.newBytes[op] + model_.arriving[stage]);
                upper_[used] = std::min(upper_[used], share(budget_ - fixed - own));
                if (upper_[used] < 0) possible_ = false;
            }
        }
    }
    int addUsed(int before, const Expression& change) {
        const int used = column(0, kHighsInf);
        beginRow(change.constant, change.constant);
        entry(used, 1);
        if (before != kAbsent) entry(before, -1);
        std::vector<std::pair<int, double> > terms = change.terms;
        std::sort(terms.begin(), terms.end());
        for (std::size_t t = 0; t < terms.size(); ++t) {
            double factor = terms[t].second;
            for (; t + 1 < terms.size() && terms[t + 1].first == terms[t].first; ++t)
                factor += terms[t + 1].second;
            if (factor != 0) entry(terms[t].first, -factor);
        }
        return used;
    }

    // Enters when the bytes of an item come and go within the group.
    void addLifetime(std::size_t g, ItemIndex i) {
        const double bytes = share(model_.bytes[i]);
        const int before = retained_[g][i], after = retainedAfter(g, i);
        const bool old = model_.born[i] < begin_;
        if (old && before == kAbsent) return;  // nobody needs it any more
        int present = before;                  // column that says so, kAbsent: none
        bool always = false;
        const auto become = [&](std::size_t p, int next, bool one) {
            if (present != kAbsent) changes_[p].add(present, -bytes);
            if (next != kAbsent) changes_[p].add(next, bytes);
            changes_[p].constant += bytes * (static_cast<int>(one) - static_cast<int>(always));
            present = next;
            always = one;
        };
        if (old) changes_[0].add(before, bytes);
        const auto made =
            static_cast<std::size_t>(position_[model_.graph->storages[model_.storages[i]].creator]);
        const auto& readers = readers_[i];
        if (!readers.empty() && rerun_[readers.back()] == kAbsent) {
            become(made + 1, kAbsent, true);
            become(static_cast<std::size_t>(position_[readers.back()]) + 1, after, false);
            return;
        }
        std::vector<int> needed(readers.size() + 1, after);  // D
        for (std::size_t r = readers.size(); r-- > 0;) {
            needed[r] = column(0);
            atMost(rerun_[readers[r]], {needed[r]});
            if (needed[r + 1] != kAbsent) atMost(needed[r + 1], {needed[r]});
        }
        become(made + 1, needed[0], false);
        for (std::size_t r = 0; r < readers.size(); ++r)
            become(static_cast<std::size_t>(position_[readers[r]]) + 1, needed[r + 1], false);
    }

    // V and Y of the lazy views.
    void addViews(std::size_t g) {
        std::vector<std::pair<OpIndex, int> > reads;  // view, the column of its reader
        for (const OpIndex op : order_) {
            for (const OpIndex view : model_.lazyViews[op]) reads.emplace_back(view, rerun_[op]);
            if (rerun_[op] == kAbsent && op < static_cast<OpIndex>(model_.graph->ops.size()))
                for (const OpIndex view : model_.unreadViews[op]) reads.emplace_back(view, kAbsent);
        }
        std::vector<int> run(model_.graph->ops.size(), kAbsent);
        for (const auto& [view, reader] : reads) {
            if (model_.time[view] == Nanoseconds(0) || isKept(size_, itemOf(view))) continue;
            if (run[view] == kAbsent) run[view] = column(cost(view));
            atMost(reader, {run[view], defined_[view]});
        }
        for (OpIndex view = 0; view < static_cast<OpIndex>(run.size()); ++view) {
            if (run[view] == kAbsent && defined_[view] == kAbsent) continue;
            int next = kAbsent;
            if (const int after = retainedAfter(g, itemOf(view)); after != kAbsent) {
                next = column(0);
                atMost(next, {after});
                atMost(next, {run[view], defined_[view]});
            }
            if (!viewSeen_.contains(view)) viewSeen_.insert(view), offset_ -= cost(view);
            defined_[view] = next;
        }
    }
    ItemIndex itemOf(OpIndex view) const {
        return model_
            .itemOf[model_.graph->storageOf(model_.graph->ops[view].inputs.front().tensor)];
    }

    const StageModel& model_;
    const CheckmateSize& size_;
    Bytes budget_;
    double scale_, baseline_;
    std::vector<StageIndex> useful_;
    std::vector<Bytes> keptBytes_;             // per stage: of the items always retained
    std::vector<std::vector<int> > retained_;  // S: per group and item
    bool possible_ = true;

    // Of the group being added.
    StageIndex begin_ = 0, end_ = 0;
    std::vector<OpIndex> order_;                  // what may run again, then the group's own ops
    std::vector<int> rerun_, position_;           // per op: column of R, place in order_
    std::vector<Expression> changes_;             // per place: of the bytes in use, right before it
    std::vector<std::vector<OpIndex> > readers_;  // per item
    std::vector<int> defined_;                    // per view: Y after the group before
    std::set<OpIndex> viewSeen_;

    std::vector<double> cost_, upper_, rowLower_, rowUpper_, value_;
    std::vector<HighsInt> rowStart_, index_;
    double offset_ = 0;
};

}  // namespace

std::optional<CheckmateSolution> solveCheckmate(const StageModel& model, Bytes budget,
                                                const CheckmateSize& size,
                                                const CheckmateOptions& options) {
    Program program(model, budget, size);
    CheckmateSolution solution;
    if (!program.build()) {
        solution.infeasible = true;
        return solution;
    }
    Highs highs;
    highs.setOptionValue("output_flag", false);
    highs.setOptionValue("threads", 1);
    highs.setOptionValue("time_limit", options.timeLimitSeconds);
    highs.setOptionValue("mip_rel_gap", 1e-6);
    if (options.nodeLimit >= 0)
        highs.setOptionValue("mip_max_nodes", static_cast<HighsInt>(options.nodeLimit));
    highs.setCallback([&](int, const std::string&, const HighsCallbackOutput*,
                          HighsCallbackInput* input,
                          void*) { input->user_interrupt = options.cancelled() ? 1 : 0; });
    highs.startCallback(kCallbackMipInterrupt);
    highs.startCallback(kCallbackSimplexInterrupt);
    if (highs.passModel(program.lp(options.integer)) == HighsStatus::kError) return std::nullopt;
    if (options.start != nullptr && options.integer) program.begin(highs, *options.start);
    if (highs.run() == HighsStatus::kError) return std::nullopt;
    const HighsModelStatus status = highs.getModelStatus();
    solution.infeasible = status == HighsModelStatus::kInfeasible;
    solution.optimal = status == HighsModelStatus::kOptimal;
    if (solution.infeasible) return solution;
    if (!solution.optimal && status != HighsModelStatus::kTimeLimit &&
        status != HighsModelStatus::kSolutionLimit && status != HighsModelStatus::kInterrupt)
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
        solution.retained = program.retained(highs.getSolution().col_value);
    return solution;
}

#endif

}  // namespace hw::planners
