// SPDX-License-Identifier: MIT
#include "planners/program/checkmate_program.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>

namespace hw::planners {

using namespace hw::core;

namespace {

constexpr int kAbsent = -1;

/// A sum of columns and a constant.
struct Expression {
    std::vector<std::pair<int, double>> terms;
    double constant = 0;

    void add(int column, double factor) { terms.emplace_back(column, factor); }
    bool empty() const { return terms.empty() && constant == 0; }
};

// Builds the program, group by group.
class CheckmateProgram {
public:
    CheckmateProgram(const StageModel& model, Bytes budget, const CheckmateSize& size)
        : model_(model),
          size_(size),
          budget_(budget),
          scale_(std::max(1.0, static_cast<double>(budget.count()))),
          programTime_(model.graph->totalTime()),
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

    CheckmateSolution solve(const CheckmateOptions& options) const {
        SolveOptions solving;
        solving.limits = options.limits;
        solving.integer = options.integer;
        solving.relativeGap = 1e-6;
        if (options.start != nullptr) solving.start = pointOf(*options.start);
        solving.cancelled = options.cancelled;
        const LinearSolution found = program_.solve(solving);
        CheckmateSolution solution;
        solution.status = found.status;
        if (found.status == SolveStatus::Infeasible) return solution;
        solution.bound = model_.graph->totalTime() + programTime_.atLeast(found.bound);
        if (found.values) solution.retained = retained(*found.values);
        return solution;
    }

private:
    /// The plan's S; the other variables follow from it.
    std::vector<std::pair<int, double>> pointOf(const StageJudge& plan) const {
        std::vector<std::pair<int, double>> point;
        for (std::size_t g = 0; g < retained_.size(); ++g)
            for (ItemIndex i = 0; i < itemCount(); ++i)
                if (retained_[g][i] != kAbsent)
                    point.emplace_back(retained_[g][i], plan.retained(i, size_.begin[g]) ? 1 : 0);
        return point;
    }

    std::vector<std::vector<double>> retained(const std::vector<double>& values) const {
        std::vector<std::vector<double>> shares;
        for (std::size_t g = 0; g < retained_.size(); ++g) {
            shares.emplace_back(model_.itemCount(), 0.0);
            for (ItemIndex i = 0; i < itemCount(); ++i)
                if (retained_[g][i] != kAbsent)
                    shares[g][i] = values[retained_[g][i]];
                else if (isKept(size_, i) && exists(g, i))
                    shares[g][i] = 1;
        }
        return shares;
    }

    ItemIndex itemCount() const { return static_cast<ItemIndex>(model_.itemCount()); }
    bool exists(std::size_t g, ItemIndex i) const {
        return model_.born[i] < size_.begin[g] && model_.neededUntil[i] >= size_.begin[g];
    }
    double share(Bytes bytes) const { return static_cast<double>(bytes.count()) / scale_; }
    /// Whether `op` is run: whole by itself where S is; said to the solver, it can round up what it
    /// proves.
    int addRun(OpIndex op) {
        const double cost = programTime_(model_.time[op]);
        return program_.addColumn(cost, 0, 1, cost > 0);
    }
    int addShare() { return program_.addColumn(0, 0, 1, false); }
    // small <= sum of large; an absent small is 1, an absent column of large is 0.
    void atMost(int small, std::initializer_list<int> large) {
        program_.beginRow(small == kAbsent ? 1 : 0, INFINITY);
        if (small != kAbsent) program_.addEntry(small, -1);
        for (const int column : large)
            if (column != kAbsent) program_.addEntry(column, 1);
    }

    void addRetained(std::size_t g) {
        retained_.emplace_back(model_.itemCount(), kAbsent);
        for (ItemIndex i = 0; i < itemCount(); ++i)
            if (exists(g, i) && !isKept(size_, i))
                retained_[g][i] = program_.addColumn(0, 0, 1, true);
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
            rerun_[op] = addRun(op);
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
                program_.beginRow(-INFINITY, share(budget_ - fixed));
                program_.addEntry(used, 1);
                program_.addEntry(rerun_[op], share(model_.footprint[op]));
            } else {
                const Bytes own = std::max(model_.footprint[op],
                                           model_.newBytes[op] + model_.constantsAfter[stage]);
                const double room = share(budget_ - fixed - own);
                if (room < 0) possible_ = false;
                program_.setUpper(used, std::min(program_.upper(used), room));
            }
        }
    }
    int addUsed(int before, const Expression& change) {
        const int used = program_.addColumn(0, 0, INFINITY, false);
        program_.beginRow(change.constant, change.constant);
        program_.addEntry(used, 1);
        if (before != kAbsent) program_.addEntry(before, -1);
        std::vector<std::pair<int, double>> terms = change.terms;
        std::sort(terms.begin(), terms.end());
        for (std::size_t t = 0; t < terms.size(); ++t) {
            double factor = terms[t].second;
            for (; t + 1 < terms.size() && terms[t + 1].first == terms[t].first; ++t)
                factor += terms[t + 1].second;
            if (factor != 0) program_.addEntry(terms[t].first, -factor);
        }
        return used;
    }

    // Enters when the bytes of an item come and go within the group.
    void addLifetime(std::size_t g, ItemIndex i) {
        const double bytes = share(model_.bytes[i]);
        const int before = retained_[g][i], after = retainedAfter(g, i);
        const bool old = model_.born[i] < begin_;
        if (old && before == kAbsent) return;  // it is not needed any more
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
            needed[r] = addShare();
            atMost(rerun_[readers[r]], {needed[r]});
            if (needed[r + 1] != kAbsent) atMost(needed[r + 1], {needed[r]});
        }
        become(made + 1, needed[0], false);
        for (std::size_t r = 0; r < readers.size(); ++r)
            become(static_cast<std::size_t>(position_[readers[r]]) + 1, needed[r + 1], false);
    }

    // V and Y of the lazy views.
    void addViews(std::size_t g) {
        std::vector<std::pair<OpIndex, int>> reads;  // view, the column of its reader
        for (const OpIndex op : order_) {
            for (const OpIndex view : model_.lazyViews[op]) reads.emplace_back(view, rerun_[op]);
            if (rerun_[op] == kAbsent && op < static_cast<OpIndex>(model_.graph->ops.size()))
                for (const OpIndex view : model_.unreadViews[op]) reads.emplace_back(view, kAbsent);
        }
        std::vector<int> run(model_.graph->ops.size(), kAbsent);
        for (const auto& [view, reader] : reads) {
            if (model_.time[view] == Nanoseconds(0) || isKept(size_, itemOf(view))) continue;
            if (run[view] == kAbsent) run[view] = addRun(view);
            atMost(reader, {run[view], defined_[view]});
        }
        for (OpIndex view = 0; view < static_cast<OpIndex>(run.size()); ++view) {
            if (run[view] == kAbsent && defined_[view] == kAbsent) continue;
            int next = kAbsent;
            if (const int after = retainedAfter(g, itemOf(view)); after != kAbsent) {
                next = addShare();
                atMost(next, {after});
                atMost(next, {run[view], defined_[view]});
            }
            if (viewSeen_.insert(view).second) program_.addOffset(-programTime_(model_.time[view]));
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
    double scale_;
    ProgramTime programTime_;
    std::vector<StageIndex> useful_;
    std::vector<Bytes> keptBytes_;            // per stage: of the items always retained
    std::vector<std::vector<int>> retained_;  // S: per group and item
    bool possible_ = true;

    // Of the group being added.
    StageIndex begin_ = 0, end_ = 0;
    std::vector<OpIndex> order_;                 // what may run again, then the group's own ops
    std::vector<int> rerun_, position_;          // per op: column of R, place in order_
    std::vector<Expression> changes_;            // per place: of the bytes in use, right before it
    std::vector<std::vector<OpIndex>> readers_;  // per item
    std::vector<int> defined_;                   // per view: Y after the group before
    std::set<OpIndex> viewSeen_;

    LinearProgram program_;
};

}  // namespace

std::optional<CheckmateSolution> solveCheckmate(const StageModel& model, Bytes budget,
                                                const CheckmateSize& size,
                                                const CheckmateOptions& options) {
    if (!haveSolver()) return std::nullopt;
    CheckmateProgram program(model, budget, size);
    if (!program.build()) return CheckmateSolution{};
    CheckmateSolution solution = program.solve(options);
    if (solution.status == SolveStatus::Failed) return std::nullopt;
    return solution;
}

}  // namespace hw::planners
